"""The base of every method: a DSPy module whose algorithm is a plain step generator."""

from __future__ import annotations

import contextvars
import copy
import inspect
import queue
import threading
from collections.abc import Generator, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import dspy
from maps_rag.programs import effects
from maps_rag.programs.choices import with_choices
from maps_rag.programs.driver import LISTENER, Run, Step, as_plain
from maps_rag.programs.errors import UserError
from maps_rag.programs.lm_call import inner_predict, language_model_of
from maps_rag.programs.manifest import MANIFEST_KEY, check_state, manifest_of
from maps_rag.programs.models import is_local
from maps_rag.programs.retrieval import as_retriever
from maps_rag.programs.steps import Outcome
from maps_rag.programs.trajectory import Round


@dataclass(frozen=True, slots=True)
class Limits:
    """What the driver enforces for every method alike.

    :param max_calls: LM calls per question, the answer included; None for no limit. When they are used up, the
        method answers from what it has (``stop_reason`` "budget").
    :param max_tokens: logical tokens per question after which no further call but the answer is made; the call that
        crosses the limit is finished.
    :param passage_chars: characters after which a passage is cut (ours: 100-word passages are never cut).
    :param demos: whether the demos that ship with the package are used where none were compiled; None means for
        local models only.
    """

    max_calls: int | None = None
    max_tokens: int | None = None
    passage_chars: int = 1200
    demos: bool | None = None

    def __post_init__(self) -> None:
        for name in ("max_calls", "max_tokens"):
            check_count(name, getattr(self, name), optional=True)
        check_count("passage_chars", self.passage_chars, minimum=100)


def check_count(name: str, value: Any, *, minimum: int = 1, optional: bool = False) -> None:
    """Raise a UserError unless ``value`` is a whole number of at least ``minimum`` (or None, where optional)."""
    if optional and value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise UserError(f"{name} must be a whole number of at least {minimum}, but got {value!r}.")


def check_switch(name: str, value: Any) -> None:
    """Raise a UserError unless ``value`` is True or False."""
    if not isinstance(value, bool):
        raise UserError(f"{name} must be True or False, but got {value!r}.")


