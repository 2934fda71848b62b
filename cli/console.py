"""What a command writes to: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import logging
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from types import TracebackType

from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

LABEL_WIDTH = 12


def output() -> Console:
    """Return a console on standard output; text in brackets is text, not markup."""
    return Console(markup=False, highlight=False, emoji=False)


def notes() -> Console:
    """Return a console on standard error."""
    return Console(stderr=True, markup=False, highlight=False, emoji=False)


class Screen:
    """Where one command writes.

    ``text`` takes what the user reads, ``live`` what moves. Both are standard output on a terminal, so that they do
    not overwrite each other; into a pipe or a file goes only the text.

    :param quiet_stdout: True where standard output must stay free of both, for JSON.
    """

    def __init__(self, quiet_stdout: bool = False) -> None:
        self.text = notes() if quiet_stdout else output()
        self.live = self.text if self.text.is_terminal else notes()

    def say(self, text: str = "", style: str = "") -> None:
        """Write a line."""
        self.text.print(Text(clean(text), style=style), soft_wrap=not self.text.is_terminal)

    def field(self, label: str, texts: Iterable[str], style: str = "") -> None:
        """Write a label and its texts, one line each; long ones are wrapped under themselves on a terminal."""
        for text in texts:
            if self.text.is_terminal:
                row = Table.grid(padding=(0, 0, 0, 2))
                row.add_column(width=LABEL_WIDTH)
                row.add_column(ratio=1)
                row.add_row(Text(label, style="dim"), Text(clean(text), style=style))
                self.text.print(Padding(row, (0, 0, 0, 2)))
            else:
                self.text.print(Text(f"  {label:<{LABEL_WIDTH}}{clean(text)}"), soft_wrap=True)
            label = ""

    def columns(self, lines: Sequence[Sequence[str]]) -> None:
        """Write lines of cells under each other, for what is no terminal and may be cut by columns."""
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            self.say("  ".join(f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)).rstrip())


class Spinner:
    """A moving line that names the step under way and its seconds; nothing where nobody sees it move."""

    def __init__(self, console: Console, step: str) -> None:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._task = self._bar.add_task(step)

    def step(self, text: str) -> None:
        """Name the step that begins now."""
        self._bar.reset(self._task, description=text)

    def __enter__(self) -> Spinner:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()


class NotesHandler(logging.Handler):
    """Writes log records to standard error, one line each."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(f"{record.levelname.capitalize()}: {one_line(record.getMessage())}\n")


def clean(text: str) -> str:
    """Return text without control characters: what a corpus or a model wrote must not steer the terminal."""
    return "".join(" " if unicodedata.category(char) in ("Cc", "Cs") else char for char in str(text))


def one_line(text: str) -> str:
    """Return text on one line."""
    return " ".join(clean(text).split())


def count(number: int | float, noun: str) -> str:
    """Return a number with its noun: "1 round", "1,024 tokens"."""
    plural = noun if number == 1 else noun + ("es" if noun.endswith(("s", "ch", "sh", "x")) else "s")
    return f"{number:,} {plural}"
