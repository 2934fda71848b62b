"""The passages of an index, as Arrow files that `datasets.load_from_disk` opens. Row number = FAISS id."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.corpora import Document

# Rows in one record batch and in one file. Opening reads one page of each batch, so batches must not be small; the
# build holds one batch and maps one file, so neither may be large.
ROWS_PER_BATCH = 8192
ROWS_PER_FILE = 8 * ROWS_PER_BATCH
_COLUMNS = ("id", "title", "text")


class CorpusDigest:
    """Count, digest and repeated ids of a stream of documents, in 8 bytes a passage."""

    def __init__(self) -> None:
        self._hashes = array("q")
        self._digest = hashlib.blake2b(digest_size=16)

    def add(self, document: Document) -> None:
        """Take one more document into account."""
        self._hashes.append(hash(document.id))
        self._digest.update("\0".join((*document, "")).encode("utf-8", "surrogatepass"))

    @property
    def count(self) -> int:
        return len(self._hashes)

    def hexdigest(self) -> str:
        """Return a digest of all documents in their order."""
        return self._digest.hexdigest()

    def suspects(self) -> set[int]:
        """Return the hashes that occur more than once: of repeated ids, or (hardly ever) of different ones."""
        hashes = np.frombuffer(self._hashes, np.int64).copy() if self._hashes else np.zeros(0, np.int64)
        hashes.sort()
        return set(hashes[1:][hashes[1:] == hashes[:-1]].tolist())


def refuse_repeated_ids(documents: Iterable[Document], suspects: set[int], source: str) -> None:
    """Raise if two of the documents whose id has a suspect hash really share an id.

    :raises UserError: naming the id and the two rows.
    """
    if not suspects:
        return
    seen: dict[str, int] = {}
    for row, document in enumerate(documents, 1):
        if hash(document.id) not in suspects:
            continue
        first = seen.setdefault(document.id, row)
        if first != row:
            raise UserError(
                f"{source}: the id {document.id!r} of passage {row} is also that of passage {first}; ids must differ"
            )


def write_passages(documents: Iterable[Document], folder: Path) -> Iterator[int]:
    """Write documents as Arrow files into a folder and yield the number written after each batch."""
    import datasets

    folder.mkdir()
    features = datasets.Features({name: datasets.Value("string") for name in _COLUMNS})
    datasets.DatasetInfo(features=features).write_to_directory(str(folder))
    schema = features.arrow_schema
    names: list[str] = []
    written = 0
    writer: Any = None
    try:
        for batch in batches(documents, ROWS_PER_BATCH):
            if written % ROWS_PER_FILE == 0:
                if writer is not None:
                    writer.close()
                names.append(f"data-{len(names):05d}.arrow")
                writer = pa.ipc.new_stream(str(folder / names[-1]), schema)
            columns = [pa.array(column, pa.string()) for column in zip(*batch, strict=True)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            written += len(batch)
            yield written
    finally:
        if writer is not None:
            writer.close()
    (folder / "state.json").write_text(json.dumps(_dataset_state(names, written), indent=1))


def _dataset_state(names: list[str], rows: int) -> dict[str, Any]:
    """Return what `datasets.load_from_disk` wants to know beside the features."""
    return {
        "_data_files": [{"filename": name} for name in names],
        "_fingerprint": f"{rows:016x}",
        "_format_columns": None,
        "_format_kwargs": {},
        "_format_type": None,
        "_output_all_columns": False,
        "_split": None,
    }


def batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of ``size`` items, the last one shorter."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def stream_passages(folder: Path) -> Iterator[Document]:
    """Yield all passages in their order, mapping one file at a time."""
    for path in sorted(folder.glob("data-*.arrow")):
        with pa.memory_map(str(path)) as source, pa.ipc.open_stream(source) as reader:
            for batch in reader:
                yield from map(Document, *(column.to_pylist() for column in batch.columns))


class PassageStore:
    """Random access to the passages of an opened index, memory-mapped; safe for several threads."""

    def __init__(self, folder: Path) -> None:
        import datasets

        try:
            self._rows: Any = datasets.load_from_disk(str(folder), keep_in_memory=False)
        except Exception as error:  # pyarrow and datasets raise families of their own
            raise UserError(
                f"{folder} cannot be opened ({type(error).__name__}: {error}); build the index again"
            ) from error
        if tuple(self._rows.column_names) != _COLUMNS:
            raise UserError(f"{folder} has the columns {self._rows.column_names}, expected {list(_COLUMNS)}")

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, rows: Sequence[int]) -> list[Document]:
        """Return the passages of some row numbers, in their order."""
        if not rows:
            return []
        found = self._rows[list(rows)]
        return [Document(*values) for values in zip(*(found[name] for name in _COLUMNS), strict=True)]
