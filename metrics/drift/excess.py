"""How much of S_t the nulls leave unexplained.

A null goes through the same procedure as the data: it takes the same training questions, gets the beta that suits it
best, and is scored on the same held-out questions. The interval of the excess counts both halves: which questions were
held out, by Student's t, and which ones both betas were fitted on, by a jackknife that leaves out a tenth of the
training questions at a time. Without the second the interval is too short, since beta_t is not the best one for S_{t+1}
and its error is felt there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from maps_rag.metrics.drift.estimate import Estimate, Floats, estimate, estimates
from maps_rag.metrics.drift.momentum import Mode, alignment, defined, fit_beta
from maps_rag.metrics.drift.nulls import NULLS, Null
from maps_rag.metrics.drift.walks import Ints, Walks, by_question

FOLDS = 10


@dataclass(frozen=True, slots=True)
class NullScores:
    """One null and the data's excess over it; None at a step where no draw of the null has a direction.

    :param beta: its own beta_1 .. beta_T.
    :param score: its S_1 .. S_T.
    :param excess: the data's S_t less the null's, question by question, with the interval of the mean.
    :param mean_excess: the same for the mean over a question's steps.
    """

    beta: tuple[float, ...]
    score: tuple[Estimate | None, ...]
    excess: tuple[Estimate | None, ...]
    mean_excess: Estimate | None


def excess_over_nulls(
    fitting: Walks, held: Walks, beta: tuple[float, ...], mode: Mode, draws: int, rng: np.random.Generator
) -> dict[str, NullScores]:
    """Return each null beside the held-out walks.

    :param fitting: the walks that ``beta`` was fitted on.
    :param held: those to score.
    :param draws: of each null for every held-out walk; the null's score is their mean.
    """
    folds = _folds(fitting)
    refitted = _refits(fitting, beta, mode, folds)
    return {
        name: _against(null, fitting, held, beta, refitted, folds, mode, draws, rng) for name, null in NULLS.items()
    }


def _against(
    null: Null,
    fitting: Walks,
    held: Walks,
    beta: tuple[float, ...],
    refitted: list[tuple[float, ...]],
    folds: Ints,
    mode: Mode,
    draws: int,
    rng: np.random.Generator,
) -> NullScores:
    training = null(fitting, rng)
    # A shuffle of very few questions may leave a step without a direction.
    own = fit_beta(training, len(beta), mode) if _can_fit(training, len(beta)) else beta
    drawn = [null(held, rng) for _ in range(draws)]
    expected = mean_there(np.stack([by_question(alignment(walks, own), held.group) for walks in drawn]), axis=0)
    excess = _with_mean(by_question(alignment(held, beta), held.group) - expected)
    # How the means move with both betas; one draw of the null is enough to see that.
    moved = [
        _means(held, of_data) - _means(drawn[0], of_null)
        for of_data, of_null in zip(refitted, _refits(training, own, mode, folds), strict=True)
    ]
    found = [
        estimate(column, variance)
        for column, variance in zip(excess.T, (FOLDS - 1) * np.var(moved, axis=0), strict=True)
    ]
    return NullScores(own, estimates(expected), tuple(found[:-1]), found[-1])


def _means(walks: Walks, beta: tuple[float, ...]) -> Floats:
    """Return the means over questions of S_1 .. S_T and of a question's mean S; 0 where no question has one."""
    return np.nan_to_num(mean_there(_with_mean(by_question(alignment(walks, beta), walks.group)), axis=0))


def _refits(walks: Walks, beta: tuple[float, ...], mode: Mode, folds: Ints) -> list[tuple[float, ...]]:
    """Return the beta without each fold; the same beta where too little is left."""
    parts = [walks.where(folds != fold) for fold in range(FOLDS)]
    return [fit_beta(part, len(beta), mode, near=beta) if _can_fit(part, len(beta)) else beta for part in parts]


def _folds(walks: Walks) -> Ints:
    """Return a fold for each walk, the same for all walks of a question; long walks are spread over all folds."""
    questions, place = np.unique(walks.group, return_inverse=True)
    longest = np.zeros(len(questions), dtype=np.int64)
    np.maximum.at(longest, place, walks.length)
    rank = np.empty(len(questions), dtype=np.int64)
    rank[np.argsort(-longest, kind="stable")] = np.arange(len(questions))
    return rank[place] % FOLDS


def _can_fit(walks: Walks, steps: int) -> bool:
    return bool(defined(walks, steps).any(axis=0).all())


def _with_mean(values: Floats) -> Floats:
    """Return the columns and their mean as one more."""
    return np.column_stack([values, mean_there(values, axis=1)])


def mean_there(values: Floats, axis: int) -> Floats:
    """Return the mean of what is not NaN; NaN where all is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    means: Floats = np.divide(sums, count, out=np.full(sums.shape, np.nan), where=count > 0)
    return means
