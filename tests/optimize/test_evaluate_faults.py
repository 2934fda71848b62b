"""The runner against a server of which every fifth reply is a fault."""

from __future__ import annotations

import json
import random
import threading

import pytest
from maps_rag.programs import language_model
from maps_rag.programs.effects import Pause

from tests.models.endpoint import Endpoint, Reply, error
from tests.optimize.runs import Replies, lines, methods, questions, run

QUESTIONS = 40
FAULTS = (
    error(429, headers={"Retry-After": "1"}),
    error(500),
    Reply(hang=True),
    Reply(drop=True),
    Reply('{"reasoning": "r", "answer": "Johann Seb', finish_reason="length"),
    Reply(""),
    Reply(None),
    Reply("no JSON at all"),
    Reply(body="<html>502</html>"),
    error(400, "this question is refused"),
)
REASONS = ("LMRateLimitError", "LMServerError", "LMTimeoutError", "LMTransportError", "LMInvalidRequestError")


@pytest.fixture
def no_pauses(monkeypatch):
    """Do not wait before a request is repeated."""
    monkeypatch.setattr(Pause, "run", lambda pause: None)


def test_with_faults_in_a_fifth_of_the_replies_every_question_ends_and_every_request_is_counted(tmp_path, no_pauses):
    drawn, lock, sent = random.Random(1), threading.Lock(), []

    def reply(body):
        with lock:
            fault = drawn.choice(FAULTS) if drawn.random() < 0.2 else None
            sent.append(fault)
        if fault is not None:
            return fault
        return Reply(Replies()(body["messages"][0]["content"], body["messages"][-1]["content"]))

    asked = {"methods": methods("maps", directions=2) | methods("direct"), "questions": questions(QUESTIONS)}
    with Endpoint(reply) as endpoint:
        lm = language_model("scripted", endpoint.url, cache=False, timeout=1.0, num_retries=2)
        result = run(tmp_path / "run", lm=lm, threads=8, **asked)

    recorded = lines(tmp_path / "run")
    assert {(line["method"], line["id"]) for line in recorded} == {
        (name, f"q{number}") for name in ("maps", "direct") for number in range(QUESTIONS)
    }
    assert len(recorded) == result.total == result.finished + result.failed
    assert {FAULTS.index(fault) for fault in sent if fault is not None} == set(range(len(FAULTS)))
    assert sum(line["usage"]["requests"] for line in recorded) == len(endpoint.requests) == len(sent)
    assert sum(line["usage"]["retries"] for line in recorded) > 0
    failed = [line for line in recorded if "error" in line]
    assert failed
    assert all(line["error"].startswith(REASONS) for line in failed), [line["error"] for line in failed]
    # An answer that is missing says why.
    assert all(line["answer"] or line["failures"] for line in recorded if "error" not in line)
    assert json.dumps(recorded)
