"""From one value a round and trajectory to means over questions, round by round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from maps_rag.metrics.drift.estimate import Estimate, Floats, estimates
from maps_rag.metrics.drift.walks import by_question

ByRound = tuple[Estimate | None, ...]
"""A mean over questions for each round, from the first on; None where no question has a value."""

Values = Sequence[float | None]
"""A value for each round of one trajectory; None where there is none."""


def mean_by_round(values: Sequence[Values], questions: Sequence[str]) -> ByRound:
    """Return the mean over questions of each round; several runs of a question are averaged first.

    :param values: for each trajectory, one value a round; they may differ in length.
    :param questions: which question each trajectory belongs to.
    """
    table: Floats = np.full((len(values), max(map(len, values), default=0)), np.nan)
    for row, given in zip(table, values, strict=True):
        row[: len(given)] = [np.nan if value is None else value for value in given]
    numbers = {question: number for number, question in enumerate(dict.fromkeys(questions))}
    return estimates(by_question(table, np.array([numbers[question] for question in questions], dtype=np.int64)))


def unit(vectors: Floats) -> Floats:
    """Return vectors of length 1, shape (n, dimension); one of length 0 becomes NaN, which has no direction."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Floats = np.divide(vectors, lengths, out=np.full_like(vectors, np.nan), where=lengths > 0)
    return units


def mean_or_none(values: Floats) -> float | None:
    """Return the mean of what is not NaN; None where nothing is."""
    there = values[~np.isnan(values)]
    return float(there.mean()) if there.size else None
