"""Search-o1, step by step: what the original's loop would do, worked out by hand."""

from __future__ import annotations

import pytest
from maps_rag.programs import UserError
from maps_rag.programs.history import condense
from maps_rag.programs.search_o1 import LIMIT_REACHED, NOTHING_FOUND, PRESETS, SEARCHED_BEFORE, SearchO1

from tests.programs.search_script import Shelf, check_runs_are_equal, check_state_survives, run, value_of
from tests.scripted import StubRetriever


def search(query, thought="I need it."):
    return {"reasoning": thought, "query": query, "answer": ""}


DONE = {"reasoning": "All is found.", "query": "", "answer": "Oslo"}
TWO_HOPS = [
    search("founder", "Who founded it?"),
    {"information": "Askew founded it."},
    search("Askew university", "Where did Askew study?"),
    {"information": "None."},
    DONE,
]


def test_two_searches_take_five_calls_and_only_distilled_information_enters_the_history():
    retriever = StubRetriever()
    prediction, sent = run(SearchO1(retriever, passages=2), TWO_HOPS)
    assert retriever.batches == [(["founder"], 2), (["Askew university"], 2)]
    assert [call["role"] for call in prediction.trajectory["calls"]] == [
        "reason",
        "refine",
        "reason",
        "refine",
        "reason",
    ]
    first = "Thought: Who founded it?\nSearch: founder\nResult: Askew founded it."
    second = f"Thought: Where did Askew study?\nSearch: Askew university\nResult: {NOTHING_FOUND}"
    assert [value_of(prompt, "history") for prompt in sent[::2]] == [[], [first], [first, second]]
    assert "text about" not in sent[2] + sent[4]
    assert value_of(sent[1], "query") == "founder"
    assert value_of(sent[1], "passages") == [f"Title founder {rank}: text about founder {rank}" for rank in (0, 1)]
    assert value_of(sent[1], "history") == ["Step 1: Thought: Who founded it?", "Step 2: Search: founder"]
    assert (prediction.answer, prediction.stop_reason, prediction.rounds) == ("Oslo", "answered", 2)
    assert prediction.knowledge == ["Askew founded it."]
    assert [len(record["knowledge"]) for record in prediction.trajectory["rounds"]] == [1, 0]
    assert len(prediction.passages) == 4


def test_the_condensed_history_keeps_the_first_the_last_four_and_every_query_and_result():
    turns = [
        "Thought: one\ntwo\nthree\nSearch: q\nResult: r",
        "Thought: six\nseven\neight\nnine\nten",
    ]
    assert condense(turns) == [
        "Step 1: Thought: one",
        "...",
        "Step 4: Search: q",
        "Step 5: Result: r",
        "...",
        "Step 7: seven",
        "Step 8: eight",
        "Step 9: nine",
        "Step 10: ten",
    ]
    assert condense(turns[:1]) == [
        "Step 1: Thought: one",
        "Step 2: two",
        "Step 3: three",
        "Step 4: Search: q",
        "Step 5: Result: r",
    ]
    assert condense([]) == []


def test_a_repeated_query_gets_a_message_and_costs_a_turn_but_no_search():
    replies = [search("Same query"), {"information": "x"}, search("same  QUERY"), DONE]
    prediction, sent = run(SearchO1(StubRetriever()), replies)
    assert prediction.usage["retrievals"] == 1
    assert value_of(sent[-1], "history")[1].endswith(f"Search: same QUERY\nResult: {SEARCHED_BEFORE}")


def test_any_query_beyond_the_limit_gets_a_message_repeated_or_not():
    replies = [search("a"), {"information": "x"}, search("b"), search("a"), DONE]
    prediction, sent = run(SearchO1(StubRetriever(), max_rounds=1), replies)
    assert (prediction.usage["retrievals"], len(sent)) == (1, 5)
    _, limit, repeat = value_of(sent[-1], "history")
    assert limit.endswith(f"Search: b\nResult: {LIMIT_REACHED}")
    assert repeat.endswith(f"Search: a\nResult: {LIMIT_REACHED}")
    assert (prediction.stop_reason, prediction.answer) == ("answered", "Oslo")


CAPPED = [search("a"), {"information": "x"}, search("b"), {"information": "y"}]


def test_the_cap_on_turns_forces_no_answer():
    prediction, sent = run(SearchO1(StubRetriever(), max_turns=2), CAPPED)
    assert (prediction.answer, prediction.stop_reason) == ("", "max_turns")
    assert (len(sent), prediction.rounds, prediction.failures) == (4, 2, {})


