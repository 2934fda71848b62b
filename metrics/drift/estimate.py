"""A mean over questions with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

Floats = NDArray[np.float64]

LEVEL = 0.95
"""The level of every interval in this package."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over ``n`` questions, and Student's interval of it; no limits where fewer than two questions have it."""

    mean: float
    low: float | None
    high: float | None
    n: int


def estimate(values: Sequence[float] | Floats, variance: float = 0.0) -> Estimate | None:
    """Return the mean of one value per question and its 95 % interval; None where no question has a value.

    :param values: shape (questions,); NaN where a question has none.
    :param variance: of the mean, from something else than the choice of these questions; it widens the interval.
    """
    given = np.asarray(values, dtype=np.float64)
    given = given[~np.isnan(given)]
    if not given.size:
        return None
    mean = float(given.mean())
    if given.size == 1:
        return Estimate(mean, None, None, 1)
    error = np.sqrt(given.var(ddof=1) / given.size + variance)
    half = float(student.ppf((1 + LEVEL) / 2, given.size - 1) * error)
    return Estimate(mean, mean - half, mean + half, int(given.size))


def estimates(values: Floats) -> tuple[Estimate | None, ...]:
    """Return :func:`estimate` of each column.

    :param values: shape (questions, columns); NaN where a question has no value.
    """
    return tuple(estimate(column) for column in values.T)
