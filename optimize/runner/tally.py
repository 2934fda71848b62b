"""Running sums over a run directory: what is done, how well, and what it took."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from maps_rag.optimize.runner.journal import Key, key_of

COUNTED = ("calls", "requests", "retrievals", "prompt_tokens", "completion_tokens", "billed_tokens")


@dataclass(slots=True)
class Row:
    """One method: finished and failed questions, the sum of their Cover-EM, and the usage of the finished."""

    total: int = 0
    finished: int = 0
    failed: int = 0
    score: float = 0.0
    usage: dict[str, float] = field(default_factory=lambda: dict.fromkeys(COUNTED, 0))

    @property
    def cover_em(self) -> float | None:
        """The mean Cover-EM of the finished questions; None where there are none."""
        return self.score / self.finished if self.finished else None


class Tally:
    """What the lines of a journal add up to; takes lines from any thread.

    ``tokens`` are billed tokens and ``money`` is what they cost, of all that was ever asked in the directory: failed
    attempts and questions asked again included.

    :param methods: how many questions each method has to answer.
    :param price: what a line's ``usage`` costs.
    """

    def __init__(self, methods: Mapping[str, int], price: Callable[[Mapping[str, Any]], float] | None = None) -> None:
        self.rows = {name: Row(total) for name, total in methods.items()}
        self.tokens = 0
        self.money = 0.0
        self.last_error = ""
        self._price = price
        self._lock = threading.Lock()
        self._done: dict[Key, bool] = {}

    @classmethod
    def read(
        cls,
        lines: Iterable[Mapping[str, Any]],
        methods: Mapping[str, int],
        price: Callable[[Mapping[str, Any]], float] | None = None,
    ) -> Tally:
        """Add up the lines of a journal."""
        tally = cls(methods, price)
        for line in lines:
            tally.add(line)
        tally.last_error = ""
        return tally

    def add(self, line: Mapping[str, Any]) -> None:
        """Count one line; a line about a question that failed before takes the place of that."""
        key, finished = key_of(line), "error" not in line
        usage = line.get("usage") or {}
        spent = self._price(usage) if self._price is not None and usage else 0.0
        with self._lock:
            self.tokens += int(usage.get("billed_tokens", 0))
            self.money += spent
            if not finished:
                self.last_error = str(line["error"])
            row = self.rows.get(key[0])
            before = self._done.get(key)
            if row is None or before:  # a finished question is never asked again
                return
            self._done[key] = finished
            row.failed += int(not finished) - int(before is False)
            if finished:
                row.finished += 1
                row.score += line["scores"]["cover_em"]
                for name in COUNTED:
                    row.usage[name] += usage.get(name, 0)

    def is_finished(self, key: Key) -> bool:
        """Return whether a question has been answered."""
        return self._done.get(key, False)

    @property
    def finished(self) -> int:
        """Questions answered, over all methods and runs."""
        return sum(row.finished for row in self.rows.values())

    @property
    def failed(self) -> int:
        """Questions whose last attempt failed."""
        return sum(row.failed for row in self.rows.values())

    @property
    def total(self) -> int:
        """Questions to answer."""
        return sum(row.total for row in self.rows.values())
