"""Measures the drift of every method in run directories: the diagnostics of `maps_rag.metrics.drift`, cell by cell."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from maps_rag.metrics.drift import (
    CachedEncoder,
    DriftFlags,
    Momentum,
    Monitors,
    Offset,
    QueryEncoder,
    Similarity,
    Stopping,
    TooFewQuestionsError,
    cumulative_offset,
    drift_flags,
    fit_momentum,
    monitors,
    similarity_by_round,
    stopping,
)
from maps_rag.metrics.drift.momentum import Mode
from maps_rag.metrics.drift.scores import MIN_ROUNDS, STEPS
from maps_rag.metrics.drift.walks import Vectors
from maps_rag.optimize.reporting.results import Results, load_results
from maps_rag.optimize.reporting.run_dir import TRAJECTORIES, Key, RunDir, key_of, read_lines
from maps_rag.programs.errors import UserError

logger = logging.getLogger(__name__)

VECTORS: tuple[Vectors, ...] = ("mean", "each")
REFERENCE = "search_o1"
"""Whose beta all cumulative offsets of a set are drawn with, where it was run: the paper fits on Search-o1."""


@dataclass(frozen=True, slots=True)
class CellDrift:
    """What was measured for one method on one set.

    :param momentum: by what stands for a round: the mean of its sub-queries, or each; empty where too few questions are
        long enough, and ``too_few`` says so.
    :param offset: with the beta of ``offset_by``, the same for all methods of the set.
    """

    method: str
    dataset: str
    stopping: Stopping
    momentum: dict[Vectors, Momentum]
    too_few: str
    similarity: Similarity
    monitors: Monitors
    flags: DriftFlags
    offset: Offset | None = None
    offset_by: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain, JSON-able data."""
        return asdict(self)


def measure_drift(
    dirs: Sequence[str | Path],
    *,
    encoder: QueryEncoder | str | None = None,
    index: str | Path | None = None,
    steps: int = STEPS,
    min_rounds: int = MIN_ROUNDS,
    mode: Mode = "step",
    seed: int = 0,
) -> list[CellDrift]:
    """Measure the drift of every method on every set of run directories.

    Reads all trajectories into memory, and encodes each question, sub-query and gold passage once.

    :param dirs: directories that the runner has written.
    :param encoder: the retriever's encoder, or its name; None takes the one that the manifests name.
    :param index: the index that was searched; it gives the text of gold passages that are named by id. Without it, such
        questions count as without gold in the similarities.
    :param steps: the last S_t; see :func:`~maps_rag.metrics.drift.scores.fit_momentum`, as for the next ones.
    :raises UserError: when a directory is none that the runner wrote, no encoder is known or an option is out of
        range.
    """
    results = load_results(dirs)
    records = _trajectories(results)
    if not records:
        raise UserError(
            f"No trajectory is kept in {', '.join(str(run.path) for run in results.runs)}: run maps-rag eval again."
        )
    shared = CachedEncoder(_encoder(encoder, results.runs))
    texts = {} if index is None else _texts(Path(index), records)
    cells = [
        _measure(*key, records[key], shared, texts, steps=steps, min_rounds=min_rounds, mode=mode, seed=seed)
        for key in ((method, name) for name in results.sets for method in results.methods)
        if key in records
    ]
    return _with_offsets(cells, records, shared, min_rounds)


def _measure(
    method: str,
    dataset: str,
    lines: Sequence[Mapping[str, Any]],
    encoder: CachedEncoder,
    texts: Mapping[str, Mapping[str, Any]],
    *,
    seed: int,
    **options: Any,
) -> CellDrift:
    logger.info("Measuring %s on %s: %d trajectories", method, dataset, len(lines))
    trajectories = [line["trajectory"] for line in lines]
    supporting = [line.get("supporting") or [] for line in lines]
    stopped = stopping(trajectories)
    assert stopped is not None
    momentum: dict[Vectors, Momentum] = {}
    too_few = ""
    for vectors in VECTORS:
        try:
            momentum[vectors] = fit_momentum(trajectories, encoder, vectors=vectors, seed=seed, **options)
        except TooFewQuestionsError as error:
            too_few = str(error)
    return CellDrift(
        method,
        dataset,
        stopped,
        momentum,
        too_few,
        similarity_by_round(trajectories, encoder, supporting, texts=texts, seed=seed),
        monitors(trajectories, encoder, supporting),
        drift_flags(trajectories, encoder, supporting),
    )


def _with_offsets(
    cells: Sequence[CellDrift],
    records: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]],
    encoder: CachedEncoder,
    min_rounds: int,
) -> list[CellDrift]:
    made = []
    for cell in cells:
        fitted = [other for other in cells if other.dataset == cell.dataset and "mean" in other.momentum]
        by = next((other for other in fitted if other.method.split(" ")[0] == REFERENCE), next(iter(fitted), None))
        if by is not None:
            trajectories = [line["trajectory"] for line in records[cell.method, cell.dataset]]
            beta = by.momentum["mean"].all.beta
            offset = cumulative_offset(trajectories, encoder, beta, min_rounds=min_rounds)
            cell = replace(cell, offset=offset, offset_by=by.method)
        made.append(cell)
    return made


def _trajectories(results: Results) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the lines by (label, set); of several about the same question and run, the last."""
    last: dict[Key, dict[str, Any]] = {}
    for number, run in enumerate(results.runs):
        path = run.path / TRAJECTORIES
        for line, content in read_lines(path) if path.is_file() else ():
            method, *rest = key_of(content, f"{path}:{line}")
            label = results.labels.get((number, method), method)
            last[(label, *rest)] = content  # type: ignore[index]
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for key, content in last.items():
        found.setdefault(key[:2], []).append(content)
    return found


def _encoder(given: QueryEncoder | str | None, runs: Sequence[RunDir]) -> QueryEncoder:
    if given is not None and not isinstance(given, str):
        return given
    if given is None:
        named = {str((run.manifest.get("index") or {}).get("encoder") or "") for run in runs}
        if len(named) != 1 or "" in named:
            found = ", ".join(sorted(filter(None, named))) or "none"
            raise UserError(f"The runs name no encoder that they share ({found}): say which one measures the drift.")
        (given,) = named
    from maps_rag.programs.retrieval import load_encoder

    return load_encoder(given)


def _texts(index: Path, records: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]) -> dict[str, dict[str, str]]:
    """Return title and text of the gold passages that are named by id."""
    from maps_rag.programs.retrieval.index import Index
    from maps_rag.programs.retrieval.manifest import PASSAGES
    from maps_rag.programs.retrieval.passages import stream_passages

    named = {
        str(item)
        for lines in records.values()
        for line in lines
        for item in line.get("supporting") or ()
        if not isinstance(item, Mapping)
    }
    folder = Index(index).folder / PASSAGES
    return {item.id: {"title": item.title, "text": item.text} for item in stream_passages(folder) if item.id in named}
