"""Which FAISS index to build, how to search it, and how to open it without reading it."""

from __future__ import annotations

import math
import os
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# With as many threads as cores, OpenMP's busy waiting makes a query take 50 times as long (1.4 s, measured) as soon as
# anything else wants a core. Read once, when FAISS and torch load their OpenMP libraries; a user's own choice stays.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import faiss
import numpy as np
from maps_rag.programs.errors import UserError

# Up to here an exact search over all vectors takes a few milliseconds (measured at 384 dimensions).
FLAT_UP_TO = 100_000
# Where recall of the top 5 levelled off in our trials on IVF with 8 bit codes.
NPROBE = 64
# efSearch of HNSW indexes: full recall in the same trials.
EF_SEARCH = 128
# Vectors per list for training. FAISS asks for 39, and copies the sample twice while it trains.
TRAINING_PER_LIST = 40
# Above this k-means alone takes hours without a GPU.
_MOST_LISTS = 16_384
# Up to so many passages a factory is tried on random vectors before anything is encoded, which takes far longer.
_TRIED_UP_TO = 1000
# With fewer neighbours HNSW (1) crashes the process and NSG (2) never ends, in FAISS 1.15.1.
_FEWEST_NEIGHBOURS = 4

# In the faiss-cpu wheels the threshold is so high that BLAS is never used; with it batches are searched several times
# faster (13 times for 16 queries over 100,000 vectors, measured with 1.15.1).
faiss.cvar.distance_compute_blas_threshold = 1

if hasattr(os, "register_at_fork"):
    # OpenMP's threads do not exist in a forked process: a parallel search would wait for them for ever.
    os.register_at_fork(after_in_child=lambda: faiss.omp_set_num_threads(1))


def default_factory(count: int) -> str:
    """Return the factory string for a number of passages: Flat, above 100,000 IVF with 8 bit codes (ours)."""
    if count <= FLAT_UP_TO:
        return "Flat"
    lists = min(_MOST_LISTS, 2 ** round(math.log2(4 * math.sqrt(count))))
    return f"IVF{lists},SQ8"


def new_index(factory: str, dimension: int) -> Any:
    """Return an empty inner-product index.

    :raises UserError: FAISS does not understand the string, or not for this dimension.
    """
    reason = _refusal(factory, dimension)
    if not reason:
        try:
            return faiss.index_factory(dimension, factory, faiss.METRIC_INNER_PRODUCT)
        except (RuntimeError, MemoryError) as error:
            reason = _reason(error)
    raise UserError(
        f"{factory!r} is not a FAISS factory string for {dimension} dimensions ({reason}); "
        "examples: Flat, 'IVF1024,SQ8', HNSW32"
    )


def _refusal(factory: str, dimension: int) -> str:
    """Say what in a factory string FAISS accepts and then crashes or fails on, or nothing."""
    if not isinstance(factory, str):
        return f"a string, not {type(factory).__name__}"
    if re.search(r"(?<!\d)0+(?!\d)", factory):
        return "a number in it is 0"
    if any(int(number) < _FEWEST_NEIGHBOURS for number in re.findall(r"(?:HNSW|NSG)(\d{1,9})", factory)):
        return f"a graph needs at least {_FEWEST_NEIGHBOURS} neighbours"
    if any(int(number) > dimension for number in re.findall(r"PCA[WR]*(\d{1,9})", factory)):
        return "PCA cannot add dimensions"
    return "passages are known by their row; leave IDMap out" if "IDMap" in factory else ""


def _reason(error: Exception) -> str:
    """Return FAISS's own words without the place in its source."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[-1].rpartition("failed: ")[2][-160:]


@contextmanager
def training_errors(factory: str, dimension: int, count: int) -> Iterator[None]:
    """Turn what FAISS raises while it trains or adds into one line.

    :raises UserError: naming the factory and the number of passages.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        raise UserError(
            f"{factory!r} does not work for {count} passages of {dimension} dimensions ({_reason(error)}); "
            "give another, such as Flat: passages that are encoded already are kept"
        ) from error


def check_factory(factory: str, dimension: int, count: int) -> None:
    """Raise if an index of this kind cannot be made of so many passages, as far as can be told without their vectors.

    :raises UserError: naming the factory and the number of passages.
    """
    index = new_index(factory, dimension)
    lists = lists_of(index)
    if lists > count:
        raise UserError(f"{factory} needs at least {lists} passages, the corpus has {count}; use a smaller one or Flat")
    if count > _TRIED_UP_TO:
        return
    vectors = np.random.default_rng(0).standard_normal((count, dimension), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with training_errors(factory, dimension, count):
        index.train(vectors)
        index.add(vectors)
        index.search(vectors[:1], 1)


def lists_of(index: Any) -> int:
    """Return the number of lists of an IVF index, 0 for others."""
    inverted = faiss.try_extract_index_ivf(index)
    return int(inverted.nlist) if inverted is not None else 0


def search_parameters(index: Any, nprobe: int = NPROBE, ef_search: int = EF_SEARCH) -> Any:
    """Return the per-call parameters for an index, None where its kind takes none. The index itself is not changed."""
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform):
        inner = search_parameters(index.index, nprobe, ef_search)
        return None if inner is None else faiss.SearchParametersPreTransform(index_params=inner)
    if isinstance(index, faiss.IndexRefine):
        inner = search_parameters(index.base_index, nprobe, ef_search)
        return faiss.IndexRefineSearchParameters(k_factor=index.k_factor, base_index_params=inner)
    if isinstance(index, faiss.IndexIVF):
        return faiss.SearchParametersIVF(nprobe=min(nprobe, index.nlist))
    if isinstance(index, faiss.IndexHNSW):
        return faiss.SearchParametersHNSW(efSearch=ef_search)
    return None


def read_header(path: Path) -> tuple[str, int, int]:
    """Return the kind (four letters), dimension and number of vectors that an index file begins with."""
    with path.open("rb") as file:
        head = file.read(16)
    if len(head) < 16:
        raise UserError(f"{path} is not a FAISS index: it has {len(head)} bytes; build the index again")
    kind, dimension, count = struct.unpack("<4siq", head)
    return kind.decode("latin-1"), dimension, count


def open_index(path: str | os.PathLike[str]) -> Any:
    """Open an index file memory-mapped: vectors are read when a search needs them.

    :raises UserError: FAISS cannot read the file.
    """
    try:
        return faiss.read_index(os.fspath(path), faiss.IO_FLAG_MMAP_IFC | faiss.IO_FLAG_READ_ONLY)
    except RuntimeError as error:
        raise UserError(
            f"{os.fspath(path)} is not a readable FAISS index ({_reason(error)}); build the index again"
        ) from None
