"""``maps-rag index build``: from a corpus to an index directory."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from maps_rag.cli.console import Screen, Spinner, count, notes
from maps_rag.cli.entry import INTERRUPTED
from maps_rag.cli.errors import CommandError
from maps_rag.cli.quiet import after_imports
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

if TYPE_CHECKING:
    from maps_rag.programs.retrieval import Manifest
    from rich.progress import Task

PHASES = {"read": "Reading", "encode": "Encoding", "index": "Indexing", "check": "Checking"}


def build(
    corpus: Annotated[
        str,
        typer.Argument(
            help="JSON lines of {id, title, text} or {id, contents}, DPR's .tsv, either with .gz, or a datasets id.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The directory to make.", show_default=False)],
    encoder: Annotated[
        str,
        typer.Option(help="local (multilingual-e5-small, works offline), a model directory or a Hugging Face id."),
    ] = "local",
    factory: Annotated[
        str | None,
        typer.Option(help="FAISS factory string (Flat; above 100,000 passages IVF with SQ8).", metavar="STRING"),
    ] = None,
) -> None:
    """Build an index from a corpus; an interrupted build goes on when the command is given again."""
    screen = Screen()
    start = time.perf_counter()
    try:
        manifest = build_with_bar(corpus, out, encoder, factory)
    except KeyboardInterrupt:
        raise CommandError("Stopped: the same command goes on from where this one was.", INTERRUPTED) from None
    seconds = time.perf_counter() - start
    screen.say(
        f"Built {out}: {count(manifest.count, 'passage')}, encoder {manifest.encoder}, "
        f"{manifest.dimension} dimensions, {manifest.factory}, in {seconds:.0f} s"
    )


def build_with_bar(corpus: str, out: Path, encoder: str = "local", factory: str | None = None) -> Manifest:
    """Build an index and show how far it is on standard error."""
    with Spinner(notes(), "Loading"):
        from maps_rag.programs.retrieval import build_index

        after_imports()
    unpack_encoder(encoder)
    with BuildBar() as bar:
        manifest = build_index(corpus, out, encoder, factory=factory, progress=bar)
        after_imports()
    return manifest


def unpack_encoder(encoder: str) -> None:
    """Unpack the encoder of this machine with a progress bar, where it is the one asked for and not unpacked yet."""
    from maps_rag.programs.retrieval.encoders import LOCAL
    from maps_rag.programs.retrieval.local_e5 import local_e5_directory

    if encoder == LOCAL:
        local_e5_directory(progress=True)


class BuildBar:
    """A progress bar per phase of a build: passages done, passages per second, time left."""

    def __init__(self) -> None:
        columns = (
            TextColumn("{task.description:<9}"),
            BarColumn(),
            MofNCompleteColumn(),
            RateColumn(),
            TextColumn("left"),
            TimeRemainingColumn(compact=True),
        )
        self._bar = Progress(*columns, console=notes())
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, int] = {}

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        from maps_rag.programs.retrieval.build import WINDOW

        if phase not in self._tasks:
            self._finish()
            self._tasks[phase] = self._bar.add_task(PHASES.get(phase, phase), total=total, completed=0)
        task = self._tasks[phase]
        if phase == "encode" and done - self._last.get(phase, 0) >= WINDOW:
            # A whole window at once was there already: it must not count as speed.
            self._bar.reset(task, total=total, completed=done)
        else:
            self._bar.update(task, completed=done, total=total)
        self._last[phase] = done

    def _finish(self) -> None:
        # Reading ends without a total: the count is known only then.
        for phase, task in self._tasks.items():
            self._bar.update(task, total=self._last[phase], completed=self._last[phase])

    def __enter__(self) -> BuildBar:
        self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            self._finish()
        self._bar.stop()


class RateColumn(ProgressColumn):
    """Passages per second, over the last half minute."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{speed:,.0f} passages/s" if speed else "")
