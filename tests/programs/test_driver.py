"""The driver: fan-out, the ledger of calls, requests and tokens, and what reaches DSPy's own bookkeeping."""

from __future__ import annotations

import asyncio
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import dspy
import pytest
from dspy import lm15
from dspy.utils.callback import BaseCallback
from maps_rag.programs import MAPS, Ask, EndRound, Outcome, Search, SearchProgram, VanillaRAG
from maps_rag.programs.effects import Pause

from tests.scripted import Roles, StubRetriever, chat, prompts, scripted_lm


class First(dspy.Signature):
    """Give a first view."""

    question: str = dspy.InputField()
    first: str = dspy.OutputField()


class Second(dspy.Signature):
    """Give a second view."""

    question: str = dspy.InputField()
    second: str = dspy.OutputField()


class Both(SearchProgram):
    """Two views side by side, any number of each."""

    def __init__(self, retriever=None, *, width: int = 1, **options):
        super().__init__(retriever, **options)
        self.width = width
        self.one = dspy.Predict(First)
        self.two = dspy.Predict(Second)

    def steps(self, question):
        asks = []
        for i in range(self.width):
            asks.append(Ask(self.one, fallback={"first": "lost"}, question=f"{question} {i}"))
            asks.append(Ask(self.two, fallback={"second": "lost"}, question=f"{question} {i}"))
        views = yield asks
        return Outcome(" ".join(next(iter(dict(view.items()).values())) for view in views), "answered")


def views(system, user):
    number = user.split("question ## ]]\n", 1)[1].split("\n", 1)[0]
    return {"first": f"1:{number}"} if "`first`" in system else {"second": f"2:{number}"}


def both(reply=views, **options):
    lm = scripted_lm(reply)
    with dspy.context(lm=lm, trace=[], **options):
        program = Both(StubRetriever(), width=3)
        prediction = program(question="Q")
        return prediction, lm, program, list(dspy.settings.trace or [])


# Calls side by side.


def test_calls_side_by_side_come_back_in_order():
    prediction, lm, _, _ = both()
    assert prediction.answer == "1:Q 0 2:Q 0 1:Q 1 2:Q 1 1:Q 2 2:Q 2"
    assert [call["role"] for call in prediction.trajectory["calls"]] == ["one", "two"] * 3
    assert prediction.usage["calls"] == len(prompts(lm)) == 6


def test_calls_side_by_side_really_overlap():
    meeting = threading.Barrier(6, timeout=30)

    class Meeting:
        def complete(self, request):
            meeting.wait()  # breaks unless all six are under way at once
            system, user = request.system, request.messages[-1].text
            return lm15.Response(
                id=None,
                model=request.model,
                message=lm15.Message.assistant(chat(views(system, user))),
                finish_reason="stop",
                usage=lm15.Usage(1, 1, 2),
            )

    with dspy.context(lm=dspy.LM("scripted/model", engine=Meeting(), cache=False)):
        prediction = Both(StubRetriever(), width=3)(question="Q")
    assert prediction.usage["calls"] == 6
    assert prediction.failures == {}


def test_calls_side_by_side_keep_lm_trace_and_usage():
    prediction, _, program, trace = both(track_usage=True)
    assert sorted(id(predictor) for predictor, _, _ in trace) == sorted([id(program.one), id(program.two)] * 3)
    (usage,) = prediction.get_lm_usage().values()
    ledger = prediction.usage
    assert usage["total_tokens"] == ledger["prompt_tokens"] + ledger["completion_tokens"] > 0


def test_calls_side_by_side_are_equal_when_awaited():
    threaded, _, _, _ = both()

    async def main():
        with dspy.context(lm=scripted_lm(views)):
            return await Both(StubRetriever(), width=3).acall(question="Q")

    awaited = asyncio.run(main())
    assert awaited.answer == threaded.answer
    for one, other in zip(awaited.trajectory["calls"], threaded.trajectory["calls"], strict=True):
        assert {**one, "seconds": 0} == {**other, "seconds": 0}


def test_one_unusable_reply_among_several_takes_its_own_fallback_only():
    def reply(system, user):
        return "nonsense" if "Q 1" in user and "`second`" in system else views(system, user)

    prediction, _, _, _ = both(reply)
    assert prediction.answer == "1:Q 0 2:Q 0 1:Q 1 lost 1:Q 2 2:Q 2"
    assert prediction.failures == {"two: reply unparseable": 1}


@pytest.mark.parametrize("run", ["sync", "async"])
def test_an_error_among_several_is_raised(run):
    def reply(system, user):
        return lm15.AuthError("wrong key", status=401) if "Q 1" in user else views(system, user)

    program = Both(StubRetriever(), width=3)

    def ask():
        with dspy.context(lm=scripted_lm(reply)):
            return program(question="Q") if run == "sync" else asyncio.run(program.acall(question="Q"))

    with pytest.raises(dspy.LMError, match="wrong key"):
        ask()


