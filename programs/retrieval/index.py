"""An opened index directory."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

import numpy as np
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.corpora import Document
from maps_rag.programs.retrieval.encoders import Encoder, Vectors
from maps_rag.programs.retrieval.manifest import INDEX_FILE, PASSAGES, Manifest, sha256_of
from maps_rag.programs.retrieval.passages import PassageStore
from maps_rag.programs.retrieval.vectors import EF_SEARCH, NPROBE, open_index, read_header, search_parameters
from numpy.typing import NDArray


class Index:
    """The vectors and passages of an index directory, memory-mapped; safe for several threads.

    :raises UserError: the directory is no index, or its files are not the ones its manifest describes.
    """

    def __init__(self, folder: str | PathLike[str], *, nprobe: int = NPROBE, ef_search: int = EF_SEARCH) -> None:
        self.folder = Path(folder).resolve()
        self.manifest = Manifest.read(self.folder)
        _check_sizes(self.folder, self.manifest)
        _check_header(self.folder / INDEX_FILE, self.manifest)
        self._vectors = open_index(self.folder / INDEX_FILE)
        self._parameters = search_parameters(self._vectors, nprobe, ef_search)
        self._passages = PassageStore(self.folder / PASSAGES)
        if len(self._passages) != self.manifest.count:
            raise UserError(
                f"{self.folder} holds {len(self._passages)} passages, its manifest says {self.manifest.count}; "
                "build the index again"
            )

    def __len__(self) -> int:
        return self.manifest.count

    def search(self, vectors: Vectors, k: int) -> tuple[Vectors, NDArray[np.int64]]:
        """Return scores and row numbers, both of shape (n, k), best first; row -1 where there are fewer than k."""
        scores, rows = self._vectors.search(vectors, min(k, len(self)), params=self._parameters)
        return scores, rows

    def passages(self, rows: list[int]) -> list[Document]:
        """Return the passages of row numbers, in their order."""
        return self._passages.get(rows)

    def check_encoder(self, encoder: Encoder) -> None:
        """Raise if the index was made with another encoder.

        Raises:
            UserError: name, dimension or prefixes differ.
        """
        for what, made, given in (
            ("the encoder", self.manifest.encoder, encoder.name),
            ("dimension", self.manifest.dimension, encoder.dimension),
            ("the prefixes", tuple(self.manifest.prefixes), tuple(encoder.prefixes)),
        ):
            if made != given:
                raise UserError(
                    f"{self.folder} was built with {what} {made!r}, but {given!r} was given; "
                    "open it with its own encoder or build the index again"
                )


def verify_index(folder: str | PathLike[str], progress: Callable[[int, int], None] | None = None) -> Manifest:
    """Read every file of an index and compare its checksum; return the manifest.

    ``progress`` is told the bytes read and the bytes in all, after each file.

    :raises UserError: a file is missing or is not what was built.
    """
    path = Path(folder).resolve()
    manifest = Manifest.read(path)
    _check_sizes(path, manifest)
    total = sum(record.size for record in manifest.files.values())
    done = 0
    for name, record in manifest.files.items():
        if sha256_of(path / name) != record.sha256:
            raise UserError(f"{path / name} has changed since the index was built; build the index again")
        done += record.size
        if progress is not None:
            progress(done, total)
    return manifest


def _check_sizes(folder: Path, manifest: Manifest) -> None:
    for name in (INDEX_FILE, *manifest.files):
        record = manifest.files.get(name)
        if record is None:
            raise UserError(f"the manifest of {folder} does not name {name}; build the index again")
        path = folder / name
        if not path.is_file():
            raise UserError(f"{path} is missing; build the index again")
        if (size := path.stat().st_size) != record.size:
            what = "cut off" if size < record.size else "not the file that was built"
            raise UserError(f"{path} is {what}: {size} bytes, the manifest says {record.size}; build the index again")


def _check_header(path: Path, manifest: Manifest) -> None:
    kind, dimension, count = read_header(path)
    if not kind.startswith("I") or not kind.isalnum():
        raise UserError(f"{path} is not a FAISS index; build the index again")
    for what, found, said in (("dimension", dimension, manifest.dimension), ("vectors", count, manifest.count)):
        if found != said:
            raise UserError(f"{path} has {what} {found}, the manifest says {said}; build the index again")
