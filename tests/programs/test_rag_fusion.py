"""RAG-Fusion: one call that rewrites, one batch, fusion by rank, one answer."""

from __future__ import annotations

import pytest
from maps_rag.programs import Passage, UserError
from maps_rag.programs.rag_fusion import RAGFusion, fuse_ranks

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
REWRITES = {"queries": ["first", "second", "third"]}


def script():
    return ByOutput(queries=REWRITES, answer=ANSWER)


def make(**knobs):
    return RAGFusion(StubRetriever(), **knobs)


class Shelf:
    """Finds the same named passages for a query every time."""

    def __init__(self, **found):
        self.found = found

    def search(self, queries, k):
        return [
            [Passage(name, name, f"text of {name}", 1 - rank / 10) for rank, name in enumerate(self.found[query][:k])]
            for query in queries
        ]


def test_two_calls_one_batch_of_n_searches_one_round():
    retriever = StubRetriever()
    prediction, sent = run(RAGFusion(retriever, passages=2), script())
    assert roles_of(prediction) == ["rewrite", "answer"]
    assert len(sent) == prediction.usage["calls"] == 2
    assert retriever.batches == [(["first", "second", "third"], 2)]
    assert "exactly 3" in sent[0]
    assert titles_in(sent[1]) == ["first 0", "second 0", "third 0", "first 1", "second 1", "third 1"]
    assert "second" not in sent[1].replace("second 0", "").replace("second 1", "")
    assert (prediction.answer, prediction.stop_reason, prediction.rounds) == ("the answer", "answered", 1)
    assert len(prediction.passages) == 6


def test_fusion_sums_reciprocal_ranks_worked_out_by_hand():
    # a: 1/61; b: 1/62 + 1/62 = 0.0323; c: 1/63 + 1/61 = 0.0323 (more than b); d: 1/63
    retriever = Shelf(first=["a", "b", "c"], second=["c", "b", "d"])
    prediction, _ = run(
        RAGFusion(retriever, rewrites=2, passages=3), ByOutput(queries={"queries": ["first", "second"]}, answer=ANSWER)
    )
    assert [passage["id"] for passage in prediction.passages] == ["c", "b", "a", "d"]
    assert prediction.passages[0]["score"] == 1.0


def test_the_constant_says_how_much_the_top_ranks_weigh():
    def found(names):
        return [Passage(name, name, "", 0.5) for name in names]

    results = [found("axb"), found("ycb")]
    # constant 60: b = 2/63 = .0317 is ahead of a = 1/61 = .0164; constant 0.1: a = 1/1.1 = .91, b = 2/3.1 = .65
    assert fuse_ranks(results)[0].id == "b"
    assert [passage.id for passage in fuse_ranks(results, constant=0.1)][:3] == ["a", "y", "b"]


def test_ranks_count_from_one():
    a, b, y = (Passage(name, name, "", 0.5) for name in "aby")
    # from 1: b = 2/2.5 = .8 is ahead of a = 1/1.5 = .67; from 0 it would be a = 1/.5 = 2 and b = 2/1.5 = 1.3
    assert fuse_ranks([[a, b], [y, b]], constant=0.5) == [b, a, y]


def test_the_original_searches_the_question_too():
    retriever = StubRetriever()
    replies = ByOutput(queries={"queries": ["q1", "q2", "q3", "q4"]}, answer=ANSWER)
    prediction, _ = run(RAGFusion(retriever, rewrites=4, search_question=True), replies)
    assert retriever.batches == [([QUESTION, "q1", "q2", "q3", "q4"], 5)]
    assert prediction.usage["retrievals"] == 5


def test_more_rewrites_than_asked_for_and_repeats_are_dropped():
    replies = ByOutput(queries={"queries": ["One", " one ", "", "two", "three", "four"]}, answer=ANSWER)
    prediction, _ = run(make(), replies)
    assert queries_of(prediction) == [["One", "two", "three"]]


@pytest.mark.parametrize("search_question", [True, False])
def test_unparseable_rewrites_mean_searching_the_question(search_question):
    prediction, _ = run(make(search_question=search_question), ByOutput(queries="nonsense", answer=ANSWER))
    assert queries_of(prediction) == [[QUESTION]]
    assert prediction.failures == {"rewrite: reply unparseable": 1}
    assert prediction.answer == "the answer"


def test_an_unparseable_answer_is_empty_after_a_second_attempt():
    prediction, sent = run(make(), ByOutput(queries=REWRITES, answer="nonsense"))
    assert (prediction.answer, prediction.failures, len(sent)) == ("", {"answer: reply unparseable": 2}, 3)


def test_a_budget_of_one_call_leaves_it_for_the_answer():
    prediction, _ = run(make(max_calls=1), script())
    assert roles_of(prediction) == ["answer"]
    assert queries_of(prediction) == [[QUESTION]]
    assert (prediction.answer, prediction.stop_reason) == ("the answer", "budget")


def test_sync_async_and_streamed_runs_are_equal():
    check_sync_async_and_stream_are_equal(make, script)


def test_saving_keeps_the_prompts(tmp_path):
    demo = {"question": "q", "passages": ["p"], "reasoning": "r", "answer": "DEMO"}
    check_saving(make, script, tmp_path, demo)


@pytest.mark.parametrize(
    ("knobs", "words"),
    [
        ({"rewrites": 0}, "rewrites must be a whole number of at least 1, but got 0"),
        ({"passages": 2.5}, "passages must be a whole number"),
        ({"search_question": "yes"}, "search_question must be True or False, but got 'yes'"),
        ({"max_rounds": 3}, "RAGFusion has no option max_rounds. It has: .*rewrites, passages, search_question"),
    ],
)
def test_a_wrong_knob_is_refused(knobs, words):
    with pytest.raises(UserError, match=words):
        make(**knobs)
