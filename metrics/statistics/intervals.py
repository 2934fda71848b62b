"""Mean scores with their intervals: of a set, of its groups, over several sets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from maps_rag.metrics.statistics.samples import (
    CONFIDENCE,
    RESAMPLES,
    Floats,
    as_scores,
    check_draws,
    percentiles,
    resampled_means,
)
from maps_rag.programs.errors import UserError


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean of ``n`` questions, and the interval from ``low`` to ``high`` around it."""

    mean: float
    low: float
    high: float
    n: int


def bootstrap_interval(
    scores: npt.ArrayLike, *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of scores with its percentile bootstrap interval: what other questions of the kind would give.

    Scores that are all 0 or all 1 hold nothing that a bootstrap could draw on: their bounds are Clopper and Pearson's
    exact ones. Fewer than some 20 questions make any bootstrap interval too narrow; see :func:`proportion_interval`.

    :param scores: one in [0, 1] per question. With several runs, the mean of each question over its runs: runs of the
        same question are no further questions.
    :param seed: the same seed gives the same interval.
    :raises UserError: when there are no scores, one is no finite number, or an option is out of range.
    """
    values = as_scores(scores)
    check_draws(confidence, resamples)
    if values[0] in (0.0, 1.0) and np.all(values == values[0]):
        return proportion_interval(values, confidence=confidence, method="exact")
    return _interval(values, resampled_means(values, resamples, np.random.default_rng(seed)), confidence, values.size)


def proportion_interval(
    scores: npt.ArrayLike, *, confidence: float = CONFIDENCE, method: Literal["wilson", "exact"] = "wilson"
) -> Interval:
    """Return the mean of 0/1 scores with an interval that holds for few questions too.

    :param scores: 0 or 1 per question.
    :param method: "wilson" is about right on average; "exact" (Clopper and Pearson) is never too narrow, so mostly
        too wide.
    :raises UserError: when a score is neither 0 nor 1, or the method is unknown.
    """
    from scipy.stats import binomtest

    values = as_scores(scores)
    check_draws(confidence, 1)
    if not np.isin(values, (0.0, 1.0)).all():
        raise UserError("The interval of a proportion needs scores of 0 or 1; bootstrap_interval takes others.")
    if method not in ("wilson", "exact"):
        raise UserError(f"method must be 'wilson' or 'exact', but is {method!r}.")
    found = binomtest(int(values.sum()), values.size).proportion_ci(confidence, method)
    return Interval(float(values.mean()), float(found.low), float(found.high), int(values.size))


def macro_interval(
    sets: Sequence[npt.ArrayLike], *, confidence: float = CONFIDENCE, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean over sets, each weighing the same, with its percentile bootstrap interval.

    Questions are drawn within their set: the sets are given, the questions are samples of them. ``n`` counts the
    questions of all sets.

    :param sets: the scores of each set, one per question; a single set is :func:`bootstrap_interval`.
    :raises UserError: when there are no sets, or one is not scores.
    """
    samples = [as_scores(scores, f"set {place}") for place, scores in enumerate(sets)]
    if not samples:
        raise UserError("A mean over sets needs the scores of at least one set.")
    if len(samples) == 1:
        return bootstrap_interval(samples[0], confidence=confidence, resamples=resamples, seed=seed)
    check_draws(confidence, resamples)
    rng = np.random.default_rng(seed)
    replicates = np.mean([resampled_means(sample, resamples, rng) for sample in samples], axis=0)
    means = np.array([sample.mean() for sample in samples])
    return _interval(means, replicates, confidence, sum(sample.size for sample in samples))


def by_group(
    scores: npt.ArrayLike,
    groups: Iterable[str | int | None],
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> dict[str | int, Interval]:
    """Return the mean of each group of questions with its interval, in the order of the groups' names.

    :param scores: one per question.
    :param groups: the type, the number of hops or another name per question; questions with None or "" are left out.
    :raises UserError: when there are not as many groups as scores.
    """
    values, names = as_scores(scores), list(groups)
    if len(names) != values.size:
        raise UserError(f"Every score needs a group, but there are {values.size} scores and {len(names)} groups.")
    known = sorted({name for name in names if name not in (None, "")}, key=lambda name: (isinstance(name, str), name))
    return {
        name: bootstrap_interval(
            values[[other == name for other in names]], confidence=confidence, resamples=resamples, seed=seed
        )
        for name in known
        if name is not None
    }


def _interval(values: Floats, replicates: Floats, confidence: float, n: int) -> Interval:
    return Interval(float(values.mean()), *percentiles(replicates, confidence), int(n))
