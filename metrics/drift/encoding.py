"""From trajectories to the vectors of their questions and sub-queries."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from maps_rag.metrics.drift.estimate import Floats
from maps_rag.programs.errors import UserError
from numpy.typing import NDArray

logger = logging.getLogger(__name__)

BATCH_SIZE = 1024
"""Texts a call of the encoder; it makes its own batches of these."""


class QueryEncoder(Protocol):
    """Anything that turns queries into vectors, one row each, in their order: a retriever's encoder.

    The similarity to gold passages also needs ``encode_passages``.
    """

    def encode_queries(self, texts: Sequence[str]) -> Any: ...


class CachedEncoder:
    """An encoder that is asked for each text once, in batches.

    Give one to several functions of this package and they share its vectors.

    :param encoder: what encodes; the one that the retriever searched with.
    :param batch_size: texts a call.
    """

    def __init__(self, encoder: QueryEncoder, *, batch_size: int = BATCH_SIZE) -> None:
        if not callable(getattr(encoder, "encode_queries", None)):
            raise UserError(
                f"The encoder is a {type(encoder).__name__} without encode_queries(texts): "
                "give the retriever's encoder."
            )
        if batch_size < 1:
            raise UserError(f"batch_size must be at least 1, but is {batch_size}.")
        self.encoder = encoder
        self.batch_size = batch_size
        self._kept: dict[tuple[str, str], NDArray[np.float32]] = {}

    def encode_queries(self, texts: Sequence[str]) -> Floats:
        """Return one vector per query, float64 of shape (n, dimension).

        :raises UserError: when the encoder returns another number of rows, or a vector that is not finite.
        """
        return self._encode("encode_queries", texts)

    def encode_passages(self, texts: Sequence[str]) -> Floats:
        """Return one vector per passage, float64 of shape (n, dimension).

        :raises UserError: as for queries, and when the encoder encodes no passages.
        """
        return self._encode("encode_passages", texts)

    def keep(self, *, queries: Iterable[str] = (), passages: Iterable[str] = ()) -> None:
        """Encode texts that will be asked for, in full batches.

        :raises UserError: as for encoding them.
        """
        self._fill("encode_queries", queries)
        self._fill("encode_passages", passages)

    def _encode(self, kind: str, texts: Sequence[str]) -> Floats:
        if not texts:
            return np.zeros((0, 0))
        self._fill(kind, texts)
        return np.stack([self._kept[kind, text] for text in texts]).astype(np.float64)

    def _fill(self, kind: str, texts: Iterable[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if (kind, text) not in self._kept]
        if not new:
            return
        encode = getattr(self.encoder, kind, None)
        if not callable(encode):
            raise UserError(
                f"The encoder is a {type(self.encoder).__name__} without {kind}(texts), which the similarity to "
                "passages needs: give the retriever's encoder."
            )
        for start in range(0, len(new), self.batch_size):
            batch = new[start : start + self.batch_size]
            rows = _checked(np.asarray(encode(batch), dtype=np.float32), batch)
            self._kept.update(zip(((kind, text) for text in batch), rows, strict=True))


def cached(encoder: QueryEncoder) -> CachedEncoder:
    """Return the encoder with a cache around it, unless it has one."""
    return encoder if isinstance(encoder, CachedEncoder) else CachedEncoder(encoder)


@dataclass(frozen=True, slots=True)
class QueryPath:
    """Where the sub-queries of one question went.

    :param question: the question's text; several runs of one question share it, and count as one question.
    :param start: q_0, the question's vector, shape (dimension,).
    :param rounds: the vectors of each round's sub-queries, shape (sub-queries, dimension) each, at least one row.
    """

    question: str
    start: Floats
    rounds: tuple[Floats, ...]

    def __post_init__(self) -> None:
        for index, vectors in enumerate((self.start[None], *self.rounds)):
            if vectors.ndim != 2 or vectors.shape[1] != self.start.size or not len(vectors):
                raise UserError(
                    f"Round {index} of {self.question!r} has vectors of shape {vectors.shape}: "
                    f"they must be (sub-queries, {self.start.size}), at least one."
                )
            if not np.isfinite(vectors).all():
                raise UserError(f"Round {index} of {self.question!r} has a vector that is not finite: encode it again.")


def retrieval_rounds(trajectory: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the rounds of a trajectory that searched, in order."""
    return [item for item in trajectory.get("rounds") or () if item.get("searches")]


def sub_queries(round_: Mapping[str, Any]) -> list[str]:
    """Return the texts of a round's sub-queries, in order."""
    return [search["query"] for search in round_["searches"]]


def has_text(trajectory: Mapping[str, Any]) -> bool:
    """Return whether a trajectory kept what was asked; those of multiple-choice sets are written without it."""
    texts = [
        trajectory.get("question"),
        *(query for item in retrieval_rounds(trajectory) for query in sub_queries(item)),
    ]
    return all(isinstance(text, str) and text.strip() for text in texts)


def query_paths(trajectories: Iterable[Mapping[str, Any]], encoder: QueryEncoder) -> list[QueryPath]:
    """Return the vectors of all questions and sub-queries, each text encoded once.

    A trajectory without text (of a multiple-choice set) or without a round has no path and is left out.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them.
    :raises UserError: when the encoder returns another number of rows, or a vector that is not finite.
    """
    given = list(trajectories)
    kept = [item for item in given if retrieval_rounds(item) and has_text(item)]
    if len(kept) < len(given):
        logger.info("%d of %d trajectories have no text or no round: left out", len(given) - len(kept), len(given))
    encoder = cached(encoder)
    encoder.keep(queries=(text for item in kept for text in _texts(item)))
    return [
        QueryPath(
            item["question"],
            encoder.encode_queries([item["question"]])[0],
            tuple(encoder.encode_queries(sub_queries(round_)) for round_ in retrieval_rounds(item)),
        )
        for item in kept
    ]


def _texts(trajectory: Mapping[str, Any]) -> list[str]:
    return [trajectory["question"], *(query for item in retrieval_rounds(trajectory) for query in sub_queries(item))]


def _checked(rows: NDArray[np.float32], batch: Sequence[str]) -> NDArray[np.float32]:
    if rows.ndim != 2 or len(rows) != len(batch):
        raise UserError(f"The encoder returned shape {rows.shape} for {len(batch)} texts: it must return one row each.")
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        text = batch[int(np.argmin(finite))]
        raise UserError(
            f"The encoder returned a vector that is not finite for {text[:80]!r}: check the model and encode again."
        )
    return rows
