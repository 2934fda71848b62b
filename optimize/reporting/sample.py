"""Which questions the page shows, and their trajectories."""

from __future__ import annotations

import heapq
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from maps_rag.optimize.reporting.cells import primary_score
from maps_rag.optimize.reporting.results import Results
from maps_rag.optimize.reporting.run_dir import TRAJECTORIES, Key, key_of, read_lines

_STRING = r'"(?:[^"\\]|\\.)*"'
# As the runner writes a line: three strings first. Any other order costs a parse, no more.
_START = re.compile(rf'\{{"method":\s*({_STRING}),\s*"dataset":\s*({_STRING}),\s*"id":\s*({_STRING})'.encode())


@dataclass(slots=True)
class Shown:
    """One question of the sample: its line of the journal and, where it was found, that of the trajectories."""

    key: Key
    line: dict[str, Any]
    record: dict[str, Any] | None = None

    @property
    def right(self) -> bool:
        """Whether the primary score says that the answer is right."""
        return primary_score(self.line["scores"]) >= 0.5


class Sampler:
    """Chooses the same number of questions for every method, right and wrong, while the journal goes by.

    The choice depends on the seed and the questions alone, not on their order; and it prefers the same questions for
    all methods, so that they can be compared. Failed questions are not chosen: they left no trajectory.

    :param size: how many questions at most.
    :param strata: how many groups of (method, right or wrong) there can be.
    """

    def __init__(self, size: int, strata: int, seed: int = 0) -> None:
        self._room = max(1, size // max(1, strata)) if size > 0 else 0
        self._seed = seed
        self._kept: dict[tuple[str, bool], list[tuple[int, Key, dict[str, Any]]]] = {}

    def see(self, key: Key, line: dict[str, Any]) -> None:
        """Look at a line of the journal."""
        if "error" in line or not self._room:
            return
        right = primary_score(line["scores"]) >= 0.5
        kept = self._kept.setdefault((key[0], right), [])
        entry = (-self._rank(key), key, line)  # a heap's first is its smallest: the one to go
        if len(kept) < self._room:
            heapq.heappush(kept, entry)
        elif entry[:2] > kept[0][:2]:
            heapq.heapreplace(kept, entry)

    def _rank(self, key: Key) -> int:
        _, dataset, name, run = key
        text = json.dumps([self._seed, dataset, name, run])
        return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")

    def chosen(self, results: Results) -> list[Shown]:
        """Return the sample, in the order of the sets, questions and methods."""
        entries = [Shown(key, line) for kept in self._kept.values() for _, key, line in kept]
        return sorted(
            entries,
            key=lambda item: (
                results.sets.index(item.key[1]),
                item.key[2],
                results.methods.index(item.key[0]),
                item.key[3],
            ),
        )


def find_trajectories(sample: list[Shown], results: Results) -> None:
    """Fill in the trajectories of a sample. The files are read once, a line at a time; nothing else is kept."""
    wanted = {item.key: item for item in sample}
    for number, run in enumerate(results.runs):
        path = run.path / TRAJECTORIES
        if not path.is_file():
            continue
        names = {key[1:3] for key in wanted}
        for line, content in _lines_about(path, names):
            method, *rest = key_of(content, f"{path}:{line}")
            label = results.labels.get((number, method), method)
            if (item := wanted.get((label, *rest))) is not None:  # type: ignore[arg-type]
                item.record = content


def _lines_about(path: Path, names: set[tuple[str, str]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the lines about some (set, id); a line whose beginning names another is not parsed."""

    def skip(raw: bytes) -> bool:
        start = _START.match(raw)
        return start is not None and (json.loads(start[2]), json.loads(start[3])) not in names

    return read_lines(path, skip)
