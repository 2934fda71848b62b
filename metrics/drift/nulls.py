"""Trajectories without memory, to compare S_t with. Two kinds of forgetting, since S_t rises under both:

- the order of a question's rounds is shuffled: sub-queries that each forget the ones before them, around a shift that
  they share. Nothing but the order changes: the vectors, N and the length stay.
- every step keeps its length and takes a direction of its own, uniform in the space of the vectors: steps that forget
  the steps before them, a random walk.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from maps_rag.metrics.drift.estimate import Floats
from maps_rag.metrics.drift.walks import Walks

Null = Callable[[Walks, np.random.Generator], Walks]


def shuffled(walks: Walks, rng: np.random.Generator) -> Walks:
    """Return the walks with the order of the rounds drawn anew within each."""
    there = np.arange(walks.rounds) < walks.length[:, None]
    order = np.argsort(np.where(there, rng.random(there.shape), 2.0), axis=1)
    rows = np.arange(len(walks))[:, None]
    return Walks(
        walks.gram[rows[:, :, None], order[:, :, None], order[:, None, :]],
        walks.start[rows, order],
        walks.square,
        walks.length,
        walks.group,
        walks.dimension,
    )


def memoryless(walks: Walks, rng: np.random.Generator) -> Walks:
    """Return random walks from the same questions with steps of the same lengths.

    The Gram matrix of unit vectors drawn uniformly in d dimensions is drawn directly (Bartlett's decomposition of a
    Wishart matrix), so that its cost does not depend on d. Products with q_0 are not drawn: they are NaN.
    """
    points = np.cumsum(np.sqrt(walks.steps())[:, :, None] * _directions(walks, rng), axis=1)
    points *= (np.arange(walks.rounds) < walks.length[:, None])[:, :, None]
    return Walks(
        points @ points.transpose(0, 2, 1),
        np.full_like(walks.start, np.nan),
        walks.square,
        walks.length,
        walks.group,
        walks.dimension,
    )


NULLS: dict[str, Null] = {"shuffled": shuffled, "memoryless": memoryless}
"""The nulls that stand beside every S_t, by name."""


def random_walk_alignment(steps: int) -> tuple[float, ...]:
    """Return the best S_1 .. S_steps of a random walk of equal, orthogonal steps: sqrt(t / (t + 1))."""
    return tuple(float(np.sqrt(step / (step + 1))) for step in range(1, steps + 1))


def shared_shift_alignment(first: float, steps: int) -> tuple[float, ...]:
    """Return the best S_1 .. S_steps of sub-queries that share a shift and forget each other.

    Each lies at question + shift + noise of its own; with rho = S_1, S_t = rho / sqrt(rho + (1 - rho) / t).

    :param first: S_1, in (0, 1].
    """
    return tuple(float(first / np.sqrt(first + (1 - first) / step)) for step in range(1, steps + 1))


def _directions(walks: Walks, rng: np.random.Generator) -> Floats:
    """Return unit vectors whose Gram matrices are those of uniform ones, shape (walks, rounds, min(rounds, d))."""
    shape = (len(walks), walks.rounds)
    if walks.dimension <= walks.rounds:
        rows = rng.standard_normal((*shape, walks.dimension))
    else:
        rows = np.tril(rng.standard_normal((*shape, walks.rounds)), -1)
        diagonal = np.arange(walks.rounds)
        rows[:, diagonal, diagonal] = np.sqrt(rng.chisquare(walks.dimension - diagonal, shape))
    units: Floats = rows / np.linalg.norm(rows, axis=2, keepdims=True)
    return units
