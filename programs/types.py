"""What a retriever gives and what a program takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved passage.

    ``id`` is the corpus id, unique in its index. ``score`` is the similarity to the query that found it, higher is
    nearer; its range depends on the encoder (a cosine in [-1, 1] for E5).
    """

    id: str
    title: str
    text: str
    score: float = 0.0


@runtime_checkable
class Retriever(Protocol):
    """Anything that finds passages for a batch of queries.

    - One list per query, in the order of the queries, each at most ``k`` long and best first.
    - Safe to call from several threads.
    - An ``asearch`` coroutine with the same arguments is used in async programs where it is there.
    """

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]: ...
