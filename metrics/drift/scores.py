"""The momentum score S_t of a method, fitted and held out, beside what it is without memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from maps_rag.metrics.drift.encoding import QueryEncoder, query_paths
from maps_rag.metrics.drift.estimate import Estimate, Floats, estimate, estimates
from maps_rag.metrics.drift.momentum import Mode, alignment, defined, fit_beta
from maps_rag.metrics.drift.nulls import NULLS, Null, random_walk_alignment
from maps_rag.metrics.drift.walks import Vectors, Walks, by_question, walks_of
from maps_rag.programs.errors import UserError

STEPS = 4
"""The last S_t of the paper's tables."""
MIN_ROUNDS = 3
"""The paper's filter: only trajectories with at least three retrieval rounds."""
DRAWS = 20
FEWEST = 2
"""Questions that each half needs at a step: an interval takes two."""


@dataclass(frozen=True, slots=True)
class NullScores:
    """One null, put through the same fit: its own beta on the same questions, then scored on the held-out ones.

    :param beta: beta_1 .. beta_T.
    :param score: its S_1 .. S_T.
    :param excess: the data's S_t less the null's, question by question, with the interval of the mean.
    :param mean_excess: the same for the mean over a question's steps.
    """

    beta: tuple[float, ...]
    score: tuple[Estimate, ...]
    excess: tuple[Estimate, ...]
    mean_excess: Estimate


@dataclass(frozen=True, slots=True)
class MomentumScores:
    """S_1 .. S_T over one population of questions.

    :param beta: beta_1 .. beta_T, fitted on the training half. beta_1 = 0 by convention: it cannot be identified.
    :param fitted_on: questions of the training half by step.
    :param score: S_t on the held-out half.
    :param undefined: held-out walks by step that are long enough, but without a direction: the next sub-query is the
        question, or nothing has moved.
    :param nulls: by name; see :mod:`maps_rag.metrics.drift.nulls`.
    """

    beta: tuple[float, ...]
    fitted_on: tuple[int, ...]
    score: tuple[Estimate, ...]
    undefined: tuple[int, ...]
    nulls: dict[str, NullScores]


