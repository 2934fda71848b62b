"""Drives a method's ``steps``: records, applies failure policies, enforces budgets, retries.

Written once, as generators of effects (see effects.py), for sync, async and streamed runs alike.
"""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import dspy
from dspy.utils.exceptions import AdapterParseError, ContextWindowExceededError, LMError
from maps_rag.programs.effects import Effects, Fork, Pause, Retrieve
from maps_rag.programs.lm_call import LMCall, inner_predict, language_model_of
from maps_rag.programs.models import ReplyCutOffError, retry_delay
from maps_rag.programs.passages import check_results, cut_passage
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import stated
from maps_rag.programs.trajectory import Call, Round, SearchRecord, Trajectory
from maps_rag.programs.types import Passage
from maps_rag.signatures.fields import bounded

if TYPE_CHECKING:
    from maps_rag.programs.base import SearchProgram

logger = logging.getLogger(__name__)

RETRY_TEMPERATURE = 0.7  # ours; an unparseable reply at temperature 0 would come back word for word


@dataclass(frozen=True, slots=True)
class Step:
    """One finished step of a running question, for live display: a role's outputs or the queries of a search."""

    role: str
    round: int
    outputs: dict[str, Any]


LISTENER: contextvars.ContextVar[Callable[[Step | Round], None] | None] = contextvars.ContextVar(
    "maps_rag_listener", default=None
)
# Called with the record of each question as it begins: where a question fails, it is all that is left of it.
RECORDS: contextvars.ContextVar[Callable[[Trajectory], None] | None] = contextvars.ContextVar(
    "maps_rag_records", default=None
)