def test_an_error_among_awaited_calls_leaves_none_running():
    async def main():
        class Slow:
            def __init__(self):
                self.cancelled = 0

            async def complete(self, request):
                if "`first`" in request.system:
                    raise lm15.AuthError("wrong key", status=401)
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    self.cancelled += 1
                    raise

        slow = Slow()
        lm = dspy.LM("scripted/model", engine=scripted_lm(views).engine, async_engine=slow, cache=False)
        with dspy.context(lm=lm), pytest.raises(dspy.LMError, match="wrong key"):
            await Both(StubRetriever(), width=1).acall(question="Q")
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_budget_covers_all_calls_of_a_fan_out_or_none():
    class Budgeted(Both):
        def steps(self, question):
            from maps_rag.programs import OutOfBudget

            try:
                yield [Ask(self.one, fallback={}, question="a"), Ask(self.one, fallback={}, question="b")]
            except OutOfBudget:
                return Outcome("nothing asked", "budget")
            return Outcome("asked", "answered")

    lm = scripted_lm(views)
    with dspy.context(lm=lm):
        assert Budgeted(StubRetriever(), max_calls=2)(question="Q").stop_reason == "budget"
        assert prompts(lm) == []
        assert Budgeted(StubRetriever(), max_calls=3)(question="Q").stop_reason == "answered"


@pytest.mark.parametrize("step", [[], [1], "text", None, [Search(["q"], 1)]])
def test_a_step_of_another_kind_is_refused(step):
    class Wrong(Both):
        def steps(self, question):
            yield step
            return Outcome("", "")

    with dspy.context(lm=scripted_lm(views)), pytest.raises(TypeError, match="may yield Ask, a list of Ask, Search"):
        Wrong(StubRetriever())(question="Q")


def test_a_method_may_catch_the_error_of_a_step():
    class Careful(Both):
        def steps(self, question):
            try:
                yield Search(["q"], 1)
            except RuntimeError as error:
                return Outcome(str(error), "failed")
            return Outcome("", "")

    class Broken:
        def search(self, queries, k):
            raise RuntimeError("index gone")

    with dspy.context(lm=scripted_lm(views)):
        assert Careful(Broken())(question="Q").answer == "index gone"


def test_lists_given_to_a_call_are_copied_before_it_runs():
    class Growing(SearchProgram):
        def __init__(self, retriever=None):
            super().__init__(retriever)
            self.tell = dspy.Predict("notes: list[str] -> first")

        def steps(self, question):
            notes = ["a"]
            ask = Ask(self.tell, fallback={}, notes=notes)
            notes.append("b")
            yield ask
            notes.append("c")
            return Outcome("", "")

    with dspy.context(lm=scripted_lm(lambda system, user: {"first": "x"}), trace=[]):
        Growing(StubRetriever())(question="Q")
        assert [inputs["notes"] for _, inputs, _ in dspy.settings.trace] == [["a"]]


def test_searches_between_two_rounds_belong_to_the_later():
    class Twice(SearchProgram):
        def steps(self, question):
            yield Search(["a", "b"], 1)
            yield Search(["c"], 2)
            yield EndRound()
            yield Search(["d"], 1)
            yield EndRound()
            return Outcome("", "done")

    with dspy.context(lm=scripted_lm(views)):
        rounds = Twice(StubRetriever())(question="Q").trajectory["rounds"]
    assert [[search["query"] for search in round_["searches"]] for round_ in rounds] == [["a", "b", "c"], ["d"]]
    assert rounds[0]["searches"][2]["scores"] == [1.0, 0.9]


def test_passages_are_cut_to_the_programs_limit_before_any_prompt():
    retriever = StubRetriever("Word " * 100 + "{query}")
    lm = scripted_lm(Roles())
    with dspy.context(lm=lm):
        prediction = VanillaRAG(retriever, passages=1, passage_chars=100)(question="Q")
    (passage,) = prediction.passages
    assert len(passage["text"]) <= 104
    assert passage["text"].endswith("Word ...")
    assert passage["text"] in prompts(lm)[0]
    assert "Word " * 30 not in prompts(lm)[0]


# The ledger.


def totals(predictions, name):
    return sum(prediction.usage[name] for prediction in predictions)


def check_ledger(predictions, lm):
    engine = lm.engine
    assert totals(predictions, "requests") == len(engine.requests)
    assert totals(predictions, "prompt_tokens") == engine.input_tokens
    assert totals(predictions, "completion_tokens") == engine.output_tokens
    assert totals(predictions, "billed_tokens") == engine.input_tokens + engine.output_tokens