@dataclass(frozen=True, slots=True)
class Momentum:
    """What :func:`fit_momentum` found. S_t alone says nothing about drift: read its excess over each null.

    :param all: at each step, the questions that reach it; the population changes from step to step.
    :param fixed: at every step, the questions that reach the last one.
    :param random_walk: the closed form sqrt(t / (t + 1)), for orientation.
    :param first_beta_identifiable: False, always: any beta_1 < 1 gives the same direction of m_1.
    """

    vectors: Vectors
    mode: Mode
    min_rounds: int
    questions: int
    all: MomentumScores
    fixed: MomentumScores
    random_walk: tuple[float, ...]
    first_beta_identifiable: bool = False

    @property
    def steps(self) -> int:
        """T, the last step that enough questions reach."""
        return len(self.random_walk)

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain, JSON-able data."""
        return asdict(self) | {"steps": self.steps}


def fit_momentum(
    trajectories: Iterable[Mapping[str, Any]],
    encoder: QueryEncoder,
    *,
    steps: int = STEPS,
    min_rounds: int = MIN_ROUNDS,
    vectors: Vectors = "mean",
    mode: Mode = "step",
    train: float = 0.5,
    draws: int = DRAWS,
    seed: int = 0,
) -> Momentum:
    """Fit the momentum of one method's trajectories and score it beside two nulls.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them, of one method. Those of
        one question (several runs) count as one and lie in the same half.
    :param encoder: the retriever's encoder, or a :class:`~maps_rag.metrics.drift.encoding.CachedEncoder` of it.
    :param steps: the last step asked for; the result ends earlier where fewer than two questions of a half reach it.
    :param min_rounds: retrieval rounds that a trajectory must have, at least 2; the paper's 3.
    :param vectors: "mean" of a round's sub-queries (the paper) or "each" followed on its own.
    :param mode: how beta is fitted; see :func:`~maps_rag.metrics.drift.momentum.fit_beta`.
    :param train: the share of the questions that beta is fitted on; the others are scored. The paper uses half.
    :param draws: of each null for every held-out question.
    :param seed: of the halves and the nulls.
    :raises UserError: when an option is out of range, a vector is not finite, or too few trajectories are long enough.
    """
    given = list(trajectories)
    paths = query_paths(given, encoder)
    return momentum_of(
        walks_of(paths, vectors, min_rounds=_checked(min_rounds, "min_rounds", 2)),
        steps=steps,
        min_rounds=min_rounds,
        vectors=vectors,
        mode=mode,
        train=train,
        draws=draws,
        seed=seed,
        given=len(given),
    )


def momentum_of(
    walks: Walks,
    *,
    steps: int = STEPS,
    min_rounds: int = MIN_ROUNDS,
    vectors: Vectors = "mean",
    mode: Mode = "step",
    train: float = 0.5,
    draws: int = DRAWS,
    seed: int = 0,
    given: int | None = None,
) -> Momentum:
    """Do what :func:`fit_momentum` does with walks; it says what the options mean.

    :param given: how many trajectories there were before those too short were left out, for the error.
    """
    _checked(steps, "steps", 1)
    _checked(draws, "draws", 1)
    if not 0 < train < 1:
        raise UserError(f"train must lie between 0 and 1, both excluded, but is {train!r}.")
    numbers = np.unique(walks.group)
    order = np.random.default_rng([seed, 0]).permutation(numbers)
    fitting = np.isin(walks.group, order[: round(train * len(numbers))])
    halves = walks.where(fitting), walks.where(~fitting)
    there = defined(walks, steps)
    enough = [
        min(len(np.unique(walks.group[half & there[:, step]])) for half in (fitting, ~fitting)) >= FEWEST
        for step in range(steps)
    ]
    reached = steps if all(enough) else enough.index(False)
    if not reached:
        raise UserError(
            f"{len(numbers)} questions (of {len(walks) if given is None else given} trajectories) have at least "
            f"{min_rounds} retrieval rounds and sub-queries that move: a fit needs {2 * FEWEST} or more, {FEWEST} in "
            "each half. Evaluate more questions, or allow shorter trajectories with min_rounds."
        )
    last = there[:, reached - 1]
    full = tuple(half.where(last[chosen]) for half, chosen in zip(halves, (fitting, ~fitting), strict=True))
    both = [
        _scores(*population, reached, mode, draws, np.random.default_rng([seed, 1])) for population in (halves, full)
    ]
    return Momentum(vectors, mode, min_rounds, len(numbers), both[0], both[1], random_walk_alignment(reached))


def _scores(
    fitting: Walks, held: Walks, steps: int, mode: Mode, draws: int, rng: np.random.Generator
) -> MomentumScores:
    beta = fit_beta(fitting, steps, mode)
    scores = alignment(held, beta)
    reached = [int((held.length > step).sum()) for step in range(1, steps + 1)]
    questions = by_question(scores, held.group)
    there = defined(fitting, steps)
    return MomentumScores(
        beta,
        tuple(len(np.unique(fitting.group[there[:, step]])) for step in range(steps)),
        _all_there(estimates(questions)),
        tuple(long - int((~np.isnan(scores[:, step])).sum()) for step, long in enumerate(reached)),
        {name: _against(null, questions, fitting, held, steps, mode, draws, rng) for name, null in NULLS.items()},
    )


def _against(
    null: Null,
    questions: Floats,
    fitting: Walks,
    held: Walks,
    steps: int,
    mode: Mode,
    draws: int,
    rng: np.random.Generator,
) -> NullScores:
    beta = fit_beta(null(fitting, rng), steps, mode)
    drawn = np.stack([by_question(alignment(null(held, rng), beta), held.group) for _ in range(draws)])
    expected = _mean_there(drawn, axis=0)
    excess = questions - expected
    mean = estimate(_mean_there(excess, axis=1))
    assert mean is not None
    return NullScores(beta, _all_there(estimates(expected)), _all_there(estimates(excess)), mean)


def _mean_there(values: Floats, axis: int) -> Floats:
    """Return the mean of what is not NaN; NaN where all is."""
    there = ~np.isnan(values)
    count = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    return np.divide(sums, count, out=np.full(sums.shape, np.nan), where=count > 0)


def _all_there(found: tuple[Estimate | None, ...]) -> tuple[Estimate, ...]:
    assert all(found)  # the steps were cut to those that questions reach
    return tuple(item for item in found if item is not None)


def _checked(value: int, name: str, least: int) -> int:
    if value < least:
        raise UserError(f"{name} must be at least {least}, but is {value!r}.")
    return value
