"""``maps-rag index info``: what an index directory holds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from maps_rag.cli.console import Screen, Spinner
from maps_rag.cli.quiet import after_imports
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


def info(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="The index directory.", show_default=False)],
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare its checksum.")] = False,
) -> None:
    """Show what an index holds, after checking that its files are the ones it was built with."""
    screen = Screen()
    with Spinner(screen.live, "Opening the index"):
        from maps_rag.programs.retrieval import Index

        after_imports()
        manifest = Index(directory).manifest
    if verify:
        verify_with_bar(directory, screen)
    size = sum(record.size for record in manifest.files.values())
    screen.say(str(directory), style="bold")
    for label, value in (
        ("passages", f"{manifest.count:,}"),
        ("encoder", manifest.encoder),
        ("dimension", str(manifest.dimension)),
        ("prefixes", f"query {manifest.prefixes.query!r}, passage {manifest.prefixes.passage!r}"),
        ("faiss", f"{manifest.factory}, {manifest.metric.replace('_', ' ')}"),
        ("size", f"{size / 1e6:,.1f} MB in {len(manifest.files)} files"),
        ("built with", ", ".join(f"{name} {version}" for name, version in manifest.libraries.items())),
        ("fingerprint", manifest.fingerprint),
        ("checksums", "all as built" if verify else "not read (--verify reads them)"),
    ):
        screen.field(label, [value])


def verify_with_bar(directory: Path, screen: Screen) -> None:
    """Compare all checksums and show how far it is."""
    from maps_rag.programs.retrieval import verify_index

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=screen.live, transient=True, disable=not screen.live.is_terminal) as bar:
        task = bar.add_task("Checking", total=None)
        verify_index(directory, progress=lambda done, total: bar.update(task, completed=done, total=total))
