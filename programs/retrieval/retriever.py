"""E5 over FAISS, for DSPy programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, TypeVar, cast

import dspy
from dspy.utils.callback import BaseCallback, with_callbacks
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.batching import MicroBatcher
from maps_rag.programs.retrieval.encoders import Encoder, checked_vectors, load_encoder
from maps_rag.programs.retrieval.index import Index
from maps_rag.programs.retrieval.vectors import EF_SEARCH, NPROBE
from maps_rag.programs.types import Passage

F = TypeVar("F", bound=Callable[..., Any])

# The paper's number of passages per query.
DEFAULT_K = 5


def _traced(function: F) -> F:
    """Report calls to DSPy's callbacks, as those of a module."""
    return cast(F, with_callbacks(function))


class E5Retriever:
    """Finds the passages of an index that are nearest to a query.

    A plain object, to be shared: any number of threads and tasks may call it, and calls that arrive together are
    encoded and searched together. Copies are the object itself; pickling it stores the place of the index, not the
    index.

        retriever = E5Retriever("my-index")
        retriever("Who played drums on Katy Lied?").passages       # list of "title | text"
        retriever.search(["first query", "second query"], k=3)     # list of lists of Passage
        dspy.configure(rm=retriever.as_rm())

    :param index: An index directory, from `build_index` or ``maps-rag index build``.
    :param encoder: The encoder the index was built with, or its name; left out, the name in the manifest is loaded.
    :param k: Passages per query where a call gives no k.
    :param nprobe: Lists searched per query, for IVF indexes.
    :param ef_search: Candidates kept per query, for HNSW indexes.
    :param max_batch: Queries that are encoded and searched together, at most.
    :param callbacks: DSPy callbacks of this object, beside those of ``dspy.configure``.
    :raises UserError: the index does not match its manifest or the encoder, or the encoder cannot be loaded.
    """

    def __init__(
        self,
        index: str | PathLike[str],
        encoder: Encoder | str | None = None,
        k: int = DEFAULT_K,
        *,
        nprobe: int = NPROBE,
        ef_search: int = EF_SEARCH,
        max_batch: int = 64,
        callbacks: Sequence[BaseCallback] = (),
    ) -> None:
        for name, value in (("k", k), ("nprobe", nprobe), ("ef_search", ef_search), ("max_batch", max_batch)):
            _check_count(name, value)
        self.k = k
        self.callbacks = list(callbacks)
        self.index = Index(index, nprobe=nprobe, ef_search=ef_search)
        if encoder is None or isinstance(encoder, str):
            encoder = load_encoder(encoder or self.index.manifest.encoder)
        self.index.check_encoder(encoder)
        self.encoder: Encoder = encoder
        self._options = {"nprobe": nprobe, "ef_search": ef_search, "max_batch": max_batch}
        self._batcher: MicroBatcher[Passage] = MicroBatcher(self._find, max_batch=max_batch)

    @property
    def fingerprint(self) -> str:
        """A digest of the index: equal exactly where the same passages were encoded alike."""
        return self.index.manifest.fingerprint

    def __len__(self) -> int:
        return len(self.index)

    @_traced
    def __call__(self, query: str | Sequence[str], k: int | None = None) -> Any:
        """Return a `dspy.Prediction` with ``passages`` ("title | text"), ``ids``, ``scores`` and ``titles``.

        Each is a list of at most ``k``, best first; scores are cosines. For a list of queries, a list of predictions.
        """
        queries, k = _checked(query, self.k if k is None else k)
        predictions = [_prediction(found) for found in self._batcher.run(queries, k)] if queries else []
        return predictions[0] if isinstance(query, str) else predictions

    @_traced
    async def acall(self, query: str | Sequence[str], k: int | None = None) -> Any:
        """As a plain call, without blocking the event loop."""
        queries, k = _checked(query, self.k if k is None else k)
        predictions = [_prediction(found) for found in await self._batcher.arun(queries, k)] if queries else []
        return predictions[0] if isinstance(query, str) else predictions

    @_traced
    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return, per query in order, the ``k`` nearest passages, best first; all of them are found in one batch."""
        queries, k = _checked(_several(queries), k)
        return self._batcher.run(queries, k) if queries else []

    @_traced
    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """As `search`, without blocking the event loop."""
        queries, k = _checked(_several(queries), k)
        return await self._batcher.arun(queries, k) if queries else []

    def as_rm(self) -> RetrievalModel:
        """Return this retriever in the shape that ``dspy.configure(rm=...)`` and `dspy.Retrieve` expect."""
        return RetrievalModel(self)

    def _find(self, queries: list[str], k: int) -> list[list[Passage]]:
        vectors = checked_vectors(self.encoder.encode_queries(queries), len(queries), self.encoder)
        scores, rows = self.index.search(vectors, k)
        # Rows of -1 stand at the end, where FAISS found fewer than k.
        kept = [[row for row in found if row >= 0] for found in rows.tolist()]
        documents = iter(self.index.passages([row for found in kept for row in found]))
        return [
            [Passage(*next(documents), score) for score in best[: len(found)]]
            for best, found in zip(scores.tolist(), kept, strict=True)
        ]

    def __copy__(self) -> E5Retriever:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> E5Retriever:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (str(self.index.folder), self.encoder, self.k, self._options)

    def __repr__(self) -> str:
        return f"E5Retriever({str(self.index.folder)!r}, encoder={self.encoder.name!r}, k={self.k})"


class RetrievalModel:
    """A retriever as ``dspy.settings.rm``: ``rm(query, k=...)`` gives items with long_text, pid and score."""

    def __init__(self, retriever: E5Retriever) -> None:
        self.retriever = retriever

    def __call__(self, query: str | Sequence[str], k: int | None = None, **kwargs: Any) -> Any:
        """Return the items for one query, or a list of such lists for several; further arguments are not used."""
        queries = [query] if isinstance(query, str) else list(query)
        found = self.retriever.search(queries, self.retriever.k if k is None else k)
        items = [[_item(passage) for passage in passages] for passages in found]
        return items[0] if isinstance(query, str) else items

    def __deepcopy__(self, memo: dict[int, Any]) -> RetrievalModel:
        return self


def _reopen(folder: str, encoder: Encoder, k: int, options: dict[str, Any]) -> E5Retriever:
    return E5Retriever(folder, encoder, k, **options)


def long_text(passage: Passage) -> str:
    """Return a passage as DSPy's retrieval models give it: "title | text"."""
    return f"{passage.title} | {passage.text}" if passage.title else passage.text


def _prediction(found: list[Passage]) -> dspy.Prediction:
    return dspy.Prediction(
        passages=[long_text(passage) for passage in found],
        ids=[passage.id for passage in found],
        scores=[passage.score for passage in found],
        titles=[passage.title for passage in found],
    )


def _item(passage: Passage) -> Any:
    return dspy.dsp.utils.dotdict(long_text=long_text(passage), pid=passage.id, score=passage.score)


def _several(queries: Sequence[str]) -> list[str]:
    if isinstance(queries, str):
        raise UserError("search takes a list of queries, not one string; call the retriever itself for one")
    return list(queries)


def _checked(query: str | Sequence[str], k: int) -> tuple[list[str], int]:
    _check_count("k", k)
    if not isinstance(query, str) and not isinstance(query, Sequence):
        raise UserError(f"a query must be a string or a list of strings, not {type(query).__name__}")
    queries = [query] if isinstance(query, str) else list(query)
    for one in queries:
        if not isinstance(one, str):
            raise UserError(f"a query must be a string, not {type(one).__name__}")
        if not one.strip():
            raise UserError("a query is empty; give a question or a search phrase")
    return queries, k


def _check_count(name: str, value: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise UserError(f"{name} must be a whole number of at least 1, not {value!r}")
