"""Answering without retrieval."""

from __future__ import annotations

import pytest
from maps_rag.programs import UserError
from maps_rag.programs.direct import Direct

from tests.programs.method_checks import (
    QUESTION,
    ByOutput,
    check_saving,
    check_sync_async_and_stream_are_equal,
    roles_of,
    run,
)
from tests.scripted import StubRetriever

ANSWER = {"reasoning": "because", "answer": " the answer "}


def script():
    return ByOutput(answer=ANSWER)


def test_one_call_and_no_search():
    retriever = StubRetriever()
    prediction, sent = run(Direct(retriever), script())
    assert len(sent) == prediction.usage["calls"] == 1
    assert QUESTION in sent[0]
    assert retriever.batches == []
    assert (prediction.answer, prediction.reasoning) == ("the answer", "because")
    assert (prediction.stop_reason, prediction.rounds, prediction.steps) == ("answered", 0, 1)
    assert prediction.passages == []


def test_it_answers_within_a_budget_of_one_call():
    prediction, sent = run(Direct(), script(), choices=["x", "y"])
    assert len(sent) == 1
    capped, again = run(Direct(max_calls=1), script(), choices=["x", "y"])
    assert (again, capped.answer) == (sent, prediction.answer)


def test_an_unparseable_answer_is_asked_once_more_and_then_empty():
    prediction, sent = run(Direct(), ByOutput(answer="nonsense"))
    assert (prediction.answer, prediction.failures, len(sent)) == ("", {"answer: reply unparseable": 2}, 2)
    prediction, _ = run(Direct(), ByOutput(answer=["nonsense", ANSWER]))
    assert prediction.answer == "the answer"
    assert roles_of(prediction) == ["answer", "answer"]


def test_sync_async_and_streamed_runs_are_equal():
    check_sync_async_and_stream_are_equal(Direct, script)


def test_saving_keeps_the_prompts(tmp_path):
    check_saving(Direct, script, tmp_path, {"question": "q", "reasoning": "r", "answer": "DEMO"})


def test_a_knob_it_does_not_have_is_refused():
    with pytest.raises(UserError, match="Direct has no option passages"):
        Direct(passages=5)
