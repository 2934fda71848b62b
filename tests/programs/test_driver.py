"""The driver: calls side by side and what a step may be."""

from __future__ import annotations

import asyncio
import threading

import dspy
import pytest
from dspy import lm15
from maps_rag.programs import Ask, EndRound, Outcome, Search, SearchProgram, VanillaRAG

from tests.programs.side_by_side import Both, both, views
from tests.scripted import Roles, StubRetriever, chat, prompts, scripted_lm

# Calls side by side.


def test_calls_side_by_side_come_back_in_order():
    prediction, lm, _, _ = both()
    assert prediction.answer == "1:Q 0 2:Q 0 1:Q 1 2:Q 1 1:Q 2 2:Q 2"
    assert [call["role"] for call in prediction.trajectory["calls"]] == ["one", "two"] * 3
    assert prediction.usage["calls"] == len(prompts(lm)) == 6


def test_calls_side_by_side_really_overlap():
    meeting = threading.Barrier(6, timeout=30)

    class Meeting:
        def complete(self, request):
            meeting.wait()  # breaks unless all six are under way at once
            system, user = request.system, request.messages[-1].text
            return lm15.Response(
                id=None,
                model=request.model,
                message=lm15.Message.assistant(chat(views(system, user))),
                finish_reason="stop",
                usage=lm15.Usage(1, 1, 2),
            )

    with dspy.context(lm=dspy.LM("scripted/model", engine=Meeting(), cache=False)):
        prediction = Both(StubRetriever(), width=3)(question="Q")
    assert prediction.usage["calls"] == 6
    assert prediction.failures == {}


def test_calls_side_by_side_keep_lm_trace_and_usage():
    prediction, _, program, trace = both(track_usage=True)
    assert sorted(id(predictor) for predictor, _, _ in trace) == sorted([id(program.one), id(program.two)] * 3)
    (usage,) = prediction.get_lm_usage().values()
    ledger = prediction.usage
    assert usage["total_tokens"] == ledger["prompt_tokens"] + ledger["completion_tokens"] > 0


def test_calls_side_by_side_are_equal_when_awaited():
    threaded, _, _, _ = both()

    async def main():
        with dspy.context(lm=scripted_lm(views)):
            return await Both(StubRetriever(), width=3).acall(question="Q")

    awaited = asyncio.run(main())
    assert awaited.answer == threaded.answer
    for one, other in zip(awaited.trajectory["calls"], threaded.trajectory["calls"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_one_unusable_reply_among_several_takes_its_own_fallback_only():
    def reply(system, user):
        return "nonsense" if "Q 1" in user and "`second`" in system else views(system, user)

    prediction, _, _, _ = both(reply)
    assert prediction.answer == "1:Q 0 2:Q 0 1:Q 1 lost 1:Q 2 2:Q 2"
    assert prediction.failures == {"two: reply unparseable": 1}


@pytest.mark.parametrize("run", ["sync", "async"])
def test_an_error_among_several_is_raised(run):
    def reply(system, user):
        return lm15.AuthError("wrong key", status=401) if "Q 1" in user else views(system, user)

    program = Both(StubRetriever(), width=3)

    def ask():
        with dspy.context(lm=scripted_lm(reply)):
            return program(question="Q") if run == "sync" else asyncio.run(program.acall(question="Q"))

    with pytest.raises(dspy.LMError, match="wrong key"):
        ask()


def test_an_error_among_awaited_calls_leaves_none_running():
    async def main():
        class Slow:
            def __init__(self):
                self.cancelled = 0

            async def complete(self, request):
                if "`first`" in request.system:
                    raise lm15.AuthError("wrong key", status=401)
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    raise

        slow = Slow()
        lm = dspy.LM("scripted/model", engine=scripted_lm(views).engine, async_engine=slow, cache=False)
        with dspy.context(lm=lm), pytest.raises(dspy.LMError, match="wrong key"):
            await Both(StubRetriever(), width=1).acall(question="Q")
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_budget_covers_all_calls_of_a_fan_out_or_none():
    class Budgeted(Both):
        def steps(self, question):
            from maps_rag.programs import OutOfBudget

            try:
                yield [Ask(self.one, fallback={}, question="a"), Ask(self.one, fallback={}, question="b")]
            except OutOfBudget:
                return Outcome("nothing asked", "budget")
            return Outcome("asked", "answered")

    lm = scripted_lm(views)
    with dspy.context(lm=lm):
        assert Budgeted(StubRetriever(), max_calls=2)(question="Q").stop_reason == "budget"
        assert prompts(lm) == []
        assert Budgeted(StubRetriever(), max_calls=3)(question="Q").stop_reason == "answered"


@pytest.mark.parametrize("step", [[], [1], "text", None, [Search(["q"], 1)]])
def test_a_step_of_another_kind_is_refused(step):
    class Wrong(Both):
        def steps(self, question):
            yield step
            return Outcome("", "")

    with dspy.context(lm=scripted_lm(views)), pytest.raises(TypeError, match="may yield Ask, a list of Ask, Search"):
        Wrong(StubRetriever())(question="Q")


def test_a_method_may_catch_the_error_of_a_step():
    class Careful(Both):
        def steps(self, question):
            try:
                yield Search(["q"], 1)
            except RuntimeError as error:
                return Outcome(str(error), "failed")
            return Outcome("", "")

    class Broken:
        def search(self, queries, k):
            raise RuntimeError("index gone")

    with dspy.context(lm=scripted_lm(views)):
        assert Careful(Broken())(question="Q").answer == "index gone"


def test_lists_given_to_a_call_are_copied_before_it_runs():
    class Growing(SearchProgram):
        def __init__(self, retriever=None):
            super().__init__(retriever)
            self.tell = dspy.Predict("notes: list[str] -> first")

        def steps(self, question):
            notes = ["a"]
            ask = Ask(self.tell, fallback={}, notes=notes)
            notes.append("b")
            yield ask
            notes.append("c")
            return Outcome("", "")

    with dspy.context(lm=scripted_lm(lambda system, user: {"first": "x"}), trace=[]):
        Growing(StubRetriever())(question="Q")
        assert [inputs["notes"] for _, inputs, _ in dspy.settings.trace] == [["a"]]


def test_searches_between_two_rounds_belong_to_the_later():
    class Twice(SearchProgram):
        def steps(self, question):
            yield Search(["a", "b"], 1)
            yield Search(["c"], 2)
            yield EndRound()
            yield Search(["d"], 1)
            yield EndRound()
            return Outcome("", "done")

    with dspy.context(lm=scripted_lm(views)):
        rounds = Twice(StubRetriever())(question="Q").trajectory["rounds"]
    assert [[search["query"] for search in round_["searches"]] for round_ in rounds] == [["a", "b", "c"], ["d"]]
    assert rounds[0]["searches"][2]["scores"] == [1.0, 0.9]


def test_passages_are_cut_to_the_programs_limit_before_any_prompt():
    retriever = StubRetriever("Word " * 100 + "{query}")
    lm = scripted_lm(Roles())
    with dspy.context(lm=lm):
        prediction = VanillaRAG(retriever, passages=1, passage_chars=100)(question="Q")
    (passage,) = prediction.passages
    assert len(passage["text"]) <= 104
    assert passage["text"].endswith("Word ...")
    assert passage["text"] in prompts(lm)[0]
    assert "Word " * 30 not in prompts(lm)[0]
