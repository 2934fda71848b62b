"""How much the same method differs from run to run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from maps_rag.metrics.statistics.samples import TOLERANCE, as_scores
from maps_rag.programs.errors import UserError


@dataclass(frozen=True, slots=True)
class Spread:
    """What several runs of one method on the same ``n`` questions gave.

    ``means`` is the mean score of each run, ``mean`` theirs. ``sd`` is the standard deviation between runs (of the
    means, with M - 1). ``flip_rate`` is the chance that two runs, drawn at random, score a question differently, mean
    over questions: it does not grow with the number of runs. ``unstable`` is the share of questions whose score is not
    the same in all runs, which does. The last three are None where there is one run.
    """

    means: tuple[float, ...]
    mean: float
    sd: float | None
    flip_rate: float | None
    unstable: float | None
    n: int


def spread(runs: npt.ArrayLike) -> Spread:
    """Return how the scores of one method differ between runs.

    The standard deviation is what sampling of the model adds to a mean over just these questions; that other questions
    would have other scores is in :func:`~maps_rag.metrics.statistics.bootstrap_interval`.

    :param runs: shape (M, n): the scores of each run, on the same questions in the same order.
    :raises UserError: when there are no runs, or they differ in length.
    """
    rows = [as_scores(run, f"run {place}") for place, run in enumerate(np.asarray(runs, dtype=object))]
    sizes = sorted({row.size for row in rows})
    if len(sizes) != 1:
        raise UserError(f"Runs must be scores of the same questions, at least one run, but their sizes are {sizes}.")
    scores = np.stack(rows)
    means = scores.mean(axis=1)
    whole = tuple(map(float, means)), float(means.mean())
    if len(rows) == 1:
        return Spread(*whole, None, None, None, sizes[0])
    return Spread(
        *whole,
        float(means.std(ddof=1)),
        _flip_rate(scores),
        float((np.ptp(scores, axis=0) > TOLERANCE).mean()),
        sizes[0],
    )


def _flip_rate(scores: npt.NDArray[np.float64]) -> float:
    runs = len(scores)
    differing = sum(
        float((np.abs(scores[one] - scores[two]) > TOLERANCE).mean()) for one in range(runs) for two in range(one)
    )
    return differing / (runs * (runs - 1) / 2)
