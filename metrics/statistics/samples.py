"""What the intervals and tests share: reading scores, and drawing questions anew."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from maps_rag.programs.errors import UserError

Floats = npt.NDArray[np.float64]

CONFIDENCE = 0.95
RESAMPLES = 9_999
"""As scipy draws: with the observed sample itself, p-values are multiples of 1/10,000."""

TOLERANCE = 1e-9
"""Means that differ by less are equal: they are sums of the same numbers in another order."""

_AT_ONCE = 1_000_000  # numbers drawn in one go: 8 MB


def as_scores(values: npt.ArrayLike, name: str = "scores") -> Floats:
    """Return scores as an array, one number per question.

    :raises UserError: when there are none, or they are not finite numbers in one dimension.
    """
    try:
        scores = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{name} must be numbers, one per question, but is {_shown(values)}.") from None
    if scores.ndim != 1 or not scores.size:
        raise UserError(f"{name} must hold one number per question, at least one, but has shape {scores.shape}.")
    if not np.isfinite(scores).all():
        place = int(np.flatnonzero(~np.isfinite(scores))[0])
        raise UserError(f"{name} must be finite, but number {place} is {scores[place]}: leave such questions out.")
    return scores


def as_pair(first: npt.ArrayLike, second: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the scores of two methods on the same questions in the same order.

    :raises UserError: when one is not scores, or their lengths differ.
    """
    one, two = as_scores(first, "first"), as_scores(second, "second")
    if one.size != two.size:
        raise UserError(f"Scores are compared question by question, but there are {one.size} and {two.size} of them.")
    return one, two


def check_draws(confidence: float, resamples: int) -> None:
    """Raise a UserError unless an interval can be drawn so."""
    if not 0 < confidence < 1:
        raise UserError(f"confidence must lie between 0 and 1, but is {confidence!r}.")
    if resamples < 1:
        raise UserError(f"resamples must be at least 1, but is {resamples!r}.")


def resampled_means(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the means of ``resamples`` samples of the same size, drawn from ``values`` with replacement.

    Where few values differ, as with 0 and 1, how often each is drawn is drawn itself: that is the same distribution,
    without drawing every question.
    """
    size = values.size
    distinct, counts = np.unique(values, return_counts=True)
    if 4 * distinct.size <= size:
        return np.asarray(rng.multinomial(size, counts / size, resamples) @ distinct / size)
    batch = max(1, _AT_ONCE // size)
    drawn = [
        values[rng.integers(0, size, (min(batch, resamples - start), size))].mean(axis=1)
        for start in range(0, resamples, batch)
    ]
    return np.concatenate(drawn)


def percentiles(replicates: Floats, confidence: float) -> tuple[float, float]:
    """Return the bounds of the percentile interval."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)


def chance_of(observed: float, replicates: Floats, questions: int) -> float:
    """Return how likely a difference as large as ``observed``, to either side, is where there is none in truth.

    The replicates, moved so that they centre on no difference, stand for that case (Efron and Tibshirani, An
    Introduction to the Bootstrap, 1993, section 16.4); the observed sample counts as one of them. Where few questions
    speak, all resamples may agree although k questions can all point one way by chance, with 2^(1-k): it is never less.

    :param questions: k, how many questions can have made the difference.
    """
    as_large = np.abs(replicates - observed) >= abs(observed) - TOLERANCE
    drawn = float((1 + np.count_nonzero(as_large)) / (1 + replicates.size))
    return max(drawn, min(1.0, 2.0 ** (1 - questions)))


def _shown(values: object) -> str:
    text = repr(values)
    return text if len(text) <= 60 else f"{text[:60]}..."
