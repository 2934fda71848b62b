"""What a method's ``steps`` generator may yield, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy


class OutOfBudget(Exception):  # noqa: N818 - control flow, not an error
    """Raised inside ``steps`` at a yield that the budget no longer allows; a final ``Ask`` is still allowed."""


class Ask:
    """One LM call: a predictor of the program and its inputs. Yielding it gives the prediction back.

    A list of them is run side by side and gives the predictions back in order.

    :param predictor: one of the program's own attributes, a ``dspy.Predict`` or ``dspy.ChainOfThought``.
    :param fallback: the outputs to go on with when the reply cannot be parsed; each use is counted.
    :param retries: how often an unparseable reply is asked for again, at a temperature above 0, before the fallback.
    :param final: True for the call that answers: it is made even when the budget is spent.
    :param bounds: (field, least, most): how many items a list output may have in this call, where that depends on the
        configuration.
    :param shrinkable: inputs to shorten, in this order, when the prompt exceeds the model's context.
    :param inputs: the predictor's inputs; lists are copied, so that later changes do not reach recorded traces.
    """

    __slots__ = ("bounds", "fallback", "final", "inputs", "predictor", "retries", "shrinkable")

    def __init__(
        self,
        predictor: dspy.Module,
        *,
        fallback: Mapping[str, Any],
        retries: int = 0,
        final: bool = False,
        bounds: tuple[str, int, int] | None = None,
        shrinkable: tuple[str, ...] = ("passages", "history", "knowledge"),
        **inputs: Any,
    ) -> None:
        self.predictor = predictor
        self.fallback = fallback
        self.retries = retries
        self.final = final
        self.bounds = bounds
        self.shrinkable = shrinkable
        self.inputs = {name: list(value) if isinstance(value, list) else value for name, value in inputs.items()}


@dataclass(frozen=True, slots=True)
class Search:
    """One batched retrieval: the best ``k`` passages for each query, as a list of lists in the order of the queries."""

    queries: Sequence[str]
    k: int


@dataclass(frozen=True, slots=True)
class EndRound:
    """Closes a retrieval round; what was searched since the last one belongs to it.

    ``passages`` is the merged result, ``knowledge`` what the round added as (text, passage id or None).
    """

    passages: Sequence[Any] = ()
    known: Sequence[str] = ()
    missing: str = ""
    directions: Sequence[str] = ()
    knowledge: Sequence[tuple[str, str | None]] = ()
    reasoning_state: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What ``steps`` returns: the answer, why the search stopped, and what the answer was built on."""

    answer: str
    stop_reason: str
    knowledge: Sequence[str] = ()
    reasoning_state: str = ""
    passages: Sequence[Any] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
