"""DSPy's ReAct, driven: the agent's own loop, our record of it."""

from __future__ import annotations

import itertools
import threading

import dspy
import pytest
from maps_rag.programs import UserError
from maps_rag.programs.inverted import inverted
from maps_rag.programs.react import PRESETS, ReAct
from maps_rag.signatures.react import AnswerBySearching

from tests.programs.search_script import CHAT, QUESTION, Shelf, check_runs_are_equal, check_state_survives, run, script
from tests.scripted import StubRetriever, prompts, scripted_lm

SHELF = {"a": ["A", "B"], "b": ["B", "C"]}


def search(query, thought="I need it."):
    return {"next_thought": thought, "next_tool_name": "search", "next_tool_args": {"query": query}}


FINISH = {"next_thought": "Done.", "next_tool_name": "finish", "next_tool_args": {}}
ANSWER = {"reasoning": "So it is.", "answer": "Oslo"}
TWO_SEARCHES = [search("a"), search("b", "One more."), FINISH, ANSWER]


def test_two_searches_take_four_calls_and_leave_our_record_and_the_agents_own():
    retriever = Shelf(**SHELF)
    prediction, sent = run(ReAct(retriever), TWO_SEARCHES)
    assert retriever.batches == [(["a"], 5), (["b"], 5)]
    assert [call["role"] for call in prediction.trajectory["calls"]] == ["react", "react", "react", "extract"]
    assert [call["round"] for call in prediction.trajectory["calls"]] == [1, 2, 3, 3]
    assert (prediction.answer, prediction.reasoning) == ("Oslo", "So it is.")
    assert (prediction.stop_reason, prediction.rounds, prediction.steps) == ("answered", 2, 3)
    assert (prediction.usage["calls"], prediction.usage["retrievals"]) == (4, 2)
    assert prediction.usage["prompt_tokens"] > 0
    assert [passage["id"] for passage in prediction.passages] == ["A", "B", "C"]
    assert [record["missing"] for record in prediction.trajectory["rounds"]] == ["I need it.", "One more."]
    assert prediction.react_trajectory["observation_1"] == ["B: about B", "C: about C"]
    assert prediction.react_trajectory["tool_name_2"] == "finish"
    assert "C: about C" in sent[-1]


def test_its_prompts_are_those_of_a_bare_dspy_react():
    _, sent = run(ReAct(Shelf(**SHELF)), TWO_SEARCHES)
    retriever = Shelf(**SHELF)

    def search(query: str) -> list[str]:
        """Search the corpus for passages about one person, work, place or event."""
        return [f"{passage.title}: {passage.text}" for passage in retriever.search([query], 5)[0]]

    lm = script(TWO_SEARCHES)
    with dspy.context(lm=lm, adapter=CHAT):
        bare = dspy.ReAct(AnswerBySearching, [search])(question=QUESTION)
    assert bare.answer == "Oslo"
    assert prompts(lm) == sent


def test_at_the_cap_the_agent_answers_from_its_trajectory():
    prediction, sent = run(ReAct(Shelf(**SHELF), max_rounds=2), [search("a"), search("b"), ANSWER])
    assert (prediction.answer, prediction.stop_reason, prediction.rounds, len(sent)) == ("Oslo", "max_rounds", 2, 3)


def test_wrong_arguments_are_an_observation_and_no_search():
    wrong = {"next_thought": "Hm.", "next_tool_name": "search", "next_tool_args": {"text": "a"}}
    prediction, _ = run(ReAct(Shelf(**SHELF)), [wrong, FINISH, ANSWER])
    assert "Execution error in search" in prediction.react_trajectory["observation_0"]
    assert (prediction.rounds, prediction.answer) == (0, "Oslo")


def test_an_unusable_turn_is_asked_for_once_more_and_then_ends_the_search():
    prediction, _ = run(ReAct(Shelf(**SHELF)), ["nonsense", *TWO_SEARCHES])
    assert (prediction.rounds, prediction.failures) == (2, {"react: reply unparseable": 1})
    prediction, _ = run(ReAct(Shelf(**SHELF)), [search("a"), "nonsense", "nonsense", ANSWER])
    assert (prediction.answer, prediction.stop_reason, prediction.rounds) == ("Oslo", "unparseable", 1)


