"""From a corpus to an index directory."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import faiss
import numpy as np
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.corpora import Document, check_documents, read_corpus
from maps_rag.programs.retrieval.encoders import Encoder, Vectors, checked_vectors, load_encoder
from maps_rag.programs.retrieval.manifest import INDEX_FILE, PASSAGES, Manifest, file_records, library_versions
from maps_rag.programs.retrieval.passages import (
    CorpusDigest,
    batches,
    refuse_repeated_ids,
    stream_passages,
    write_passages,
)
from maps_rag.programs.retrieval.vectors import (
    TRAINING_PER_LIST,
    check_factory,
    default_factory,
    lists_of,
    new_index,
    training_errors,
)
from maps_rag.programs.retrieval.workplace import RESULT, VECTORS, workplace, write_array, write_synced

logger = logging.getLogger(__name__)

# Passages that are sorted by length together, saved together and lost together when a build is interrupted.
WINDOW = 2048
# Passages between two reports of progress.
_REPORT_EVERY = 128
_STATE = "build.json"
# Room beside the estimate: Arrow offsets, the manifest, the file system's own.
_SPARE_BYTES = 16 * 2**20


class BuildProgress(Protocol):
    """Told how far a build is.

    ``phase`` is ``read`` (total None: not known yet), ``encode`` or ``index``; ``done`` of ``total`` passages are
    through it. A resumed build starts ``encode`` with what it found done.
    """

    def __call__(self, phase: str, done: int, total: int | None) -> None: ...


def build_index(
    corpus: str | PathLike[str] | Sequence[Document],
    out: str | PathLike[str],
    encoder: Encoder | str = "local",
    *,
    factory: str | None = None,
    progress: BuildProgress | None = None,
    window: int = WINDOW,
) -> Manifest:
    """Encode a corpus and write its index directory.

    The corpus is read and checked as a whole before anything is encoded. Work goes into ``.NAME.building`` beside
    ``out``; an interrupted build leaves there what it encoded, and the same call goes on from it.

    :param corpus: What `read_corpus` takes, or a list of documents.
    :param out: The directory to make; it must not exist or be empty.
    :param encoder: An encoder or its name.
    :param factory: A FAISS factory string; left out, Flat up to 100,000 passages and IVF with 8 bit codes above.
    :param progress: Called as the build goes on.
    :param window: Passages sorted by length together, and saved together.
    :raises UserError: the corpus or an option is wrong, the encoder gives no unit vectors, ``out`` is taken, the disk
            is full, or another process builds the same index.
    """
    target = Path(out).resolve()
    report = progress or _silent
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        raise UserError(f"window must be a whole number of at least 1, not {window!r}")
    with workplace(target) as scratch:
        if isinstance(encoder, str):
            encoder = load_encoder(encoder)
        if factory is not None:
            new_index(factory, encoder.dimension)
        return _Build(corpus, scratch, encoder, factory, report, window).run()


def _silent(phase: str, done: int, total: int | None) -> None:
    pass


class _Build:
    """One run of a build in its scratch directory."""

    def __init__(
        self,
        corpus: str | PathLike[str] | Sequence[Document],
        scratch: Path,
        encoder: Encoder,
        factory: str | None,
        report: BuildProgress,
        window: int,
    ) -> None:
        self.corpus = corpus
        self.scratch = scratch
        self.result = scratch / RESULT
        self.encoder = encoder
        self.factory = factory
        self.report = report
        self.window = window
        self.vectors = scratch / VECTORS
        self.passages = self.result / PASSAGES

    def run(self) -> Manifest:
        digest = self._read()
        factory = self.factory or default_factory(digest.count)
        self._check_plan(factory, digest.count)
        self._encode(digest.count)
        self._index(factory, digest.count)
        manifest = Manifest(
            encoder=self.encoder.name,
            dimension=self.encoder.dimension,
            prefixes=self.encoder.prefixes,
            count=digest.count,
            factory=factory,
            corpus=digest.hexdigest(),
            files=file_records(self.result),
            libraries=library_versions(),
        )
        manifest.write(self.result)
        return manifest

    def _documents(self) -> Iterator[Document]:
        if isinstance(self.corpus, str | PathLike):
            return read_corpus(self.corpus)
        return check_documents(self.corpus)

    def _read(self) -> CorpusDigest:
        """Read and check the whole corpus and write its passages; keep the vectors of an earlier run over the same."""
        digest = CorpusDigest()
        source = str(self.corpus) if isinstance(self.corpus, str | PathLike) else "the list of documents"

        def digested() -> Iterator[Document]:
            for document in self._documents():
                digest.add(document)
                yield document

        if self.passages.exists():
            shutil.rmtree(self.passages)
        for count in write_passages(digested(), self.passages):
            self.report("read", count, None)
        if digest.count == 0:
            raise UserError(f"{source} has no passages")
        refuse_repeated_ids(stream_passages(self.passages), digest.suspects(), source)
        description = self._description(digest)
        if self._state() == description:
            logger.info("Going on with the build in %s", self.scratch)
        else:
            if self.vectors.exists():
                shutil.rmtree(self.vectors)
            write_synced(self.scratch / _STATE, json.dumps(description).encode())
        self.vectors.mkdir(exist_ok=True)
        return digest

    def _state(self) -> Any:
        try:
            return json.loads((self.scratch / _STATE).read_text())
        except (OSError, ValueError):
            return None

    def _description(self, digest: CorpusDigest) -> dict[str, Any]:
        return {
            "corpus": digest.hexdigest(),
            "count": digest.count,
            "encoder": self.encoder.name,
            "dimension": self.encoder.dimension,
            "prefixes": list(self.encoder.prefixes),
            "window": self.window,
        }

    def _check_plan(self, factory: str, count: int) -> None:
        check_factory(factory, self.encoder.dimension, count)
        vectors = count * self.encoder.dimension * 4
        done = sum(path.stat().st_size for path in self.vectors.iterdir())
        # An index is at most as large as its vectors and their graph; this covers all kinds short of that.
        needed = 2 * vectors - done + _SPARE_BYTES
        free = shutil.disk_usage(self.scratch).free
        if free < needed:
            raise UserError(
                f"the disk is too full to build in {self.scratch}: {needed / 1e9:.2f} GB needed, "
                f"{free / 1e9:.2f} GB free; free some space or give --out another disk"
            )

    def _encode(self, count: int) -> None:
        documents = stream_passages(self.passages)
        done = 0
        for number in range(-(-count // self.window)):
            part = list(islice(documents, self.window))
            path = self.vectors / f"{number:06d}.npy"
            if not self._is_whole(path, len(part)):
                write_array(path, self._encode_window(part, done, count))
            done += len(part)
            self.report("encode", done, count)

    def _is_whole(self, path: Path, count: int) -> bool:
        """Return whether an earlier run left this window undamaged."""
        if not path.exists():
            return False
        try:
            checked_vectors(np.load(path), count, self.encoder)
        except Exception as error:  # NumPy raises several families for what is not an array file
            logger.warning("Encoding again what %s should hold: %s", path, error)
            return False
        return True

    def _encode_window(self, part: list[Document], before: int, count: int) -> Vectors:
        texts = [document.contents for document in part]
        # Texts of like length side by side waste the least padding.
        order = sorted(range(len(texts)), key=lambda at: len(texts[at]), reverse=True)
        vectors = np.empty((len(texts), self.encoder.dimension), np.float32)
        done = 0
        for rows in batches(order, _REPORT_EVERY):
            found = self.encoder.encode_passages([texts[row] for row in rows])
            vectors[rows] = checked_vectors(found, len(rows), self.encoder)
            done += len(rows)
            self.report("encode", before + done, count)
        return vectors

    def _index(self, factory: str, count: int) -> None:
        index = new_index(factory, self.encoder.dimension)
        self.report("index", 0, count)
        if not index.is_trained:
            sample = self._training_sample(lists_of(index), count)
            with training_errors(factory, self.encoder.dimension, count):
                index.train(sample)
        done = 0
        for path in sorted(self.vectors.glob("*.npy")):
            vectors = np.load(path)
            with training_errors(factory, self.encoder.dimension, count):
                index.add(vectors)
            done = min(done + self.window, count)
            self.report("index", done, count)
        faiss.write_index(index, str(self.result / INDEX_FILE))

    def _training_sample(self, lists: int, count: int) -> Vectors:
        """Return evenly spaced vectors, enough for the lists; all of them for other kinds of index."""
        wanted = min(count, max(TRAINING_PER_LIST * lists, 65_536))
        rows = np.linspace(0, count - 1, wanted).round().astype(np.int64)
        sample = np.empty((wanted, self.encoder.dimension), np.float32)
        for number, path in enumerate(sorted(self.vectors.glob("*.npy"))):
            start = number * self.window
            first, last = np.searchsorted(rows, (start, start + self.window))
            sample[first:last] = np.load(path)[rows[first:last] - start]
        return sample
