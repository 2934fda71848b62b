"""``maps-rag drift``: whether sub-queries drift, and what the paper's momentum says about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from maps_rag.cli.console import Screen, Spinner, clean
from maps_rag.cli.quiet import after_imports
from rich.text import Text


def measure_runs(
    dirs: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...", help="The run directories that maps-rag eval has written.", show_default=False
        ),
    ],
    encoder: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The retriever's encoder (the one that the runs name).", show_default=False),
    ] = None,
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The index: it has the text of gold passages named by id.", show_default=False
        ),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="The last step of the momentum; the paper's 4.")] = 4,
    min_rounds: Annotated[
        int, typer.Option(min=2, help="Rounds that a question must have for the momentum; the paper's 3.")
    ] = 3,
    joint: Annotated[bool, typer.Option("--joint", help="Fit all beta together, not step by step.")] = False,
    markdown: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the tables here instead of showing them.", show_default=False),
    ] = None,
    numbers: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write every number here.", show_default=False),
    ] = None,
    plots: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Draw the figures into this folder (extra plots).", show_default=False),
    ] = None,
    form: Annotated[str, typer.Option(metavar="FORM", help="Of the figures: svg, pdf or png.")] = "svg",
    seed: Annotated[int, typer.Option(help="Of the halves, the nulls and the random passages.")] = 0,
) -> None:
    """Measure drift in evaluation runs: similarity to question and gold, monitors, and momentum beside its nulls."""
    screen = Screen()
    with Spinner(screen.live, "Encoding and measuring"):
        from maps_rag.optimize.reporting import drift

        after_imports()
        made = drift(
            dirs,
            encoder=encoder,
            index=index,
            steps=steps,
            min_rounds=min_rounds,
            mode="joint" if joint else "step",
            seed=seed,
            markdown=markdown,
            numbers=numbers,
            plots=plots,
            form=form,
        )
    if markdown is None:
        for line in made.markdown().splitlines():
            screen.text.print(Text(clean(line)), soft_wrap=True)
    for path in (markdown, numbers, *made.plots):
        if path is not None:
            screen.live.print(Text(f"Wrote {clean(str(path))}"), soft_wrap=True)
