"""MultiSearch, step by step: what the paper's cycle of search, information and merge would do, worked out by hand."""

from __future__ import annotations

import pytest
from maps_rag.programs import UserError
from maps_rag.programs.history import NO_ACTION
from maps_rag.programs.multi_search import PRESETS, MultiSearch

from tests.programs.search_script import Shelf, check_runs_are_equal, check_state_survives, run, value_of
from tests.scripted import StubRetriever

SHELF = {"a": ["A", "B"], "b": ["B", "C"], "c": ["B", "C", "D"]}


def turn(*queries, relevant=(), merged="", thought="I need it.", answer=""):
    return {
        "relevant": list(relevant),
        "merged": merged,
        "reasoning": thought,
        "queries": list(queries),
        "answer": answer,
    }


FORCED = {"reasoning": "Best guess.", "answer": "Rome"}
TWO_ROUNDS = [
    turn("a", "b"),
    turn("c", relevant=[2], merged="B says it.", thought="One more."),
    turn(relevant=[2], merged="D says so too.", answer="Oslo"),
]


def test_repeated_and_irrelevant_passages_go_and_information_and_merge_go_on():
    retriever = Shelf(**SHELF)
    prediction, sent = run(MultiSearch(retriever), TWO_ROUNDS)
    assert retriever.batches == [(["a", "b"], 5), (["c"], 5)]
    open_first, open_second = "Thought: I need it.\nSearch: a\nSearch: b", "Thought: One more.\nSearch: c"
    first = f"{open_first}\nResult: B: about B\nMerged: B says it."
    assert [value_of(prompt, "history") for prompt in sent] == [[], [open_first], [first, open_second]]
    # B came twice, at ranks 2 and 1; in the second round B stands in the history, C does not.
    assert [value_of(prompt, "passages") for prompt in sent] == [
        [],
        ["[1] A: about A", "[2] B: about B", "[3] C: about C"],
        ["[1] C: about C", "[2] D: about D"],
    ]
    assert (prediction.answer, prediction.stop_reason, prediction.rounds) == ("Oslo", "answered", 2)
    assert (prediction.usage["calls"], prediction.usage["retrievals"]) == (3, 3)
    assert prediction.knowledge == ["B says it.", "D says so too."]
    assert [passage["id"] for passage in prediction.passages] == ["B", "D"]
    assert prediction.trajectory["rounds"][0]["knowledge"] == [{"text": "B says it.", "passage_id": None}]


def test_at_most_n_distinct_queries_are_searched_a_turn():
    retriever = Shelf(**SHELF)
    run(MultiSearch(retriever, queries=2), [turn("a", "A", "", "b", "c"), turn(answer="Oslo")])
    assert retriever.batches == [(["a", "b"], 5)]


@pytest.mark.parametrize("relevant", [[3, 3, 0, 99, -1], [3]])
def test_numbers_of_no_passage_are_ignored(relevant):
    prediction, _ = run(MultiSearch(Shelf(**SHELF)), [turn("a", "b"), turn(relevant=relevant, answer="Oslo")])
    assert [passage["id"] for passage in prediction.passages] == ["C"]


CAPPED = [turn("a"), turn("b", relevant=[1], merged="A says it.")]


def test_the_turn_after_the_last_round_merges_and_its_answer_counts():
    replies = [*CAPPED, turn("c", relevant=[2], merged="C says it.", answer="Oslo")]
    prediction, sent = run(MultiSearch(Shelf(**SHELF), max_rounds=2), replies)
    assert (prediction.answer, prediction.stop_reason, prediction.rounds, len(sent)) == ("Oslo", "max_rounds", 2, 3)
    assert prediction.knowledge == ["A says it.", "C says it."]


def test_an_answer_is_forced_only_where_the_last_turn_gives_none_and_the_switch_is_on():
    replies = [*CAPPED, turn("c", relevant=[2], merged="C says it."), FORCED]
    prediction, sent = run(MultiSearch(Shelf(**SHELF), max_rounds=2), replies)
    assert (prediction.answer, prediction.stop_reason, len(sent)) == ("Rome", "max_rounds", 4)
    assert value_of(sent[-1], "history")[-1].endswith("Merged: C says it.")
    prediction, sent = run(MultiSearch(Shelf(**SHELF), max_rounds=2, force_answer=False), replies[:3])
    assert (prediction.answer, len(sent)) == ("", 3)


def test_an_unusable_reply_keeps_all_passages_and_costs_a_turn():
    prediction, sent = run(MultiSearch(Shelf(**SHELF)), [turn("a"), "nonsense", turn(answer="Oslo")])
    assert prediction.failures == {"agent: reply unparseable": 1}
    searched, message = value_of(sent[-1], "history")
    assert searched == "Thought: I need it.\nSearch: a\nResult: A: about A\nResult: B: about B"
    assert message == f"Result: {NO_ACTION}"
    assert prediction.answer == "Oslo"


def test_an_unusable_forced_answer_is_asked_for_once_more_and_then_empty():
    prediction, _ = run(MultiSearch(Shelf(**SHELF), max_rounds=1), [turn("a"), turn("b"), "nonsense", "nonsense"])
    assert (prediction.answer, prediction.failures) == ("", {"answer: reply unparseable": 2})


def test_a_spent_budget_answers_from_the_passages_not_yet_merged():
    prediction, sent = run(MultiSearch(Shelf(**SHELF), max_calls=2), [turn("a"), FORCED])
    assert (prediction.answer, prediction.stop_reason, len(sent)) == ("Rome", "budget", 2)
    assert "Result: B: about B" in value_of(sent[-1], "history")[0]
    assert [record["complete"] for record in prediction.trajectory["rounds"]] == [False]


def test_called_awaited_and_streamed_runs_are_equal():
    check_runs_are_equal(MultiSearch(Shelf(**SHELF)), TWO_ROUNDS)


def test_a_compiled_state_survives_saving_and_loading(tmp_path):
    programs = [MultiSearch(Shelf(**SHELF)) for _ in range(2)]
    check_state_survives(*programs, TWO_ROUNDS, tmp_path / "state.json")


def test_the_presets_construct():
    assert MultiSearch(StubRetriever(), **PRESETS["original"]).config.queries == 3
    assert MultiSearch(StubRetriever(), **PRESETS["paper"]).config == MultiSearch(StubRetriever()).config


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"queries": 0}, "queries must be a whole number of at least 1, but got 0"),
        ({"passages": "5"}, "passages must be"),
        ({"force_answer": 0}, "force_answer must be True or False, but got 0"),
        ({"directions": 3}, "MultiSearch has no option directions. It has: retriever, queries, passages"),
    ],
)
def test_a_wrong_knob_is_refused_with_what_is_allowed(knobs, words):
    with pytest.raises(UserError, match=words):
        MultiSearch(StubRetriever(), **knobs)
