"""s3: search, select, stop or go on; the generator answers from what was selected."""

from __future__ import annotations

import pytest
from maps_rag.programs import Passage, UserError
from maps_rag.programs.s3 import S3

from tests.programs.method_checks import (
    QUESTION,
    ByOutput,
    check_saving,
    check_sync_async_and_stream_are_equal,
    queries_of,
    roles_of,
    run,
    titles_in,
)
from tests.scripted import StubRetriever

ANSWER = {"reasoning": "because", "answer": "the answer"}


def turn(selected, query="", complete=False):
    return {"selected": selected, "complete": complete, "next_query": query}


def script():
    return ByOutput(selected=[turn([2], "second"), turn([1, 3], complete=True)], answer=ANSWER)


def make(**knobs):
    return S3(StubRetriever(), **knobs)


def test_it_starts_from_the_question_and_answers_from_the_union_of_what_was_selected():
    retriever = StubRetriever()
    prediction, sent = run(S3(retriever, passages=8), script())
    # By hand: search q; select 2; search "second"; select 1 and 3, complete; generate. R = 2: 3 calls, 2 retrievals.
    assert retriever.batches == [([QUESTION], 8), (["second"], 8)]
    assert roles_of(prediction) == ["searcher", "searcher", "answer"]
    first, second, generator = sent
    assert titles_in(first) == [f"{QUESTION} {rank}" for rank in range(8)]
    assert f"[1] Title {QUESTION} 0: text about" in first
    assert "at most 3" in first
    assert f"Query: {QUESTION}" in second
    assert "Selected: 2" in second
    assert titles_in(second) == [*titles_in(first), *[f"second {rank}" for rank in range(8)]]
    assert titles_in(generator) == [f"{QUESTION} 1", "second 0", "second 2"]
    assert "Selected" not in generator
    assert prediction.stop_reason == "sufficient"
    assert (prediction.rounds, prediction.usage["retrievals"], prediction.usage["calls"]) == (2, 2, 3)
    assert [passage["id"] for passage in prediction.passages] == [f"{QUESTION}/1", "second/0", "second/2"]
    assert [item["passage_id"] for item in prediction.trajectory["rounds"][1]["knowledge"]] == ["second/0", "second/2"]
    assert len(prediction.trajectory["rounds"][1]["passages"]) == 8


@pytest.mark.parametrize("cap", [1, 4])
def test_at_the_cap_the_last_search_is_selected_from_and_the_generator_answers(cap):
    prediction, sent = run(make(max_rounds=cap), ByOutput(selected=turn([1], "another"), answer=ANSWER))
    assert (prediction.rounds, prediction.stop_reason, prediction.answer) == (cap, "max_rounds", "the answer")
    assert len(sent) == cap + 1
    assert queries_of(prediction) == [[QUESTION], *[["another"]] * (cap - 1)]


def test_the_original_is_8_3_3_after_the_search_for_the_question():
    from maps_rag.programs.s3 import PRESETS

    retriever = StubRetriever()
    program = S3(retriever, **PRESETS["original"])
    prediction, _ = run(program, ByOutput(selected=turn([1, 2, 3, 4, 5], "another"), answer=ANSWER))
    assert retriever.batches == [([QUESTION], 8), *[(["another"], 8)] * 3]
    assert len(prediction.passages) == 3 + 3  # "another" finds the same passages each time


def test_a_search_of_which_nothing_was_selected_gives_all_it_found():
    replies = ByOutput(selected=[turn([], "second"), turn([9, 0, -1], complete=True)], answer=ANSWER)
    _, sent = run(make(passages=2), replies)
    assert titles_in(sent[-1]) == [f"{QUESTION} 0", f"{QUESTION} 1", "second 0", "second 1"]
    assert "Selected: none" in sent[1]


def test_the_selection_is_cut_and_repeated_numbers_count_once():
    _, sent = run(make(select=2), ByOutput(selected=turn([3, 3, 1, 2], complete=True), answer=ANSWER))
    assert titles_in(sent[-1]) == [f"{QUESTION} 2", f"{QUESTION} 0"]


def test_the_generator_gets_no_more_passages_than_its_cap():
    prediction, _ = run(make(max_passages=2), ByOutput(selected=turn([], complete=True), answer=ANSWER))
    assert [passage["id"] for passage in prediction.passages] == [f"{QUESTION}/0", f"{QUESTION}/1"]


def test_a_passage_selected_twice_is_in_the_union_once():
    class Same:
        def search(self, queries, k):
            return [[Passage("p", "The page", "Its text.")] for _ in queries]

    _, sent = run(S3(Same()), ByOutput(selected=[turn([1], "more"), turn([1], complete=True)], answer=ANSWER))
    assert sent[-1].count("The page: Its text.") == 1


def test_a_searcher_without_a_next_query_stops():
    prediction, _ = run(make(), ByOutput(selected=turn([1], " "), answer=ANSWER))
    assert (prediction.stop_reason, prediction.rounds) == ("no_query", 1)


def test_an_unparseable_turn_selects_nothing_and_stops():
    prediction, sent = run(make(passages=2), ByOutput(selected="nonsense", answer=ANSWER))
    assert prediction.failures == {"searcher: reply unparseable": 2}
    assert (prediction.stop_reason, prediction.answer) == ("no_query", "the answer")
    assert titles_in(sent[-1]) == [f"{QUESTION} 0", f"{QUESTION} 1"]


def test_an_unparseable_answer_is_empty_after_a_second_attempt():
    prediction, _ = run(make(), ByOutput(selected=turn([1], complete=True), answer="nonsense"))
    assert (prediction.answer, prediction.failures) == ("", {"answer: reply unparseable": 2})


def test_a_budget_ends_in_an_answer_from_what_was_found():
    prediction, sent = run(make(passages=2, max_calls=2), ByOutput(selected=turn([2], "second"), answer=ANSWER))
    assert roles_of(prediction) == ["searcher", "answer"]
    assert prediction.stop_reason == "budget"
    assert titles_in(sent[-1]) == [f"{QUESTION} 1", "second 0", "second 1"]


def test_sync_async_and_streamed_runs_are_equal():
    check_sync_async_and_stream_are_equal(make, script)


def test_saving_keeps_the_prompts(tmp_path):
    demo = {"question": "q", "passages": ["p"], "reasoning": "r", "answer": "DEMO"}
    check_saving(make, script, tmp_path, demo)


@pytest.mark.parametrize("knob", ["passages", "select", "max_rounds", "max_passages"])
@pytest.mark.parametrize("value", [0, 1.5, True, None])
def test_a_count_that_is_none_is_refused(knob, value):
    with pytest.raises(UserError, match=f"{knob} must be a whole number of at least 1"):
        make(**{knob: value})
