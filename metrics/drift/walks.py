"""Walks: where each question's sub-queries lie, as inner products, so that nothing below depends on the dimension.

A walk is a question vector q_0 and one vector a round, q_1 .. q_R. Its points are x_i = q_i - q_0, its steps
q_i - q_{i-1}. Momentum is a sum of points, so cosines between momentum, points and q_0 follow from the Gram matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from maps_rag.metrics.drift.encoding import QueryPath
from maps_rag.metrics.drift.estimate import Floats
from maps_rag.programs.errors import UserError
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Vectors = Literal["mean", "each"]

ZERO = 1e-12
"""A squared length below this, relative to the question vector's, is rounding: encoders work in 32 bits."""


@dataclass(frozen=True, slots=True)
class Walks:
    """Walks of many questions, padded with zeros to the longest.

    :param gram: x_i . x_j, shape (walks, rounds, rounds).
    :param start: x_i . q_0, shape (walks, rounds).
    :param square: q_0 . q_0, shape (walks,).
    :param length: the rounds of each walk, shape (walks,).
    :param group: which question a walk belongs to, from 0 on, shape (walks,). A question has one walk a run and, where
        sub-queries are followed one by one, a run.
    :param dimension: of the vectors.
    """

    gram: Floats
    start: Floats
    square: Floats
    length: Ints
    group: Ints
    dimension: int

    def __len__(self) -> int:
        return len(self.length)

    @property
    def questions(self) -> int:
        """How many questions the walks belong to."""
        return len(np.unique(self.group))

    @property
    def rounds(self) -> int:
        """The rounds of the longest walk."""
        return int(self.gram.shape[1])

    def where(self, mask: NDArray[np.bool_]) -> Walks:
        """Return the walks of a mask of shape (walks,); their questions keep their numbers."""
        return Walks(
            self.gram[mask], self.start[mask], self.square[mask], self.length[mask], self.group[mask], self.dimension
        )

    def norms(self) -> Floats:
        """Return the squared lengths of the points, shape (walks, rounds); exactly 0 where they are rounding."""
        squares = np.einsum("nii->ni", self.gram)
        largest = np.maximum(self.square, squares.max(axis=1, initial=0.0))
        return np.where(squares > ZERO * largest[:, None], squares, 0.0)

    def steps(self) -> Floats:
        """Return the squared lengths of the steps, shape (walks, rounds)."""
        squares = np.einsum("nii->ni", self.gram)
        before = np.concatenate([np.zeros((len(self), 1)), squares[:, :-1]], axis=1)
        across = np.concatenate([np.zeros((len(self), 1)), np.einsum("nii->ni", self.gram[:, 1:, :-1])], axis=1)
        lengths: Floats = np.maximum(squares + before - 2 * across, 0.0)
        return lengths


def walks_of(paths: Sequence[QueryPath], vectors: Vectors = "mean", *, min_rounds: int = 1) -> Walks:
    """Return the walks of questions, one vector a round.

    :param vectors: "mean": the mean of a round's sub-queries (the paper; not scaled back to length 1, which the paper
        leaves open). "each": as many walks as the widest round has sub-queries; walk j takes the j-th sub-query of each
        round, counted round where there are fewer (ours). A mean of N vectors is smoother by itself; "each" is not.
    :param min_rounds: leave out questions with fewer rounds.
    :raises UserError: when ``vectors`` is another word, or vectors differ in dimension.
    """
    if vectors not in ("mean", "each"):
        raise UserError(f"vectors must be 'mean' or 'each', but is {vectors!r}.")
    kept = [path for path in paths if len(path.rounds) >= max(min_rounds, 1)]
    dimensions = sorted({path.start.size for path in kept})
    if len(dimensions) > 1:
        raise UserError(f"The vectors have dimensions {dimensions}: use one encoder for all.")
    numbers = {question: number for number, question in enumerate(dict.fromkeys(path.question for path in kept))}
    points, starts, groups = [], [], []
    for path in kept:
        for rows in _lines(path, vectors):
            points.append(rows - path.start)
            starts.append(path.start)
            groups.append(numbers[path.question])
    longest = max(map(len, points), default=0)
    gram, start = np.zeros((len(points), longest, longest)), np.zeros((len(points), longest))
    for index, (rows, origin) in enumerate(zip(points, starts, strict=True)):
        size = len(rows)
        gram[index, :size, :size] = rows @ rows.T
        start[index, :size] = rows @ origin
    return Walks(
        gram,
        start,
        np.array([float(origin @ origin) for origin in starts]),
        np.array([len(rows) for rows in points], dtype=np.int64),
        np.array(groups, dtype=np.int64),
        dimensions[0] if dimensions else 0,
    )


def _lines(path: QueryPath, vectors: Vectors) -> list[Floats]:
    if vectors == "mean":
        return [np.stack([rows.mean(axis=0) for rows in path.rounds])]
    widest = max(map(len, path.rounds))
    return [np.stack([rows[place % len(rows)] for rows in path.rounds]) for place in range(widest)]


def by_question(values: Floats, group: Ints) -> Floats:
    """Return the mean over each question's walks, NaN left out.

    :param values: shape (walks, columns).
    :return: shape (questions, columns), in the order of their numbers; NaN where no walk has a value.
    """
    _, place = np.unique(group, return_inverse=True)
    there = ~np.isnan(values)
    size = int(place.max(initial=-1)) + 1
    sums, counts = np.zeros((size, values.shape[1])), np.zeros((size, values.shape[1]))
    np.add.at(sums, place, np.where(there, values, 0.0))
    np.add.at(counts, place, there)
    return np.divide(sums, counts, out=np.full_like(sums, np.nan), where=counts > 0)
