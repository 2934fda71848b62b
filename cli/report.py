"""``maps-rag report``: what evaluation runs came to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from maps_rag.cli.console import Screen, Spinner, clean
from maps_rag.cli.quiet import after_imports
from rich.text import Text


def report_runs(
    dirs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="The run directories that maps-rag eval has written.", show_default=False
        ),
    ],
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the tables here instead of showing them.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write one page with tables, figures and questions.", show_default=False),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The method to compare the others with, or all (maps, else the first).",
            show_default=False,
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=0, help="Questions on the page, at most.")] = 120,
    seed: Annotated[int, typer.Option(help="Of the sample and the intervals.")] = 0,
    drift: Annotated[
        bool, typer.Option("--drift", help="Add the section on drift; all sub-queries are encoded for it.")
    ] = False,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="For --drift: the index, with the text of gold passages named by id.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Report evaluation runs: scores with intervals, comparisons, costs, and the questions one by one."""
    screen = Screen()
    with Spinner(screen.live, "Reading the runs"):
        from maps_rag.optimize.reporting import report

        after_imports()
        made = report(
            dirs,
            markdown=markdown,
            html=html,
            against=against,
            sample=sample,
            seed=seed,
            drift=drift,
            index=index,
        )
    if markdown is None:
        for line in made.markdown().splitlines():
            screen.text.print(Text(clean(line)), soft_wrap=True)
    for path in (markdown, html):
        if path is not None:
            screen.live.print(Text(f"Wrote {clean(str(path))}"), soft_wrap=True)
