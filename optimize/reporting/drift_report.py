"""Reports the drift of evaluation runs: tables, plots, plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maps_rag.metrics.drift import QueryEncoder
from maps_rag.metrics.drift.momentum import Mode
from maps_rag.metrics.drift.scores import MIN_ROUNDS, STEPS
from maps_rag.optimize.reporting.document import Document
from maps_rag.optimize.reporting.drift_cells import CellDrift, measure_drift
from maps_rag.optimize.reporting.drift_plots import save_plots
from maps_rag.optimize.reporting.drift_tables import drift_section
from maps_rag.optimize.reporting.files import write_whole
from maps_rag.optimize.reporting.markdown import to_markdown


@dataclass(frozen=True, slots=True)
class DriftReport:
    """The drift of every method on every set.

    :param plots: the files that were drawn.
    """

    cells: tuple[CellDrift, ...]
    plots: tuple[Path, ...]

    def markdown(self) -> str:
        """Return the tables as Markdown."""
        return to_markdown(Document("Drift of the sub-queries", (drift_section(self.cells),)))

    def as_dict(self) -> dict[str, Any]:
        """Return every number as plain, JSON-able data."""
        return {"cells": [cell.as_dict() for cell in self.cells]}


def drift(
    dirs: Sequence[str | Path],
    *,
    encoder: QueryEncoder | str | None = None,
    index: str | Path | None = None,
    steps: int = STEPS,
    min_rounds: int = MIN_ROUNDS,
    mode: Mode = "step",
    seed: int = 0,
    markdown: str | Path | None = None,
    numbers: str | Path | None = None,
    plots: str | Path | None = None,
    form: str = "svg",
) -> DriftReport:
    """Measure and report the drift of run directories.

    :param dirs: and the next ones: see :func:`~maps_rag.optimize.reporting.drift_cells.measure_drift`.
    :param markdown: a file to write the tables to.
    :param numbers: a file to write every number to, as JSON.
    :param plots: a folder to draw the figures into; see
        :func:`~maps_rag.optimize.reporting.drift_plots.save_plots`.
    :raises UserError: as they do, and when a file cannot be written.
    """
    cells = measure_drift(dirs, encoder=encoder, index=index, steps=steps, min_rounds=min_rounds, mode=mode, seed=seed)
    drawn = () if plots is None else tuple(save_plots(cells, plots, form=form))
    made = DriftReport(tuple(cells), drawn)
    if markdown is not None:
        write_whole(Path(markdown), made.markdown())
    if numbers is not None:
        write_whole(Path(numbers), json.dumps(made.as_dict(), indent=1) + "\n")
    return made