@pytest.mark.parametrize("quiet", [False, True])
def test_the_ledger_equals_the_engines_count_under_threads(quiet):
    lm = scripted_lm(Roles(rounds=2, write=["nonsense"] * 5))
    program = MAPS(StubRetriever(), directions=2)

    def ask(i):
        with dspy.context(lm=lm, disable_history=quiet):
            return program(question=f"question {i}")

    with ThreadPoolExecutor(8) as pool:
        predictions = list(pool.map(ask, range(24)))
    check_ledger(predictions, lm)
    assert totals(predictions, "calls") == 24 * 8
    assert len(lm.history) == (0 if quiet else len(lm.engine.requests))


def test_the_ledger_equals_the_engines_count_when_awaited():
    lm = scripted_lm(Roles(rounds=2, write=["nonsense"] * 5))
    program = MAPS(StubRetriever(), directions=2)

    async def main():
        with dspy.context(lm=lm):
            return await asyncio.gather(*(program.acall(question=f"question {i}") for i in range(12)))

    check_ledger(asyncio.run(main()), lm)


@pytest.fixture
def cache():
    before = dspy.cache
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    yield
    dspy.cache = before


def test_replies_from_the_cache_count_as_logical_tokens_only(cache):
    lm = scripted_lm(Roles(rounds=2), cache=True)
    with dspy.context(lm=lm):
        first = MAPS(StubRetriever(), directions=2)(question="Q?")
        again = MAPS(StubRetriever(), directions=2)(question="Q?")
    check_ledger([first], lm)
    for name in ("calls", "requests", "prompt_tokens", "completion_tokens"):
        assert again.usage[name] == first.usage[name] > 0
    assert (first.usage["cache_hits"], again.usage["cache_hits"]) == (0, again.usage["requests"])
    assert again.usage["billed_tokens"] == 0
    assert again.answer == first.answer


def test_usage_of_each_role_adds_up():
    with dspy.context(lm=scripted_lm(Roles(rounds=2))):
        prediction = MAPS(StubRetriever(), directions=2)(question="Q?")
    calls = prediction.trajectory["calls"]
    for name in ("requests", "prompt_tokens", "completion_tokens", "billed_tokens"):
        assert sum(call[name] for call in calls) == prediction.usage[name]
    assert all(call["prompt_tokens"] > 0 and call["completion_tokens"] > 0 for call in calls)
    assert all(call["seconds"] > 0 for call in calls)
    assert prediction.usage["seconds"] >= sum(call["seconds"] for call in calls)


def test_a_server_that_reports_no_usage_is_counted_with_zero_tokens():
    class Silent:
        def complete(self, request):
            reply = Roles(rounds=0)(request.system, request.messages[-1].text)
            return lm15.Response(
                id=None,
                model=request.model,
                message=lm15.Message.assistant(chat(reply)),
                finish_reason="stop",
                usage=lm15.Usage(),
            )

    with dspy.context(lm=dspy.LM("scripted/model", engine=Silent(), cache=False)):
        prediction = MAPS(StubRetriever())(question="Q?")
    assert (prediction.usage["requests"], prediction.usage["prompt_tokens"]) == (2, 0)
    assert prediction.usage["cache_hits"] == 0


def test_prompt_tokens_read_from_the_servers_cache_are_reported():
    class Caching:
        def complete(self, request):
            reply = Roles(rounds=0)(request.system, request.messages[-1].text)
            return lm15.Response(
                id=None,
                model=request.model,
                message=lm15.Message.assistant(chat(reply)),
                finish_reason="stop",
                usage=lm15.Usage(100, 10, 110, cache_read_tokens=60),
            )

    with dspy.context(lm=dspy.LM("scripted/model", engine=Caching(), cache=False)):
        prediction = MAPS(StubRetriever())(question="Q?")
    assert prediction.usage["prompt_tokens"] == 200
    assert prediction.usage["cached_prompt_tokens"] == 120


def test_a_dummy_lm_of_dspy_works_as_well():
    lm = dspy.utils.DummyLM([{"reasoning": "r", "answer": "a"}])
    with dspy.context(lm=lm):
        prediction = VanillaRAG(StubRetriever())(question="Q?")
    assert (prediction.answer, prediction.usage["requests"]) == ("a", 1)


def test_an_lm_by_way_of_litellm_is_counted_too(cache):
    reply = chat({"reasoning": "r", "answer": "a"})
    lm = dspy.LM("openai/some-model", engine="litellm", api_key="none", mock_response=reply)
    with dspy.context(lm=lm):
        first = VanillaRAG(StubRetriever())(question="Q?")
        again = VanillaRAG(StubRetriever())(question="Q?")
    assert first.answer == again.answer == "a"
    assert first.usage["prompt_tokens"] > 0
    assert first.usage["billed_tokens"] == first.usage["prompt_tokens"] + first.usage["completion_tokens"]
    assert (again.usage["cache_hits"], again.usage["billed_tokens"]) == (1, 0)


# What reaches DSPy's own bookkeeping.


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
