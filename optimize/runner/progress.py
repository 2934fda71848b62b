"""Shows an evaluation under way: score, tokens, questions per second and time left."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Protocol

from maps_rag.optimize.runner.tally import Row, Tally
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

_OVERALL = "all"
_PERIOD = 900.0  # seconds over which the speed is taken: a question may take minutes
_PARTS = 10


class Watcher(Protocol):
    """Shows how far an evaluation is; entered when it begins and left when it ends.

    ``show`` is called at the beginning and after each question, from any thread, with sums that go on changing.
    """

    def show(self, tally: Tally) -> None: ...

    def __enter__(self) -> Watcher: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Quiet:
    """Shows nothing."""

    def show(self, tally: Tally) -> None:
        """Do nothing."""

    def __enter__(self) -> Quiet:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing."""


def default_watcher() -> Watcher:
    """Return bars where standard error is a terminal, else nothing."""
    bars = Bars()
    return bars if bars.console.is_terminal else Quiet()


class Bars:
    """A bar for each method and one for all of them; where nothing can move, a line for each tenth of the way.

    :param console: where to; standard error by default.
    """

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(stderr=True, markup=False, highlight=False, emoji=False)
        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TextColumn("{task.fields[score]}"),
            TextColumn("{task.fields[spent]}"),
            _Speed(),
            TimeRemainingColumn(compact=True),
        )
        self._moves = self.console.is_terminal
        self._bars = Progress(
            *columns, console=self.console, disable=not self._moves, speed_estimate_period=_PERIOD, transient=True
        )
        self._tasks: dict[str, TaskID] = {}
        self._start = time.monotonic()
        self._before: int | None = None
        self._said = 0
        self._lock = threading.Lock()

    def show(self, tally: Tally) -> None:
        """Bring the bars up to date, or write the next line."""
        with self._lock:
            if self._before is None:
                self._before = tally.finished
                self._said = self._part(tally)
            if self._moves:
                for name, row in tally.rows.items():
                    self._move(name, row.finished + row.failed, row.total, score=_score(row))
                done, spent = tally.finished + tally.failed, spent_text(tally)
                failed = f", {tally.failed:,} failed ({tally.last_error[:60]})" if tally.failed else ""
                self._move(_OVERALL, done, tally.total, spent=spent + failed)
            elif self._part(tally) > self._said:
                self._said = self._part(tally)
                self.console.print(Text(self._line(tally)), soft_wrap=True)

    def _move(self, name: str, done: int, total: int, score: str = "", spent: str = "") -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=total, completed=done, score=score, spent=spent)
        self._bars.update(self._tasks[name], completed=done, score=score, spent=spent)

    def _part(self, tally: Tally) -> int:
        return _PARTS * (tally.finished + tally.failed) // max(1, tally.total)

    def _line(self, tally: Tally) -> str:
        seconds = max(time.monotonic() - self._start, 1e-9)
        answered = tally.finished - (self._before or 0)
        speed = answered / seconds
        left = tally.total - tally.finished - tally.failed
        parts = [f"{tally.finished + tally.failed:,} of {tally.total:,} questions", speed_text(speed)]
        parts += [f"{name} {_score(row)}" for name, row in tally.rows.items()]
        parts += [spent_text(tally)] + ([f"{tally.failed:,} failed"] if tally.failed else [])
        parts += [f"{left / speed / 60:,.1f} min left"] if speed and left else []
        return ", ".join(part for part in parts if part)

    def __enter__(self) -> Bars:
        self._start = time.monotonic()
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()


def spent_text(tally: Tally) -> str:
    """Return the tokens billed so far and, with prices, what they cost."""
    cost = f" (cost {tally.money:,.2f})" if tally.money else ""
    return f"{tally.tokens:,} tokens{cost}"


def speed_text(speed: float) -> str:
    """Return questions per second, or per minute where they are slow."""
    return f"{speed:.1f} questions/s" if speed >= 1 else f"{60 * speed:.1f} questions/min"


class _Speed(ProgressColumn):
    """Questions per second of all methods together."""

    def render(self, task: Task) -> Text:
        if task.description != _OVERALL or not task.speed:
            return Text("")
        return Text(speed_text(task.speed))


def _score(row: Row) -> str:
    return "" if row.cover_em is None else f"Cover-EM {100 * row.cover_em:.1f}"