class SearchProgram(dspy.Module):  # type: ignore[misc]
    """A method that answers a question by searching.

    A subclass names its predictors as plain attributes in ``__init__`` and writes its algorithm as the generator
    ``steps``, which yields :class:`Ask`, :class:`Search` and :class:`EndRound` and returns an :class:`Outcome`.
    Calling, awaiting (``acall``) and streaming (``stream``) the program, recording, failure policies, budgets and
    saving come from here.

    :param retriever: anything with ``search(queries, k)``; a callable ``(query, k)``, a DSPy retriever, or None for
        ``dspy.settings.rm``.
    :param options: the fields of :class:`Limits`.
    """

    def __init__(self, retriever: Any = None, **options: Any) -> None:
        super().__init__()
        unknown = sorted(set(options) - set(Limits.__dataclass_fields__))
        if unknown:
            raise UserError(
                f"{type(self).__name__} has no option {', '.join(unknown)}. It has: {', '.join(self.knobs())}."
            )
        self.retriever = as_retriever(retriever)
        self.limits = Limits(**options)

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        """Answer one question, as a generator of steps."""
        raise NotImplementedError(f"{type(self).__name__} must define steps(question)")

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        """Demos by role, for models too small to follow the instructions alone."""
        return {}

    def settings(self) -> dict[str, Any]:
        """Return every knob and its value as plain data."""
        config = getattr(self, "config", None)
        return (asdict(config) if config is not None else {}) | asdict(self.limits)

    @classmethod
    def knobs(cls) -> list[str]:
        """Return the names that the constructor takes."""
        # The metaclass of dspy.Module hides the constructor's own signature.
        parameters = inspect.signature(cls.__init__).parameters
        own = [name for name, p in parameters.items() if name != "self" and p.kind is not p.VAR_KEYWORD]
        return [*own, *Limits.__dataclass_fields__]

    def forward(self, question: str, choices: Any = None, **inputs: Any) -> dspy.Prediction:
        """Answer a question.

        :param choices: the options of a multiple-choice question, a list of texts or a mapping from letter to text.
            They become part of the question, in prompts and searches alike, and the answer is a letter.
        :return: a prediction with ``answer``, ``passages``, ``knowledge``, ``reasoning_state``, ``rounds`` (retrieval
            rounds), ``steps`` (rounds + 1, as the paper counts), ``stop_reason``, ``failures``, ``usage`` and
            ``trajectory``.
        :raises UserError: when the question is empty, the choices are no options or no language model is set.
        :raises dspy.utils.exceptions.LMError: when the model cannot be reached, after the LM's own ``num_retries``.
        """
        return effects.run(self._answer(question, choices, **inputs))

    async def aforward(self, question: str, choices: Any = None, **inputs: Any) -> dspy.Prediction:
        """Answer a question; the awaitable twin of calling the program."""
        return await effects.arun(self._answer(question, choices, **inputs))

    def _answer(self, question: str, choices: Any, **inputs: Any) -> effects.Effects[dspy.Prediction]:
        if not isinstance(question, str) or not question.strip():
            raise UserError(f"The question is empty (got {question!r}): give a question as text.")
        asked = with_choices(question.strip(), choices)
        run = Run(self, asked)
        outcome = yield from run.drive(self.steps(asked, **inputs))
        record = run.trajectory
        trajectory = record.as_dict()
        return dspy.Prediction(
            answer=outcome.answer,
            passages=[as_plain(passage) for passage in outcome.passages],
            knowledge=list(outcome.knowledge),
            reasoning_state=outcome.reasoning_state,
            rounds=len(record.rounds),
            steps=len(record.rounds) + 1,
            stop_reason=outcome.stop_reason,
            failures=dict(record.failures),
            usage=dict(trajectory["usage"]),
            trajectory=trajectory,
            **outcome.extra,
        )

    def stream(self, question: str, *, steps: bool = False, **inputs: Any) -> Iterator[Round | Step | dspy.Prediction]:
        """Yield each round as it ends, and last the prediction; with ``steps`` also every step within a round.

        ``inputs`` are those of a call, such as ``choices``.
        Leaving the loop early ends the run at its next step.
        """
        inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        left = threading.Event()

        def listen(item: Step | Round) -> None:
            if left.is_set():
                raise _ConsumerLeft
            if steps or isinstance(item, Round):
                inbox.put(item)

        def work() -> None:
            LISTENER.set(listen)
            try:
                inbox.put(self(question=question, **inputs))
            except BaseException as error:
                inbox.put(_Raised(error))

        worker = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
        worker.start()
        try:
            while True:
                item = inbox.get()
                if isinstance(item, _Raised):
                    raise item.error
                yield item
                if isinstance(item, dspy.Prediction):
                    return
        finally:
            left.set()

    def demos_for(self, predictor: dspy.Module) -> list[dict[str, Any]]:
        """Return the shipped demos that a call of this predictor should carry: none where it has its own."""
        inner = inner_predict(predictor)
        wanted = self.limits.demos if self.limits.demos is not None else is_local(language_model_of(predictor))
        if inner.demos or not wanted:
            return []
        role = next((name for name, module in vars(self).items() if module is predictor), "")
        return self.shipped_demos.get(role, [])

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """Return DSPy's state of the predictors and our manifest of the switches they belong to."""
        return {**super().dump_state(json_mode=json_mode), MANIFEST_KEY: manifest_of(self)}

    def load_state(self, state: dict[str, Any], *, allow_unsafe_lm_state: bool = False) -> None:
        """Load compiled prompts and demos.

        :raises UserError: when the state belongs to another method or to other switches, or is damaged; nothing is
            changed then.
        """
        check_state(self, state)
        try:
            super().load_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)
        except (AttributeError, KeyError, TypeError) as error:
            raise UserError(
                f"This state is damaged ({type(error).__name__}: {error}): save the program anew."
            ) from error

    def __deepcopy__(self, memo: dict[int, Any]) -> SearchProgram:
        # Optimizers copy programs dozens of times: retriever and LMs are shared, only prompts and demos are copied.
        memo[id(self.retriever)] = self.retriever
        for predictor in self.predictors():
            if predictor.lm is not None:
                memo[id(predictor.lm)] = predictor.lm
        twin = type(self).__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return twin


class _ConsumerLeft(Exception):  # noqa: N818 - control flow, not an error
    """Raised inside a streamed run whose reader has gone."""


@dataclass(slots=True)
class _Raised:
    error: BaseException
