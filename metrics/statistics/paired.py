"""Two methods compared on the same questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from maps_rag.metrics.statistics.samples import (
    CONFIDENCE,
    RESAMPLES,
    Floats,
    as_pair,
    chance_of,
    check_draws,
    percentiles,
    resampled_means,
)
from maps_rag.programs.errors import UserError

Alternative = Literal["two-sided", "greater", "less"]
"""Which difference a test looks for: any, the first method better, or the first worse."""

_DECIMALS = 9  # differences of scores that agree so far are the same difference


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A mean difference, first less second, with its interval and two-sided p-value, over ``n`` shared questions."""

    difference: float
    low: float
    high: float
    p_value: float
    n: int


@dataclass(frozen=True, slots=True)
class SignTest:
    """How often the first was better (``wins``), worse (``losses``) or equal (``ties``), and the exact p-value."""

    wins: int
    losses: int
    ties: int
    p_value: float


@dataclass(frozen=True, slots=True)
class RankTest:
    """The statistic of a signed-rank test, its p-value, and the ``n`` questions that differ, which alone count."""

    statistic: float
    p_value: float
    n: int


def paired_bootstrap(
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> PairedTest:
    """Return the mean difference of two methods with its percentile bootstrap interval and p-value.

    Questions are drawn, each with both its scores. The p-value is the share of resamples, moved to centre on no
    difference, that are as far from it as the observed one, but never less than 2^(1-k) where k questions differ: that
    is how often they would all point one way by chance.

    :param first: scores of the first method, one per question (the mean over its runs where there are several).
    :param second: those of the second on the same questions in the same order.
    :param seed: the same seed gives the same result.
    :raises UserError: when the scores do not pair, or an option is out of range.
    """
    one, two = as_pair(first, second)
    check_draws(confidence, resamples)
    differences = _differences(one, two)
    observed = float(differences.mean())
    replicates = resampled_means(differences, resamples, np.random.default_rng(seed))
    p_value = chance_of(observed, replicates, int(np.count_nonzero(differences)))
    return PairedTest(observed, *percentiles(replicates, confidence), p_value, int(differences.size))


def mcnemar(first: npt.ArrayLike, second: npt.ArrayLike) -> SignTest:
    """Return McNemar's exact test of 0/1 scores: the binomial test of the questions that only one method got right.

    Two-sided. ``wins`` are questions that only the first got right, ``losses`` those that only the second did; without
    either the p-value is 1.

    :raises UserError: when the scores do not pair, or one is neither 0 nor 1.
    """
    one, two = as_pair(first, second)
    for name, scores in (("first", one), ("second", two)):
        if not np.isin(scores, (0.0, 1.0)).all():
            other = float(scores[~np.isin(scores, (0.0, 1.0))][0])
            raise UserError(
                f"McNemar's test needs scores of 0 or 1, but {name} holds {other:g}: use sign_test or paired_bootstrap."
            )
    return sign_test(one, two)


def sign_test(first: npt.ArrayLike, second: npt.ArrayLike, *, alternative: Alternative = "two-sided") -> SignTest:
    """Return the exact sign test: whether the first method is better more often than worse.

    Only which of the two is better counts, not by how much; ties count for neither. Without wins and losses the
    p-value is 1. Sound from the first question on, as a sweep that stops hopeless trials needs it; but each look is a
    chance to err, so that looking after every question asks for a smaller level.

    :param alternative: "less" asks whether the first is worse.
    :raises UserError: when the scores do not pair, or the alternative is unknown.
    """
    from scipy.stats import binomtest

    _check(alternative)
    differences = _differences(*as_pair(first, second))
    wins, losses = int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))
    decided = wins + losses
    p_value = float(binomtest(wins, decided, alternative=alternative).pvalue) if decided else 1.0
    return SignTest(wins, losses, int(differences.size) - decided, p_value)


def wilcoxon_test(first: npt.ArrayLike, second: npt.ArrayLike, *, alternative: Alternative = "two-sided") -> RankTest:
    """Return Wilcoxon's signed-rank test: as :func:`sign_test`, but larger differences weigh more.

    For graded scores such as F1 or means over runs; of 0/1 scores all differences are alike, and the sign test is
    exact. Questions without a difference are left out, as Wilcoxon did; where none is left the p-value is 1. Exact for
    few questions, else the normal approximation, as scipy chooses.

    :param alternative: "less" asks whether the first is worse.
    :raises UserError: when the scores do not pair, or the alternative is unknown.
    """
    from scipy.stats import wilcoxon

    _check(alternative)
    differences = _differences(*as_pair(first, second))
    decided = differences[differences != 0]
    if not decided.size:
        return RankTest(0.0, 1.0, 0)
    found = wilcoxon(decided, alternative=alternative)
    return RankTest(float(found.statistic), float(found.pvalue), int(decided.size))


def holm(p_values: Sequence[float] | Floats) -> list[float]:
    """Return p-values adjusted by Holm's step-down procedure, in the order given.

    Those below a level hold together: that any of them errs has at most that chance, however the tests depend on one
    another (Holm, Scandinavian Journal of Statistics, 1979).

    :raises UserError: when one does not lie in [0, 1].
    """
    given = np.asarray(p_values, dtype=np.float64)
    if given.ndim != 1 or not ((given >= 0) & (given <= 1)).all():
        raise UserError(f"p-values must be a list of numbers from 0 to 1, but are {p_values!r}.")
    order = np.argsort(given, kind="stable")
    factors = np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(given[order] * factors))
    return [float(value) for value in adjusted]


def _differences(first: Floats, second: Floats) -> Floats:
    return np.round(first - second, _DECIMALS)


def _check(alternative: str) -> None:
    if alternative not in ("two-sided", "greater", "less"):
        raise UserError(f"alternative must be 'two-sided', 'greater' or 'less', but is {alternative!r}.")
