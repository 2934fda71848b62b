"""What the benchmarks share: where the real data lies, and the table each of them prints."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

REPOSITORY = Path(__file__).resolve().parent.parent


def data_dir() -> Path | None:
    """Return the folder of real data, ``$MAPS_RAG_DATA`` or ``../shared/data``; None, said aloud, if there is none."""
    given = Path(os.environ.get("MAPS_RAG_DATA") or REPOSITORY.parent / "shared" / "data")
    if given.is_dir():
        return given
    print(
        f"NOTE: no real data at {given} (set MAPS_RAG_DATA): using the package's own small set instead.",
        file=sys.stderr,
    )
    return None


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a JSONL file."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def show_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print one table, as wide as it needs to be."""
    table = Table(title=title, title_justify="left")
    for name in header:
        table.add_column(name, justify="left" if name == header[0] else "right")
    for row in rows:
        table.add_row(*(f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row))
    Console(width=max(120, Console().width)).print(table)