def test_an_answer_written_beside_a_query_stands_when_the_turns_run_out():
    replies = [{**search("a"), "answer": "Rome"}, {"information": "x"}]
    prediction, _ = run(SearchO1(StubRetriever(), max_turns=1), replies)
    assert (prediction.answer, prediction.rounds) == ("Rome", 1)


def test_an_answer_is_forced_from_the_whole_history_where_that_is_switched_on():
    replies = [*CAPPED, {"reasoning": "r", "answer": "Paris"}]
    prediction, sent = run(SearchO1(StubRetriever(), max_turns=2, force_answer=True), replies)
    assert (prediction.answer, prediction.stop_reason) == ("Paris", "max_turns")
    assert "Result: y" in value_of(sent[-1], "history")[-1]


def test_backing_off_answers_without_the_history_and_says_so():
    replies = [*CAPPED, {"reasoning": "r", "answer": "Paris"}]
    prediction, sent = run(SearchO1(StubRetriever(), max_turns=2, back_off=True), replies)
    assert (prediction.answer, prediction.backed_off) == ("Paris", True)
    assert "history" not in sent[-1]
    assert prediction.trajectory["calls"][-1]["role"] == "direct"
    answered, _ = run(SearchO1(StubRetriever(), back_off=True), TWO_HOPS)
    assert (answered.answer, answered.backed_off) == ("Oslo", False)


def test_an_unusable_turn_is_asked_for_once_more_and_then_ends_the_search():
    prediction, sent = run(SearchO1(StubRetriever()), ["nonsense", *TWO_HOPS])
    assert (prediction.answer, prediction.failures) == ("Oslo", {"reason: reply unparseable": 1})
    prediction, sent = run(SearchO1(StubRetriever()), ["nonsense", "nonsense"])
    assert (prediction.answer, prediction.stop_reason, len(sent)) == ("", "unparseable", 2)


def test_unusable_information_counts_as_nothing_found():
    prediction, sent = run(SearchO1(StubRetriever()), [search("a"), "nonsense", DONE])
    assert prediction.failures == {"refine: reply unparseable": 1}
    assert f"Result: {NOTHING_FOUND}" in value_of(sent[-1], "history")[-1]
    assert prediction.answer == "Oslo"


def test_a_spent_budget_still_answers_from_the_history():
    replies = [*CAPPED[:2], {"reasoning": "r", "answer": "Paris"}]
    prediction, sent = run(SearchO1(StubRetriever(), max_calls=3, back_off=True), replies)
    assert (prediction.answer, prediction.stop_reason, len(sent)) == ("Paris", "budget", 3)
    assert "Result: x" in value_of(sent[-1], "history")[-1]


def test_called_awaited_and_streamed_runs_are_equal():
    check_runs_are_equal(SearchO1(Shelf(**{"founder": ["A"], "Askew university": ["A", "B"]})), TWO_HOPS)


def test_a_compiled_state_survives_saving_and_loading(tmp_path):
    check_state_survives(SearchO1(StubRetriever()), SearchO1(StubRetriever()), TWO_HOPS, tmp_path / "state.json")


@pytest.mark.parametrize("back_off", [False, True])
def test_shipped_demos_fit_their_roles_three_each(back_off):
    program = SearchO1(StubRetriever(), demos=True, back_off=back_off)
    for name, predictor in program.named_predictors():
        demos = program.shipped_demos[name]
        assert len(demos) == 3
        assert all(set(demo) == set(predictor.signature.fields) for demo in demos)
    _, sent = run(program, TWO_HOPS)
    assert "Perrin Askew" in sent[0]


def test_the_presets_construct():
    assert SearchO1(StubRetriever(), **PRESETS["original"]).config.passages == 10
    assert SearchO1(StubRetriever(), **PRESETS["paper"]).config == SearchO1(StubRetriever()).config


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"max_rounds": 0}, "max_rounds must be a whole number of at least 1, but got 0"),
        ({"max_turns": 1.5}, "max_turns must be"),
        ({"passages": None}, "passages must be"),
        ({"force_answer": "no"}, "force_answer must be True or False, but got 'no'"),
        ({"back_off": 1}, "back_off must be True or False, but got 1"),
        ({"top_k": 3}, "SearchO1 has no option top_k. It has: retriever, passages, max_rounds"),
    ],
)
def test_a_wrong_knob_is_refused_with_what_is_allowed(knobs, words):
    with pytest.raises(UserError, match=words):
        SearchO1(StubRetriever(), **knobs)
