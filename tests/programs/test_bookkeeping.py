"""What reaches DSPy's own bookkeeping: history, usage, callbacks, streams."""

from __future__ import annotations

import asyncio
import io

import dspy
import pytest
from dspy import lm15
from dspy.utils.callback import BaseCallback
from maps_rag.programs import MAPS
from maps_rag.programs.effects import Pause

from tests.programs.side_by_side import Both, both, views
from tests.scripted import Roles, StubRetriever, prompts, scripted_lm


def test_the_history_of_lm_and_program_shows_every_call():
    lm = scripted_lm(Roles())
    with dspy.context(lm=lm):
        program = MAPS(StubRetriever(), directions=2)
        prediction = program(question="Q?")
    assert len(lm.history) == len(program.history) == prediction.usage["calls"]
    shown = io.StringIO()
    lm.inspect_history(1, file=shown)
    assert "the answer" in shown.getvalue()


def test_usage_tracking_of_dspy_sees_what_the_ledger_sees():
    with dspy.context(lm=scripted_lm(Roles()), track_usage=True):
        prediction = MAPS(StubRetriever(), directions=2)(question="Q?")
    (usage,) = prediction.get_lm_usage().values()
    assert usage["total_tokens"] == prediction.usage["billed_tokens"]
    with dspy.context(lm=scripted_lm(Roles())), dspy.track_usage() as tracker:
        prediction = MAPS(StubRetriever(), directions=2)(question="Q?")
    (usage,) = tracker.get_total_tokens().values()
    assert usage["total_tokens"] == prediction.usage["billed_tokens"]


class Spans(BaseCallback):
    """Builds the tree of module and LM spans, as a tracing back end would."""

    def __init__(self):
        self.open: dict[str, str] = {}
        self.parents: list[tuple[str, str | None]] = []
        self.ended: list[tuple[str, bool]] = []

    def start(self, call_id, name):
        from dspy.utils.callback import ACTIVE_CALL_ID

        self.open[call_id] = name
        self.parents.append((name, self.open.get(ACTIVE_CALL_ID.get())))

    def end(self, call_id, exception):
        self.ended.append((self.open[call_id], exception is not None))

    def on_module_start(self, call_id, instance, inputs):
        self.start(call_id, type(instance).__name__)

    def on_module_end(self, call_id, outputs, exception):
        self.end(call_id, exception)

    def on_lm_start(self, call_id, instance, inputs):
        self.start(call_id, "LM")

    def on_lm_end(self, call_id, outputs, exception):
        self.end(call_id, exception)


def ask_sync(program):
    program(question="Q?")


def ask_async(program):
    asyncio.run(program.acall(question="Q?"))


def ask_streamed(program):
    list(program.stream("Q?"))


@pytest.mark.parametrize("how", [ask_sync, ask_async, ask_streamed])
def test_a_question_is_one_root_span_with_one_module_and_one_lm_span_per_call(how):
    spans = Spans()
    with dspy.context(lm=scripted_lm(Roles()), callbacks=[spans]):
        how(MAPS(StubRetriever(), directions=2))
    roots = [name for name, parent in spans.parents if parent is None]
    assert roots == ["MAPS"]
    assert [child for child in spans.parents if child[0] == "Predict"] == [("Predict", "MAPS")] * 5
    assert [child for child in spans.parents if child[0] == "LM"] == [("LM", "Predict")] * 5
    assert len(spans.ended) == 11
    assert not any(failed for _, failed in spans.ended)


def test_spans_of_calls_side_by_side_hang_on_their_program():
    spans = Spans()
    both(callbacks=[spans])
    assert sorted(spans.parents, key=str) == sorted(
        [("Both", None)] + [("Predict", "Both")] * 6 + [("LM", "Predict")] * 6, key=str
    )


def test_callbacks_of_the_lm_itself_fire_once_per_call():
    spans = Spans()
    lm = scripted_lm(Roles(), callbacks=[spans])
    with dspy.context(lm=lm):
        MAPS(StubRetriever(), directions=2)(question="Q?")
    assert [name for name, _ in spans.parents] == ["LM"] * 5


def test_the_users_lm_is_left_as_it_was():
    lm = scripted_lm(Roles(), num_retries=5, temperature=0.4)
    before = {name: value for name, value in vars(lm).items() if name != "history"}
    with dspy.context(lm=lm):
        MAPS(StubRetriever())(question="Q?")
    assert {name: value for name, value in vars(lm).items() if name != "history"} == before


# Streams.


def test_an_error_within_a_stream_reaches_its_reader():
    with dspy.context(lm=scripted_lm(Roles(answer=lm15.AuthError("wrong key", status=401)))):
        stream = MAPS(StubRetriever(), directions=2).stream("Q?")
        assert next(stream).index == 1
        with pytest.raises(dspy.LMError, match="wrong key"):
            next(stream)


def test_a_stream_uses_the_settings_of_its_reader():
    lm = scripted_lm(Roles())
    with dspy.context(lm=lm, trace=[]):
        *_, prediction = MAPS(StubRetriever(), directions=2).stream("Q?")
        assert len(dspy.settings.trace) == 5
    assert prediction.answer == "the answer"


def streamified(program, lm, **options):
    async def main():
        with dspy.context(lm=lm):
            streaming = dspy.streamify(program, **options)
            return [item async for item in streaming(question="Q?")]

    return asyncio.run(main())


@pytest.mark.parametrize("is_async_program", [False, True])
def test_streamify_streams_the_answer_and_ends_with_the_prediction(is_async_program):
    program = MAPS(StubRetriever(), directions=2)
    listener = dspy.streaming.StreamListener(signature_field_name="answer", predict=program.answer)
    lm = scripted_lm(Roles())
    items = streamified(program, lm, stream_listeners=[listener], is_async_program=is_async_program)
    assert "".join(item.chunk for item in items if isinstance(item, dspy.streaming.StreamResponse)) == "the answer"
    assert isinstance(items[-1], dspy.Prediction)
    assert items[-1].usage["calls"] == items[-1].usage["requests"] == len(prompts(lm)) == 5
    assert items[-1].usage["billed_tokens"] == lm.engine.input_tokens + lm.engine.output_tokens


@pytest.mark.parametrize("is_async_program", [False, True])
def test_streamify_runs_calls_side_by_side_one_after_the_other(is_async_program):
    items = streamified(Both(StubRetriever(), width=2), scripted_lm(views), is_async_program=is_async_program)
    assert items[-1].answer == "1:Q? 0 2:Q? 0 1:Q? 1 2:Q? 1"
    assert len(items) > 1


def test_a_retry_pauses_for_the_time_that_was_asked_for(monkeypatch):
    import time

    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    Pause(2.5).run()
    assert slept == [2.5]

    async def sleep(seconds):
        slept.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    asyncio.run(Pause(1.5).arun())
    assert slept == [2.5, 1.5]
