"""The ledger of calls, requests and tokens."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy import lm15
from maps_rag.programs import MAPS, VanillaRAG

from tests.scripted import Roles, StubRetriever, chat, scripted_lm


def totals(predictions, name):
    return sum(prediction.usage[name] for prediction in predictions)


def check_ledger(predictions, lm):
    engine = lm.engine
    assert totals(predictions, "requests") == len(engine.requests)
    assert totals(predictions, "prompt_tokens") == engine.input_tokens
    assert totals(predictions, "completion_tokens") == engine.output_tokens
    assert totals(predictions, "billed_tokens") == engine.input_tokens + engine.output_tokens


@pytest.mark.parametrize("quiet", [False, True])
def test_the_ledger_equals_the_engines_count_under_threads(quiet):
    lm = scripted_lm(Roles(rounds=2, write=["nonsense"] * 5))
    program = MAPS(StubRetriever(), directions=2)

    def ask(i):
        with dspy.context(lm=lm, disable_history=quiet):
            return program(question=f"question {i}")

    with ThreadPoolExecutor(8) as pool:
        predictions = list(pool.map(ask, range(24)))
    check_ledger(predictions, lm)
    assert totals(predictions, "calls") == 24 * 8
    assert len(lm.history) == (0 if quiet else len(lm.engine.requests))


def test_the_ledger_equals_the_engines_count_when_awaited():
    lm = scripted_lm(Roles(rounds=2, write=["nonsense"] * 5))
    program = MAPS(StubRetriever(), directions=2)

    async def main():
        with dspy.context(lm=lm):
            return await asyncio.gather(*(program.acall(question=f"question {i}") for i in range(12)))

    check_ledger(asyncio.run(main()), lm)


@pytest.fixture
def cache():
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield
    dspy.cache = before


def test_replies_from_the_cache_count_as_logical_tokens_only(cache):
    lm = scripted_lm(Roles(rounds=2), cache=True)
    with dspy.context(lm=lm):
        first = MAPS(StubRetriever(), directions=2)(question="Q?")
        again = MAPS(StubRetriever(), directions=2)(question="Q?")
    check_ledger([first], lm)
    for name in ("calls", "requests", "prompt_tokens", "completion_tokens"):
        assert again.usage[name] == first.usage[name] > 0
    assert (first.usage["cache_hits"], again.usage["cache_hits"]) == (0, again.usage["requests"])
    assert again.usage["billed_tokens"] == 0
    assert again.answer == first.answer


def test_usage_of_each_role_adds_up():
    with dspy.context(lm=scripted_lm(Roles(rounds=2))):
        prediction = MAPS(StubRetriever(), directions=2)(question="Q?")
    calls = prediction.trajectory["calls"]
    for name in ("requests", "prompt_tokens", "completion_tokens", "billed_tokens"):
        assert sum(call[name] for call in calls) == prediction.usage[name]
    assert all(call["prompt_tokens"] > 0 and call["completion_tokens"] > 0 for call in calls)
    assert all(call["seconds"] > 0 for call in calls)
    assert prediction.usage["seconds"] >= sum(call["seconds"] for call in calls)


class Reporting:
    """An engine that reports a fixed usage for every reply."""

    def __init__(self, usage):
        self.usage = usage

    def complete(self, request):
        reply = Roles(rounds=0)(request.system, request.messages[-1].text)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(chat(reply)),
            finish_reason="stop",
            usage=self.usage,
        )


def asked_of(engine):
    with dspy.context(lm=dspy.LM("scripted/model", engine=engine, cache=False)):
        return MAPS(StubRetriever())(question="Q?")


def test_a_server_that_reports_no_usage_is_counted_with_zero_tokens():
    prediction = asked_of(Reporting(lm15.Usage()))
    assert (prediction.usage["requests"], prediction.usage["prompt_tokens"]) == (2, 0)
    assert prediction.usage["cache_hits"] == 0


def test_prompt_tokens_read_from_the_servers_cache_are_reported():
    prediction = asked_of(Reporting(lm15.Usage(100, 10, 110, cache_read_tokens=60)))
    assert prediction.usage["prompt_tokens"] == 200
    assert prediction.usage["cached_prompt_tokens"] == 120


def test_a_dummy_lm_of_dspy_works_as_well():
    lm = dspy.utils.DummyLM([{"reasoning": "r", "answer": "a"}])
    with dspy.context(lm=lm):
        prediction = VanillaRAG(StubRetriever())(question="Q?")
    assert (prediction.answer, prediction.usage["requests"]) == ("a", 1)


def test_an_lm_by_way_of_litellm_is_counted_too(cache):
    reply = chat({"reasoning": "r", "answer": "a"})
    lm = dspy.LM("openai/some-model", engine="litellm", api_key="none", mock_response=reply)
    with dspy.context(lm=lm):
        first = VanillaRAG(StubRetriever())(question="Q?")
        again = VanillaRAG(StubRetriever())(question="Q?")
    assert first.answer == again.answer == "a"
    assert first.usage["prompt_tokens"] > 0
    assert first.usage["billed_tokens"] == first.usage["prompt_tokens"] + first.usage["completion_tokens"]
    assert (again.usage["cache_hits"], again.usage["billed_tokens"]) == (1, 0)