def test_an_unusable_answer_is_asked_for_once_more_and_then_empty():
    prediction, _ = run(ReAct(Shelf(**SHELF)), [FINISH, "nonsense", "nonsense"])
    assert (prediction.answer, prediction.failures) == ("", {"extract: reply unparseable": 2})


def test_a_spent_budget_answers_from_the_trajectory():
    prediction, sent = run(ReAct(Shelf(**SHELF), max_calls=2), [search("a"), ANSWER])
    assert (prediction.answer, prediction.stop_reason, prediction.rounds, len(sent)) == ("Oslo", "budget", 1, 2)


def test_an_error_of_the_retriever_is_raised_and_no_thread_stays():
    def broken(query, k):
        raise ConnectionError("no index")

    before = threading.active_count()
    with pytest.raises(ConnectionError, match="no index"):
        run(ReAct(broken), TWO_SEARCHES)
    assert threading.active_count() == before


def test_an_inverted_function_ends_when_its_generator_is_closed():
    ended = []

    def work(perform):
        try:
            perform("first step")
        except Exception:
            ended.append("held up")
        finally:
            ended.append("ended")

    steps = inverted(work)
    assert next(steps) == "first step"
    steps.close()
    assert ended == ["ended"]


def test_called_awaited_and_streamed_runs_are_equal():
    check_runs_are_equal(ReAct(Shelf(**SHELF)), TWO_SEARCHES)


def test_a_compiled_state_survives_saving_and_loading(tmp_path):
    programs = [ReAct(Shelf(**SHELF)) for _ in range(2)]
    check_state_survives(*programs, TWO_SEARCHES, tmp_path / "state.json")


def test_a_copy_shares_the_retriever_and_not_the_demos():
    program = ReAct(Shelf(**SHELF))
    twin = program.deepcopy()
    twin.react.demos = [dspy.Example(question="q")]
    assert program.react.demos == []
    assert twin.retriever is program.retriever
    assert [name for name, _ in twin.named_predictors()] == ["react", "extract.predict"]
    assert run(twin, TWO_SEARCHES)[0].answer == "Oslo"


def test_bootstrapping_finds_demos_for_both_roles():
    replies = itertools.cycle(TWO_SEARCHES)
    lm = scripted_lm(lambda system, user: next(replies))
    optimizer = dspy.BootstrapFewShot(metric=lambda gold, pred, trace: pred.answer == "Oslo", max_labeled_demos=0)
    example = dspy.Example(question=QUESTION, answer="Oslo").with_inputs("question")
    with dspy.context(lm=lm, adapter=CHAT):
        compiled = optimizer.compile(ReAct(Shelf(**SHELF)), trainset=[example])
    assert [len(predictor.demos) for predictor in compiled.predictors()] == [1, 1]
    assert compiled.extract.predict.demos[0].answer == "Oslo"


def test_shipped_demos_fit_their_roles_three_each():
    program = ReAct(Shelf(**SHELF), demos=True)
    for name, predictor in program.named_predictors():
        demos = program.shipped_demos[name.removesuffix(".predict")]
        assert len(demos) == 3
        assert all(set(demo) == set(predictor.signature.fields) for demo in demos)
    _, sent = run(program, TWO_SEARCHES)
    assert all("Perrin Askew" in prompt for prompt in sent)


def test_the_presets_construct():
    assert ReAct(StubRetriever(), **PRESETS["original"]).config.max_rounds == 20
    assert ReAct(StubRetriever(), **PRESETS["paper"]).config == ReAct(StubRetriever()).config


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"passages": 0}, "passages must be a whole number of at least 1, but got 0"),
        ({"max_rounds": "10"}, "max_rounds must be"),
        ({"max_iters": 3}, "ReAct has no option max_iters. It has: retriever, passages, max_rounds"),
    ],
)
def test_a_wrong_knob_is_refused_with_what_is_allowed(knobs, words):
    with pytest.raises(UserError, match=words):
        ReAct(StubRetriever(), **knobs)
