"""The bar that shows on standard error how many bytes of a file are done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def byte_bar(enabled: bool = True) -> Iterator[Progress]:
    """Show a progress bar whose tasks count bytes."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=not enabled) as bar:
        yield bar
