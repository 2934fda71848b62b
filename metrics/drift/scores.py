"""The momentum score S_t of a method, fitted and held out, beside what it is without memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from maps_rag.metrics.drift.encoding import QueryEncoder, query_paths
from maps_rag.metrics.drift.estimate import Estimate, estimates
from maps_rag.metrics.drift.excess import NullScores, excess_over_nulls
from maps_rag.metrics.drift.momentum import Mode, alignment, defined, fit_beta
from maps_rag.metrics.drift.nulls import random_walk_alignment
from maps_rag.metrics.drift.walks import Vectors, Walks, by_question, walks_of
from maps_rag.programs.errors import UserError

STEPS = 4
"""The last S_t of the paper's tables."""
MIN_ROUNDS = 3
"""The paper's filter: only trajectories with at least three retrieval rounds."""
DRAWS = 20
FEWEST = 2
"""Questions that each half needs at a step: an interval takes two."""


class TooFewQuestionsError(UserError):
    """Not enough trajectories are long enough to fit and score a momentum."""


@dataclass(frozen=True, slots=True)
class MomentumScores:
    """S_1 .. S_T over one population of questions.

    :param beta: beta_1 .. beta_T, fitted on the training half. beta_1 = 0 by convention: it cannot be identified.
    :param fitted_on: questions of the training half by step.
    :param score: S_t on the held-out half, with that beta.
    :param undefined: held-out walks by step that are long enough, but without a direction: the next sub-query is the
        question, or nothing has moved.
    :param nulls: what stands beside it, by name; see :mod:`maps_rag.metrics.drift.excess`.
    """

    beta: tuple[float, ...]
    fitted_on: tuple[int, ...]
    score: tuple[Estimate | None, ...]
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
    :raises TooFewQuestionsError: when too few trajectories are long enough; a UserError.
    :raises UserError: when an option is out of range or a vector is not finite.
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
    order = np.random.default_rng([seed, 1]).permutation(numbers)
    fitting = np.isin(walks.group, order[: round(train * len(numbers))])
    halves = walks.where(fitting), walks.where(~fitting)
    there = defined(walks, steps)
    enough = [
        min(len(np.unique(walks.group[half & there[:, step]])) for half in (fitting, ~fitting)) >= FEWEST
        for step in range(steps)
    ]
    reached = steps if all(enough) else enough.index(False)
    if not reached:
        raise TooFewQuestionsError(
            f"{len(numbers)} questions (of {len(walks) if given is None else given} trajectories) have at least "
            f"{min_rounds} retrieval rounds and sub-queries that move: a fit needs {2 * FEWEST} or more, {FEWEST} in "
            "each half. Evaluate more questions, or allow shorter trajectories with min_rounds."
        )
    everyone = _scores(*halves, reached, mode, draws, np.random.default_rng([seed, 2]))
    last = there[:, reached - 1]
    # Where all questions reach the last step, the two populations are one.
    fixed = everyone
    if not last.all():
        full = halves[0].where(last[fitting]), halves[1].where(last[~fitting])
        fixed = _scores(*full, reached, mode, draws, np.random.default_rng([seed, 3]))
    return Momentum(vectors, mode, min_rounds, len(numbers), everyone, fixed, random_walk_alignment(reached))


def _scores(
    fitting: Walks, held: Walks, steps: int, mode: Mode, draws: int, rng: np.random.Generator
) -> MomentumScores:
    beta = fit_beta(fitting, steps, mode)
    scores = alignment(held, beta)
    there = defined(fitting, steps)
    reached = [int((held.length > step).sum()) for step in range(1, steps + 1)]
    return MomentumScores(
        beta,
        tuple(len(np.unique(fitting.group[there[:, step]])) for step in range(steps)),
        estimates(by_question(scores, held.group)),
        tuple(long - int((~np.isnan(scores[:, step])).sum()) for step, long in enumerate(reached)),
        excess_over_nulls(fitting, held, beta, mode, draws, rng),
    )


def _checked(value: int, name: str, least: int) -> int:
    if value < least:
        raise UserError(f"{name} must be at least {least}, but is {value!r}.")
    return value
