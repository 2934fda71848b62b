"""MAPS over HTTP: what a server's failures do to a question, from the socket to the prediction."""

from __future__ import annotations

import asyncio

import dspy
import pytest
from maps_rag.programs import MAPS, language_model

from tests.models.endpoint import Endpoint, Reply, error
from tests.scripted import Roles, StubRetriever, role_of


def serve(roles, first=()):
    """Return an endpoint that plays ``roles``, after it has sent each of ``first`` once."""
    waiting = list(first)

    def reply(body):
        if waiting:
            return waiting.pop(0)
        system, user = body["messages"][0]["content"], body["messages"][-1]["content"]
        said = roles(system, user)
        return said if isinstance(said, Reply) else Reply(said)

    return Endpoint(reply)


def ask(endpoint, run="sync", **options):
    lm = language_model("openai/scripted", api_base=endpoint.url, cache=False, **options)
    program = MAPS(StubRetriever(), directions=2, max_rounds=2)
    with dspy.context(lm=lm, adapter=None):
        if run == "sync":
            return program(question="What is asked?")
        return asyncio.run(program.acall(question="What is asked?"))


def roles_of(endpoint):
    return [role_of(request["messages"][0]["content"]) for request in endpoint.requests]


@pytest.mark.parametrize("run", ["sync", "async"])
def test_a_question_goes_over_the_wire_with_schemas_and_their_bounds(run):
    with serve(Roles()) as endpoint:
        prediction = ask(endpoint, run)
    assert (prediction.answer, prediction.failures) == ("the answer", {})
    assert roles_of(endpoint) == ["propose", "write", "refine", "propose", "answer"]
    assert prediction.usage["prompt_tokens"] == 50
    assert prediction.usage["completion_tokens"] == 25
    plan, write = (request["response_format"]["json_schema"]["schema"] for request in endpoint.requests[:2])
    directions = plan["properties"]["directions"]
    assert (directions["minItems"], directions["maxItems"]) == (0, 2)
    assert directions["items"] == {"type": "string", "maxLength": 120}
    queries = write["properties"]["queries"]
    assert (queries["minItems"], queries["maxItems"]) == (2, 2)


@pytest.mark.parametrize("run", ["sync", "async"])
@pytest.mark.parametrize(
    ("failure", "first_pause"),
    [
        (error(429, headers={"Retry-After": "7"}), 7.0),
        (error(500), None),
        (error(503), None),
        (Reply(drop=True), None),
    ],
)
def test_what_may_pass_is_tried_again(failure, first_pause, run, pauses):
    with serve(Roles(), first=[failure]) as endpoint:
        prediction = ask(endpoint, run)
    assert (prediction.answer, prediction.failures) == ("the answer", {})
    assert (prediction.usage["calls"], prediction.usage["requests"], prediction.usage["retries"]) == (5, 6, 1)
    assert len(endpoint.requests) == 6
    assert len(pauses) == 1
    if first_pause is not None:
        assert pauses == [first_pause]


def test_a_server_that_stays_broken_is_given_up(pauses):
    with Endpoint(error(500)) as endpoint, pytest.raises(dspy.LMError):
        ask(endpoint, num_retries=2)
    assert len(endpoint.requests) == 3


def test_a_refused_key_is_raised_at_once(pauses):
    with Endpoint(error(401, "wrong key")) as endpoint, pytest.raises(dspy.LMError, match="wrong key"):
        ask(endpoint)
    assert (len(endpoint.requests), pauses) == (1, [])


def test_a_server_that_is_not_there_is_given_up(pauses):
    with Endpoint() as endpoint:
        pass
    with pytest.raises(dspy.LMError):
        ask(endpoint, num_retries=1)
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (Reply(""), "reply empty"),
        (Reply(None), "reply empty"),
        (Reply("no JSON at all"), "reply unparseable"),
        (Reply({"other": "keys"}), "reply unparseable"),
        (Reply('{"reasoning": "r", "answer": "Johann Seb', finish_reason="length"), "reply cut off"),
        (Reply("", finish_reason="length", reasoning="thinking without end"), "reply cut off"),
    ],
)
def test_an_answer_that_cannot_be_used_is_asked_once_more_and_then_empty(reply, why):
    with serve(Roles(answer=reply)) as endpoint:
        prediction = ask(endpoint)
    assert prediction.answer == ""
    assert prediction.failures == {f"answer: {why}": 2}
    assert [request["temperature"] for request in endpoint.requests] == [0.0] * 5 + [0.7]


def test_a_cut_off_plan_means_search_for_the_question_itself():
    cut = Reply('{"known": [], "missing": "m", "sufficient": true, "directi', finish_reason="length")
    with serve(Roles(propose=[cut])) as endpoint:
        prediction = ask(endpoint)
    assert prediction.trajectory["rounds"][0]["directions"] == ["What is asked?"]
    assert prediction.failures == {"propose: reply cut off": 1}


def test_a_prompt_beyond_the_context_is_shortened(pauses):
    too_long = error(400, "This model's maximum context length is 4096 tokens. Please reduce the length.")
    with serve(Roles(refine=[too_long])) as endpoint:
        prediction = ask(endpoint)
    assert prediction.failures == {"refine: prompt too long, shortened": 1}
    first, second = (
        request["messages"][-1]["content"]
        for request, role in zip(endpoint.requests, roles_of(endpoint), strict=True)
        if role == "refine"
    )
    assert second.count("Title ") == first.count("Title ") // 2
    assert pauses == []


def test_the_users_own_adapter_is_used_instead_of_ours():
    with serve(Roles()) as endpoint:
        lm = language_model("openai/scripted", api_base=endpoint.url, cache=False)
        with dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
            prediction = MAPS(StubRetriever(), directions=2)(question="What is asked?")
            assert type(dspy.settings.adapter) is dspy.ChatAdapter
    # The endpoint writes JSON text only where the prompt asks for JSON; here DSPy's fallback asked for it.
    assert prediction.answer == "the answer"
    assert "[[ ## question ## ]]" in endpoint.requests[0]["messages"][-1]["content"]


def test_our_adapter_shows_short_prompts():
    with serve(Roles()) as endpoint:
        ask(endpoint)
    assert all("Reply with one JSON object" in request["messages"][0]["content"] for request in endpoint.requests)