class Run:
    """One question on its way through a program."""

    def __init__(self, program: SearchProgram, question: str) -> None:
        self.program = program
        self.trajectory = Trajectory(question, type(program).__name__, program.settings())
        self.roles = {id(module): name for name, module in vars(program).items() if isinstance(module, dspy.Module)}
        self.searches: list[SearchRecord] = []
        self.calls = 0  # made or allowed, those side by side included, which reach the trajectory later
        self.tokens = 0
        self.listener = LISTENER.get()
        self.lock = threading.Lock()
        if (keep := RECORDS.get()) is not None:
            keep(self.trajectory)

    @property
    def round(self) -> int:
        return len(self.trajectory.rounds) + 1

    def drive(self, steps: Generator[Any, Any, Outcome]) -> Effects[Outcome]:
        """Carry a method's generator to its end and return what it returned."""
        start = time.perf_counter()
        reply: Any = None
        raised: Exception | None = None
        try:
            while True:
                step = steps.throw(raised) if raised else steps.send(reply)
                reply = raised = None
                try:
                    reply = yield from self._perform(step)
                except Exception as error:  # the method sees it at its yield, and may handle it
                    raised = error
        except StopIteration as done:
            outcome: Outcome = replace(done.value, answer=stated(done.value.answer))
        finally:
            steps.close()
            self.trajectory.seconds = time.perf_counter() - start
        if self.searches:  # a round that the budget cut short
            self._end_round(EndRound(), complete=False)
        self.trajectory.answer, self.trajectory.stop_reason = outcome.answer, outcome.stop_reason
        return outcome

    def _perform(self, step: Any) -> Effects[Any]:
        match step:
            case Ask():
                self._allow([step])
                return (yield from self._ask(step, self.trajectory.calls))
            case Search(queries, k):
                return (yield from self._search(queries, k))
            case EndRound():
                self._end_round(step)
                return None
            case [*asks] if asks and all(isinstance(ask, Ask) for ask in asks):
                self._allow(asks)
                calls: list[list[Call]] = [[] for _ in asks]
                try:
                    return (yield Fork([self._ask(*branch) for branch in zip(asks, calls, strict=True)]))
                finally:  # in the order of the asks, whichever ended first
                    self.trajectory.calls.extend(call for branch in calls for call in branch)
        raise TypeError(f"steps() may yield Ask, a list of Ask, Search or EndRound, not {type(step).__name__}")

    def _allow(self, asks: Sequence[Ask]) -> None:
        """Take calls out of the budget, or raise OutOfBudget; a final call is always made."""
        final = any(ask.final for ask in asks)
        if not self._take(len(asks), final):
            if not final:
                raise OutOfBudget
            self.calls += len(asks)

    def _take(self, calls: int, final: bool) -> bool:
        """Take so many calls out of the budget, one more staying for the answer; False where it does not have them."""
        limits = self.program.limits
        with self.lock:
            needed = self.calls + calls + (not final)
            if limits.max_calls is not None and needed > limits.max_calls:
                return False
            if limits.max_tokens is not None and self.tokens >= limits.max_tokens:
                return False
            self.calls += calls
            return True

    def _ask(self, ask: Ask, calls: list[Call]) -> Effects[dspy.Prediction]:
        role = self.roles.get(id(ask.predictor), type(ask.predictor).__name__)
        for attempt in range(ask.retries + 1):
            if attempt and not self._take(1, ask.final):
                break
            call = Call(role, self.round)
            calls.append(call)
            config = self._again(ask.predictor, attempt) if attempt else {}
            try:
                prediction = yield from self._request(ask, call, config)
            except AdapterParseError as error:
                self._failed(f"{role}: {call.failure}")
                logger.info("%s of %r could not be used (%s)", role, self.trajectory.question, error)
            else:
                if self.listener is not None:
                    self.listener(Step(role, call.round, dict(prediction.items())))
                return prediction
        return dspy.Prediction(**ask.fallback)

    @staticmethod
    def _again(predictor: dspy.Module, attempt: int) -> dict[str, Any]:
        own = {**language_model_of(predictor).kwargs, **inner_predict(predictor).config}
        config: dict[str, Any] = {"rollout_id": 1_000 * ((own.get("rollout_id") or 0) + 1) + attempt}
        # Left alone where the provider's own default holds: some models refuse any other.
        if own.get("temperature") == 0:
            config["temperature"] = RETRY_TEMPERATURE
        return config

    def _request(self, ask: Ask, call: Call, config: dict[str, Any]) -> Effects[dspy.Prediction]:
        """Make one call, repeating what failed in transport and shortening what does not fit."""
        inputs = dict(ask.inputs)
        shrinkable = list(ask.shrinkable)
        attempts = language_model_of(ask.predictor).num_retries
        retried = 0
        while True:
            effect = LMCall(ask.predictor, self._arguments(ask, inputs, config))
            try:
                prediction = yield effect
            except AdapterParseError as error:
                call.failure = _why(error, effect)
                raise
            except ContextWindowExceededError as error:
                if not _shrink(inputs, shrinkable):
                    call.failure = type(error).__name__
                    raise
                self._failed(f"{call.role}: prompt too long, shortened")
            except LMError as error:
                delay = retry_delay(error, retried)
                if delay is None or retried >= attempts:
                    call.failure = type(error).__name__
                    raise
                retried += 1
                call.retries += 1
                logger.warning("Request failed (%s); trying again in %.0f s", error, delay)
                yield Pause(delay)
            else:
                return prediction
            finally:
                self._count(call, effect)

    def _arguments(self, ask: Ask, inputs: dict[str, Any], config: dict[str, Any]) -> dict[str, Any]:
        # Fresh lists: DSPy's trace keeps references to what it is given.
        arguments = {name: list(v) if isinstance(v, list) else v for name, v in inputs.items()}
        if config:
            arguments["config"] = config
        if ask.bounds is not None:
            arguments["signature"] = bounded(inner_predict(ask.predictor).signature, *ask.bounds)
        if demos := self.program.demos_for(ask.predictor):
            arguments["demos"] = demos
        return arguments

    def _count(self, call: Call, effect: LMCall) -> None:
        with self.lock:
            self.tokens += sum(request.prompt_tokens + request.completion_tokens for request in effect.requests)
        call.seconds += effect.seconds
        call.requests += len(effect.requests)
        for request in effect.requests:
            call.prompt_tokens += request.prompt_tokens
            call.completion_tokens += request.completion_tokens
            call.cached_prompt_tokens += request.cached_prompt_tokens
            if request.cache_hit:
                call.cache_hits += 1
            else:
                call.billed_tokens += request.prompt_tokens + request.completion_tokens

    def _search(self, queries: Sequence[str], k: int) -> Effects[list[list[Passage]]]:
        found = yield Retrieve(self.program.retriever, list(queries), k)
        limit = self.program.limits.passage_chars
        checked = check_results(found, len(queries), k, self.program.retriever)
        results = [[cut_passage(passage, limit) for passage in result] for result in checked]
        for query, result in zip(queries, results, strict=True):
            self.searches.append(
                SearchRecord(query, [passage.id for passage in result], [passage.score for passage in result])
            )
        if self.listener is not None:
            titles = [[passage.title for passage in result] for result in results]
            self.listener(Step("search", self.round, {"queries": list(queries), "titles": titles}))
        return results

    def _end_round(self, end: EndRound, complete: bool = True) -> None:
        record = Round(
            self.round,
            known=list(end.known),
            missing=end.missing,
            directions=list(end.directions),
            searches=self.searches,
            passages=[as_plain(passage) for passage in end.passages],
            knowledge=[{"text": text, "passage_id": source} for text, source in end.knowledge],
            reasoning_state=end.reasoning_state,
            complete=complete,
        )
        self.searches = []
        self.trajectory.rounds.append(record)
        if self.listener is not None:
            self.listener(record)

    def _failed(self, what: str) -> None:
        with self.lock:
            self.trajectory.failures[what] += 1


def as_plain(passage: Passage) -> dict[str, Any]:
    """Return a passage as JSON-able data."""
    return {"id": passage.id, "title": passage.title, "text": passage.text, "score": passage.score}


def _why(error: AdapterParseError, effect: LMCall) -> str:
    if isinstance(error, ReplyCutOffError):
        return "reply cut off"
    empty = effect.requests[-1].empty if effect.requests else False
    return "reply empty" if empty or not (error.lm_response or "").strip() else "reply unparseable"


def _shrink(inputs: dict[str, Any], shrinkable: list[str]) -> bool:
    """Halve the next shortenable list: passages lose their tail, knowledge its oldest half. False if none is left."""
    while shrinkable:
        name = shrinkable.pop(0)
        items = inputs.get(name)
        if isinstance(items, list) and len(items) > 1:
            half = len(items) // 2
            inputs[name] = items[half:] if name in ("knowledge", "history") else items[: len(items) - half]
            return True
    return False
