"""ParallelSearch, step by step: what the original's loop would do, worked out by hand."""

from __future__ import annotations

import pytest
from maps_rag.programs import UserError
from maps_rag.programs.history import NO_ACTION
from maps_rag.programs.parallel_search import PRESETS, ParallelSearch

from tests.programs.search_script import Shelf, check_runs_are_equal, check_state_survives, run, value_of
from tests.scripted import StubRetriever

SHELF = {"a": ["A", "B"], "b": ["B", "C"], "c": ["D"]}


def search(*queries, thought="I need it.", answer=""):
    return {"reasoning": thought, "queries": list(queries), "answer": answer}


DONE = {"reasoning": "All is found.", "queries": [], "answer": "Oslo"}
FORCED = {"reasoning": "Best guess.", "answer": "Rome"}
TWO_ROUNDS = [search("a", "b"), search("c", thought="One more."), DONE]


def test_results_of_all_sub_queries_enter_the_history_in_order_with_repeats():
    retriever = Shelf(**SHELF)
    prediction, sent = run(ParallelSearch(retriever), TWO_ROUNDS)
    assert retriever.batches == [(["a", "b"], 5), (["c"], 5)]
    first = (
        "Thought: I need it.\nSearch: a\nSearch: b\n"
        "Result: A: about A\nResult: B: about B\nResult: B: about B\nResult: C: about C"
    )
    second = "Thought: One more.\nSearch: c\nResult: D: about D"
    assert [value_of(prompt, "history") for prompt in sent] == [[], [first], [first, second]]
    assert (prediction.answer, prediction.stop_reason, prediction.rounds) == ("Oslo", "answered", 2)
    assert (prediction.usage["calls"], prediction.usage["retrievals"]) == (3, 3)
    recorded = [[passage["id"] for passage in record["passages"]] for record in prediction.trajectory["rounds"]]
    assert recorded == [["A", "B", "B", "C"], ["D"]]
    assert [passage["id"] for passage in prediction.passages] == ["A", "B", "C", "D"]


def test_a_repeated_sub_query_is_searched_again_and_those_beyond_n_are_dropped():
    retriever = Shelf(**SHELF)
    run(ParallelSearch(retriever, queries=3), [search("a", " a ", "", "b", "c"), DONE])
    assert retriever.batches == [(["a", "a", "b"], 5)]


def test_a_turn_with_sub_queries_searches_even_if_it_answers_as_well():
    prediction, _ = run(ParallelSearch(Shelf(**SHELF)), [search("a", answer="Paris"), DONE])
    assert (prediction.answer, prediction.rounds) == ("Oslo", 1)


def test_at_the_cap_an_answer_is_forced_from_the_history_in_one_more_call():
    prediction, sent = run(ParallelSearch(Shelf(**SHELF), max_rounds=2), [search("a"), search("b"), FORCED])
    assert (prediction.answer, prediction.stop_reason, len(sent)) == ("Rome", "max_rounds", 3)
    assert [call["role"] for call in prediction.trajectory["calls"]] == ["agent", "agent", "answer"]
    assert len(value_of(sent[-1], "history")) == 2


def test_unforced_only_an_answer_counts_in_the_last_turn():
    knobs = {"max_rounds": 1, "force_answer": False}
    prediction, sent = run(ParallelSearch(Shelf(**SHELF), **knobs), [search("a"), search("b")])
    assert (prediction.answer, prediction.stop_reason, prediction.rounds, len(sent)) == ("", "max_rounds", 1, 2)
    prediction, _ = run(ParallelSearch(Shelf(**SHELF), **knobs), [search("a"), DONE])
    assert (prediction.answer, prediction.stop_reason) == ("Oslo", "max_rounds")


@pytest.mark.parametrize(("reply", "failures"), [("nonsense", 1), (search(), 0), (search("none", answer="N/A"), 0)])
def test_a_turn_that_does_nothing_costs_a_turn_and_leaves_a_message(reply, failures):
    prediction, sent = run(ParallelSearch(Shelf(**SHELF), max_rounds=2), [reply, search("a"), FORCED])
    assert sum(prediction.failures.values()) == failures
    assert value_of(sent[1], "history")[0].endswith(f"Result: {NO_ACTION}")
    assert (prediction.rounds, prediction.answer) == (1, "Rome")


def test_an_unusable_forced_answer_is_asked_for_once_more_and_then_empty():
    prediction, _ = run(ParallelSearch(Shelf(**SHELF), max_rounds=1), [search("a"), "nonsense", "nonsense"])
    assert (prediction.answer, prediction.failures) == ("", {"answer: reply unparseable": 2})


def test_a_spent_budget_still_answers_from_the_history():
    program = ParallelSearch(Shelf(**SHELF), max_calls=2, force_answer=False)
    prediction, sent = run(program, [search("a"), FORCED])
    assert (prediction.answer, prediction.stop_reason, len(sent)) == ("Rome", "budget", 2)
    assert len(value_of(sent[-1], "history")) == 1


def test_called_awaited_and_streamed_runs_are_equal():
    check_runs_are_equal(ParallelSearch(Shelf(**SHELF)), TWO_ROUNDS)


def test_a_compiled_state_survives_saving_and_loading(tmp_path):
    programs = [ParallelSearch(Shelf(**SHELF)) for _ in range(2)]
    check_state_survives(*programs, TWO_ROUNDS, tmp_path / "state.json")


def test_the_presets_construct():
    original = ParallelSearch(StubRetriever(), **PRESETS["original"]).config
    assert (original.passages, original.max_rounds, original.force_answer) == (3, 4, False)
    assert ParallelSearch(StubRetriever(), **PRESETS["paper"]).config == ParallelSearch(StubRetriever()).config


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"queries": 0}, "queries must be a whole number of at least 1, but got 0"),
        ({"max_rounds": True}, "max_rounds must be"),
        ({"force_answer": None}, "force_answer must be True or False, but got None"),
        ({"directions": 3}, "ParallelSearch has no option directions. It has: retriever, queries, passages"),
    ],
)
def test_a_wrong_knob_is_refused_with_what_is_allowed(knobs, words):
    with pytest.raises(UserError, match=words):
        ParallelSearch(StubRetriever(), **knobs)
