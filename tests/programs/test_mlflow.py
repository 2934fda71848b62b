"""Tracing by MLflow, where it is installed (it is no dependency: it is larger than everything else together)."""

from __future__ import annotations

import dspy
import pytest
from maps_rag.programs import MAPS

from tests.scripted import Roles, StubRetriever, scripted_lm

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")


@pytest.fixture
def traced(tmp_path):
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path}/traces.db")
    mlflow.dspy.autolog()
    yield
    mlflow.dspy.autolog(disable=True)


def test_mlflow_sees_a_question_as_one_tree_with_every_call(traced):
    with dspy.context(lm=scripted_lm(Roles(rounds=2))):
        prediction = MAPS(StubRetriever(), directions=2)(question="Q?")
    spans = mlflow.get_trace(mlflow.get_last_active_trace_id(), flush=True).data.spans
    roots = [span for span in spans if span.parent_id is None]
    assert [span.name for span in roots] == ["MAPS.forward"]
    calls = [span for span in spans if span.span_type == "CHAT_MODEL"]
    assert len(calls) == prediction.usage["calls"] == 8
