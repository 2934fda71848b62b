"""Two methods compared at the same cost: how they score with equal tokens or calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from maps_rag.metrics.statistics.paired import PairedTest
from maps_rag.metrics.statistics.samples import (
    CONFIDENCE,
    RESAMPLES,
    TOLERANCE,
    Floats,
    as_pair,
    chance_of,
    check_draws,
    percentiles,
)
from maps_rag.programs.errors import UserError

_AT_ONCE = 1_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a method (a cap on rounds, a number of directions) on all questions.

    :param scores: one per question.
    :param costs: what each question took: tokens, calls, seconds or money, 0 or more.
    """

    scores: npt.ArrayLike
    costs: npt.ArrayLike


@dataclass(frozen=True, slots=True)
class Matched:
    """The scores of two methods at one budget (mean cost a question), and their difference."""

    budget: float
    first: float
    second: float
    test: PairedTest


def compute_matched(
    first: Sequence[Setting],
    second: Sequence[Setting],
    budgets: Iterable[float] | None = None,
    *,
    confidence: float = CONFIDENCE,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[Matched, ...]:
    """Return how two methods score where each may spend the same mean cost a question.

    The definition is ours; the paper compares at unequal cost. Each setting of a method is a point (mean cost, mean
    score). Between neighbouring points the score is interpolated: running the dearer setting on a share of the
    questions drawn at random, and the cheaper on the rest, costs and scores just that. Above the dearest setting the
    score stays: a method need not spend what it is given. Below the cheapest nothing is known, and nothing is guessed.
    No setting is chosen by its score, so that none of the two gains by having more of them.

    A method with one setting is compared at budgets from its cost on; :func:`truncated` makes cheaper ones out of it.
    Intervals and p-values are by bootstrap: questions are drawn, each with the scores and costs of all settings, and
    both curves are drawn anew, so that the uncertainty of the costs is in them.

    :param first: the settings of the first method, in any order. Of settings of equal mean cost the one given first
        counts.
    :param second: those of the second, on the same questions in the same order.
    :param budgets: mean costs to compare at, from the dearer of the two cheapest settings on. Default: the costs of all
        settings there.
    :raises UserError: when settings do not fit together, or a budget lies below the reach of a method.
    """
    check_draws(confidence, resamples)
    one, two = _Curve(first, "first"), _Curve(second, "second")
    if one.size != two.size:
        raise UserError(f"Methods are compared on the same questions, but have {one.size} and {two.size}.")
    least = max(one.costs[0], two.costs[0])
    known = np.unique(np.concatenate([one.costs, two.costs]))
    wanted = known[known >= least] if budgets is None else np.asarray(list(budgets), dtype=np.float64)
    if wanted.size and not wanted.min() >= least - TOLERANCE:
        raise UserError(
            f"At a budget of {wanted.min():g} a method has no score: the cheapest settings cost {one.costs[0]:g} and "
            f"{two.costs[0]:g} a question; give budgets from {least:g} on."
        )
    replicates = _replicates(one, two, wanted, resamples, np.random.default_rng(seed))
    scores = one.at(wanted), two.at(wanted)
    return tuple(
        Matched(
            float(budget),
            float(left),
            float(right),
            PairedTest(
                float(left - right),
                *percentiles(drawn, confidence),
                chance_of(float(left - right), drawn, one.size),
                one.size,
            ),
        )
        for budget, left, right, drawn in zip(wanted, *scores, replicates.T, strict=True)
    )


def truncated(setting: Setting, caps: Iterable[float], *, fallback: float = 0.0) -> list[Setting]:
    """Return the settings that one run stands for where every question may cost no more than a cap.

    A question that took more is cut off there: it costs the cap and scores ``fallback``. That is less than a method
    would reach that knew its cap and answered in time; run it with real caps (``max_calls``, ``max_tokens``,
    ``max_rounds``) where that matters.

    :param caps: costs a question may have at most, more than 0.
    :param fallback: what an unanswered question scores.
    :raises UserError: when a cap is not above 0.
    """
    scores, costs = as_pair(setting.scores, setting.costs)
    settings = []
    for cap in caps:
        if not cap > 0:
            raise UserError(f"A cap must be above 0, but is {cap!r}.")
        settings.append(Setting(np.where(costs > cap, fallback, scores), np.minimum(costs, cap)))
    return settings


class _Curve:
    """A method's score as a function of its mean cost.

    ``values`` has shape (n, 2 S): for each question the costs of the S settings, then their scores.
    """

    def __init__(self, settings: Sequence[Setting], name: str) -> None:
        pairs = [as_pair(setting.scores, setting.costs) for setting in settings]
        sizes = sorted({scores.size for scores, _ in pairs})
        if len(sizes) != 1:
            raise UserError(f"The {name} method needs settings on the same questions, but their sizes are {sizes}.")
        if any((costs < 0).any() for _, costs in pairs):
            raise UserError(f"Costs must be 0 or more, but some of the {name} method are less.")
        self.size = sizes[0]
        means = np.array([costs.mean() for _, costs in pairs])
        _, kept = np.unique(means, return_index=True)
        self.costs = means[kept]
        self.values = np.column_stack(
            [*(pairs[place][1] for place in kept), *(pairs[place][0] for place in kept)],
        )

    def at(self, budgets: Floats) -> Floats:
        """Return the score at each budget, shape (budgets,)."""
        means: Floats = self.values.mean(axis=0, keepdims=True)
        return _interpolated(means, budgets).ravel()


def _replicates(one: _Curve, two: _Curve, budgets: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the difference of two curves at each budget, drawn anew: shape (resamples, budgets)."""
    size = one.size
    batch = max(1, _AT_ONCE // size)
    drawn = []
    for start in range(0, resamples, batch):
        weights = rng.multinomial(size, np.full(size, 1 / size), min(batch, resamples - start)) / size
        drawn.append(
            _interpolated(weights @ one.values, budgets) - _interpolated(weights @ two.values, budgets),
        )
    return np.concatenate(drawn)


def _interpolated(means: Floats, budgets: Floats) -> Floats:
    """Interpolate scores linearly in cost, row by row, and level beyond both ends.

    :param means: shape (rows, 2 S): mean costs, then mean scores.
    :returns: shape (rows, budgets).
    """
    costs, scores = np.hsplit(means, 2)
    order = np.argsort(costs, axis=1, kind="stable")
    costs, scores = np.take_along_axis(costs, order, axis=1), np.take_along_axis(scores, order, axis=1)
    last = costs.shape[1] - 1
    columns = []
    for budget in budgets:
        above = np.clip((costs <= budget).sum(axis=1), 1, max(last, 1))
        right, left = np.minimum(above, last)[:, np.newaxis], (above - 1)[:, np.newaxis]
        low, high = np.take_along_axis(costs, left, axis=1), np.take_along_axis(costs, right, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(high > low, np.clip((budget - low) / (high - low), 0.0, 1.0), 0.0)
        mixed = (1 - share) * np.take_along_axis(scores, left, axis=1) + share * np.take_along_axis(
            scores, right, axis=1
        )
        columns.append(mixed[:, 0])
    return np.column_stack(columns) if columns else np.empty((len(means), 0))
