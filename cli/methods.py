"""``maps-rag methods``: what there is to choose from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maps_rag.cli.console import Screen, Spinner
from maps_rag.cli.quiet import after_imports
from rich.table import Table
from rich.text import Text

HEADER = ("method", "paper", "model calls", "searches", "original is", "presets")
LEGEND = "R: rounds run, N: queries a round, K: passages a query. Every method is prompted here; nothing is trained."


def methods() -> None:
    """List the methods: where they come from, what a question costs, and their presets."""
    screen = Screen()
    with Spinner(screen.live, "Loading"):
        from maps_rag.programs import METHODS

        after_imports()
    rows = [
        (
            name,
            method.paper,
            method.calls,
            method.retrievals,
            "trained" if method.trained else "prompted",
            show_presets({preset: {**knobs, **method.fixed} for preset, knobs in method.presets.items()}),
        )
        for name, method in METHODS.items()
    ]
    if screen.text.is_terminal:
        table = Table(show_lines=True)  # stacked, so that 80 columns suffice
        table.add_column("method, paper, original", min_width=max(map(len, METHODS)))
        table.add_column("model calls, searches", max_width=28)
        table.add_column("presets")
        for name, paper, calls, searches, original, presets in rows:
            head = Text.assemble((name, "bold"), f"\n{paper}\n{original}")
            table.add_row(head, Text(f"{calls}\n{searches}"), Text("\n".join(presets)))
        screen.text.print(table)
    else:
        screen.columns([HEADER, *((*cells, "; ".join(presets)) for *cells, presets in rows)])
    screen.say()
    screen.say(LEGEND)
    screen.say("Choose one: maps-rag ask QUESTION --index DIR --method NAME")


def show_presets(presets: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return one line for each set of knobs; presets that are the same share it. Knobs left out have defaults."""
    lines: dict[str, list[str]] = {}
    for preset, knobs in presets.items():
        shown = ", ".join(f"{name}={value!r}" for name, value in knobs.items()) or "no knobs of its own"
        lines.setdefault(shown, []).append(preset)
    return [f"{', '.join(names)}: {shown}" for shown, names in lines.items()]
