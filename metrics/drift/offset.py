"""How far the momentum turns from the question, added up over the rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from maps_rag.metrics.drift.encoding import QueryEncoder, query_paths
from maps_rag.metrics.drift.estimate import Estimate, Floats, estimates
from maps_rag.metrics.drift.momentum import point_weights
from maps_rag.metrics.drift.walks import ZERO, Vectors, Walks, by_question, walks_of
from maps_rag.programs.errors import UserError


@dataclass(frozen=True, slots=True)
class OffsetCurves:
    """Means over questions at t = 1 .. T; None where no question has a value.

    :param cosine: cos(m_t, q_0).
    :param signed: the changes of the cosine from step to step added up, which is cos(m_t, q_0) - cos(m_1, q_0).
    :param absolute: the absolute changes added up. The paper does not say which of the two its figure shows.
    """

    cosine: tuple[Estimate | None, ...]
    signed: tuple[Estimate | None, ...]
    absolute: tuple[Estimate | None, ...]


@dataclass(frozen=True, slots=True)
class Offset:
    """What :func:`cumulative_offset` found, with the beta it used.

    :param all: at each t, the questions that reach it.
    :param fixed: at every t, the questions that reach the last one.
    """

    beta: tuple[float, ...]
    all: OffsetCurves
    fixed: OffsetCurves


def cumulative_offset(
    trajectories: Iterable[Mapping[str, Any]],
    encoder: QueryEncoder,
    beta: Sequence[float],
    *,
    min_rounds: int = 1,
    vectors: Vectors = "mean",
) -> Offset:
    """Return the cosine of momentum and question by round, and its changes added up, signed and absolute.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them, of one method.
    :param encoder: the retriever's encoder, or a :class:`~maps_rag.metrics.drift.encoding.CachedEncoder` of it.
    :param beta: beta_1 .. beta_T, as :func:`~maps_rag.metrics.drift.scores.fit_momentum` gives them. Use one beta for
        all methods that are compared.
    :param min_rounds: leave out questions with fewer retrieval rounds.
    :param vectors: "mean" of a round's sub-queries or "each"; see :func:`~maps_rag.metrics.drift.walks.walks_of`.
    :raises UserError: when beta is empty or out of range, or a vector is not finite.
    """
    beta = tuple(float(value) for value in beta)
    if not beta or not all(0 <= value < 1 for value in beta):
        raise UserError(f"beta must hold at least one number from 0 to below 1, but is {beta}.")
    walks = walks_of(query_paths(trajectories, encoder), vectors, min_rounds=min_rounds)
    return Offset(beta, _curves(walks, beta), _curves(walks.where(walks.length >= len(beta)), beta))


def _curves(walks: Walks, beta: Sequence[float]) -> OffsetCurves:
    cosines = momentum_to_question(walks, beta)
    signed = cosines - cosines[:, :1]
    changes = np.abs(np.diff(cosines, axis=1, prepend=cosines[:, :1]))
    return OffsetCurves(
        *(estimates(by_question(values, walks.group)) for values in (cosines, signed, np.cumsum(changes, axis=1)))
    )


def momentum_to_question(walks: Walks, beta: Sequence[float]) -> Floats:
    """Return cos(m_t, q_0) of each walk, shape (walks, T); NaN past its end and where a vector has length 0."""
    cosines = np.full((len(walks), len(beta)), np.nan)
    weights = point_weights(beta)
    for step in range(min(len(beta), walks.rounds)):
        of_points = weights[step, : step + 1]
        gram = walks.gram[:, : step + 1, : step + 1]
        square = np.einsum("i,nij,j->n", of_points, gram, of_points)
        size = np.maximum(walks.square, np.abs(gram).max(axis=(1, 2)))
        there = (walks.length > step) & (square > ZERO * size) & (walks.square > 0)
        along = walks.start[:, : step + 1] @ of_points
        cosines[there, step] = along[there] / np.sqrt(square[there] * walks.square[there])
    clipped: Floats = np.clip(cosines, -1.0, 1.0)
    return clipped
