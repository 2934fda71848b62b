"""How fast an index is built, what memory a build takes and what opening costs.

1. Build rate against the bare model's best rate (over batch sizes) on the same 2,000 texts, interleaved: after each
   piece of the build the bare model encodes the same piece, sorted by length alike. At least 0.95.
2. Memory from 10,000 to 200,000 passages with a stub encoder: the peak grows by no more than the vectors and 100 bytes
   a passage.
3. Opening an index of 1,000,000 x 384 (IVF, 8 bit codes): under 0.3 s and under 50 MB resident.

Exits with 1 if a bar is missed. The parts can be run by name: ``index.py rate memory open``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import data_dir, show_table
from maps_rag.optimize.mini import passages_path
from maps_rag.programs.retrieval import Document, E5Retriever, Prefixes, build_index, load_encoder, read_corpus

BATCH_SIZES = (16, 32, 64)
Bar = tuple[str, float, str, bool]


class RandomEncoder:
    """Random unit vectors at no cost."""

    prefixes = Prefixes("", "")

    def __init__(self, dimension: int) -> None:
        self.name = "random"
        self.dimension = dimension
        self._random = np.random.default_rng(0)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        vectors = self._random.standard_normal((len(texts), self.dimension), dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    encode_passages = encode_queries


def rate(folder: Path, count: int) -> list[Bar]:
    """Build an index and let the bare model encode the same pieces in turn with it."""
    source = data_dir()
    corpus = passages_path() if source is None else source / "corpus_multihop.jsonl"
    documents = list(itertools.islice(read_corpus(corpus), count))
    encoder = load_encoder("local")
    texts = sorted((encoder.prefixes.passage + document.contents for document in documents), key=len, reverse=True)
    bare: dict[int, float] = dict.fromkeys(BATCH_SIZES, 0.0)
    paused = 0.0
    done_before = 0

    def piece(phase: str, done: int, total: int | None) -> None:
        nonlocal paused, done_before
        if phase != "encode" or done == done_before:
            return
        began = time.perf_counter()
        for size in BATCH_SIZES:
            started = time.perf_counter()
            encoder.model.encode(texts[done_before:done], batch_size=size, show_progress_bar=False)
            bare[size] += time.perf_counter() - started
        done_before = done
        paused += time.perf_counter() - began

    encoder.encode_passages(texts[:64])  # warm up
    began = time.perf_counter()
    build_index(documents, folder / "rate", encoder, progress=piece, window=len(documents))
    ours = time.perf_counter() - began - paused
    best = min(bare.values())
    show_table(
        f"Encoding {len(documents)} passages",
        ("", "passages/s"),
        [("build_index", len(documents) / ours)]
        + [(f"bare model, batches of {size}", len(documents) / seconds) for size, seconds in bare.items()],
    )
    return [("build rate / bare model's best", best / ours, ">= 0.95", best / ours >= 0.95)]


def memory(folder: Path, dimension: int) -> list[Bar]:
    """Build small and large indexes, each in a process of its own, and compare their peaks."""
    small, large = 10_000, 200_000
    peaks = [int(_child("peak", folder, count, dimension)["peak"]) for count in (small, large)]
    grown = (peaks[1] - peaks[0]) / (large - small)
    allowed = 4 * dimension + 100
    show_table(
        f"Memory of a build, {dimension} dimensions",
        ("passages", "peak MB"),
        [(count, peak / 1e6) for count, peak in zip((small, large), peaks, strict=True)],
    )
    return [("bytes a passage from 10,000 to 200,000", grown, f"<= {allowed}", grown <= allowed)]


def opening(folder: Path) -> list[Bar]:
    """Build a large index and open it in a fresh process."""
    count, dimension = 1_000_000, 384
    build_index(MadeUp(count), folder / "large", RandomEncoder(dimension), factory="IVF1024,SQ8")
    build_index(MadeUp(100), folder / "tiny", RandomEncoder(dimension), factory="IVF2,SQ8")
    found = [_child("open", folder, count, dimension) for _ in range(5)]
    seconds = sorted(one["seconds"] for one in found)[2]
    megabytes = sorted(one["bytes"] for one in found)[2] / 1e6
    return [
        ("opening 1,000,000 x 384, s", seconds, "< 0.3", seconds < 0.3),
        ("opening 1,000,000 x 384, MB resident", megabytes, "< 50", megabytes < 50),
    ]


class MadeUp:
    """A corpus of passages of about 300 bytes that is never in memory as a whole."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Document]:
        text = "A passage of the length that is usual in this field, with nothing in it that anyone asks for. " * 3
        for at in range(self.count):
            yield Document(f"p{at}", f"Title {at}", text)


def _child(task: str, folder: Path, count: int, dimension: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", task, str(folder), str(count), str(dimension)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return dict(json.loads(output.splitlines()[-1]))


def run_child(task: str, folder: Path, count: int, dimension: int) -> dict[str, float]:
    """Do one measured task; the parent reads the last line of the output."""
    encoder: Any = RandomEncoder(dimension)
    if task == "peak":
        build_index(MadeUp(count), folder / f"memory-{count}", encoder)
        return {"peak": memory_of_this_process("VmHWM")}
    E5Retriever(folder / "tiny", encoder).search(["a"], 5)  # whatever is loaded at first use is no cost of the index
    before = memory_of_this_process("VmRSS")
    began = time.perf_counter()
    retriever = E5Retriever(folder / "large", encoder)
    seconds = time.perf_counter() - began
    grown = memory_of_this_process("VmRSS") - before
    assert len(retriever.search(["a"], 5)[0]) == 5
    return {"seconds": seconds, "bytes": grown}


def memory_of_this_process(field: str) -> int:
    """Return the bytes resident now (VmRSS) or at most (VmHWM), from Linux.

    getrusage would not do: a child starts with its parent's peak.
    """
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        task, folder, count, dimension = sys.argv[2:]
        print(json.dumps(run_child(task, Path(folder), int(count), int(dimension))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="default: all three")
    parser.add_argument("--texts", type=int, default=2000, help="texts of the rate part")
    parser.add_argument("--dimension", type=int, default=384, help="dimensions of the memory part")
    options = parser.parse_args()
    parts = options.parts or ["rate", "memory", "open"]
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "rate" in parts:
            bars += rate(folder, options.texts)
        if "memory" in parts:
            bars += memory(folder, options.dimension)
        if "open" in parts:
            bars += opening(folder)
    show_table("Bars", ("", "measured", "bar", "held"), [(*bar[:3], "yes" if bar[3] else "NO") for bar in bars])
    return 0 if all(held for *_, held in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
