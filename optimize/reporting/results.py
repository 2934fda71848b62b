"""Reads the journals of run directories into cells: a method on a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from maps_rag.optimize.reporting.cells import Cell
from maps_rag.optimize.reporting.run_dir import Key, RunDir, key_of, open_run_dirs
from maps_rag.programs.errors import UserError

Visit = Callable[[Key, dict[str, Any]], None]
"""Called with every line that counts: its key under the label of its method, and the line."""


@dataclass(slots=True)
class Results:
    """All cells of a report.

    :param runs: the run directories.
    :param methods: the labels of the methods, in the order of the manifests: the name, and what tells two of one name
        apart where there are such.
    :param sets: the names of the sets, in the order of the manifests.
    :param cells: what was measured, by (label, set).
    :param labels: the label by (number of the run directory, method).
    """

    runs: list[RunDir]
    methods: list[str]
    sets: list[str]
    labels: dict[tuple[int, str], str]
    cells: dict[tuple[str, str], Cell] = field(default_factory=dict)

    def cell(self, method: str, dataset: str) -> Cell | None:
        """Return what was measured, or None where this method was not run on this set."""
        return self.cells.get((method, dataset))

    def complete(self) -> list[str]:
        """Return the methods that have every set: only their means over sets can be compared."""
        return [method for method in self.methods if all((method, name) in self.cells for name in self.sets)]

    def is_choice(self, dataset: str) -> bool:
        """Return whether a set is multiple choice: its texts must not be shown."""
        named = dataset.lower().startswith("gpqa")
        return named or any(cell.choices for (_, name), cell in self.cells.items() if name == dataset)


def load_results(dirs: Sequence[str | Path], visit: Visit | None = None) -> Results:
    """Read manifests and journals; of several lines about the same question, the last counts.

    Journals are read twice, so that memory grows with the numbers of the questions alone.

    :param visit: sees every line that counts, failed questions too.
    :raises UserError: as :func:`~maps_rag.optimize.reporting.run_dir.open_run_dirs`; when two directories hold the same
        question of the same method and run; when nothing was run; when a line lacks a field.
    """
    runs = open_run_dirs(dirs)
    results = Results(runs, [], [], _labels(runs))
    results.methods = list(dict.fromkeys(results.labels.values()))
    results.sets = list(
        dict.fromkeys(str(record["name"]) for run in runs for record in run.datasets if "name" in record)
    )
    last = _last_lines(results)
    for number, run in enumerate(runs):
        path = run.journal_path
        for line, content in run.journal():
            key = _labelled(results, number, key_of(content, f"{path}:{line}"))
            if last[key] != (number, line):
                continue
            cell = results.cells.setdefault(key[:2], Cell())
            try:
                cell.add(content)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise UserError(
                    f"{path}:{line} cannot be read ({type(error).__name__}: {error}): was it written by "
                    "another version? Run the evaluation again into a new directory."
                ) from None
            if visit is not None:
                visit(key, content)
    if not results.cells:
        raise UserError(f"No question has ended yet in {', '.join(str(run.path) for run in runs)}: run maps-rag eval.")
    run_sets = {name for _, name in results.cells}
    results.sets = [*(name for name in results.sets if name in run_sets), *sorted(run_sets - set(results.sets))]
    run_methods = {method for method, _ in results.cells}
    results.methods = [method for method in results.methods if method in run_methods]
    return results


def _last_lines(results: Results) -> dict[Key, tuple[int, int]]:
    """Return where the line that counts is, as (number of the directory, line)."""
    last: dict[Key, tuple[int, int]] = {}
    for number, run in enumerate(results.runs):
        path = run.journal_path
        for line, content in run.journal():
            where = f"{path}:{line}"
            key = _labelled(results, number, key_of(content, where))
            before = last.get(key)
            if before is not None and before[0] != number:
                other = results.runs[before[0]].path
                raise UserError(
                    f"{where}: {key[0]} on {key[1]}, question {key[2]}, run {key[3]}, is in {other} "
                    "too, with the same settings: give only one of the two."
                )
            last[key] = (number, line)
    return last


def _labelled(results: Results, number: int, key: Key) -> Key:
    label = results.labels.setdefault((number, key[0]), key[0])
    if label not in results.methods:
        results.methods.append(label)
    return (label, *key[1:])


def _labels(runs: Sequence[RunDir]) -> dict[tuple[int, str], str]:
    """Name the methods; those of one name but other settings, model or index are told apart."""
    found: dict[str, dict[str, list[int]]] = {}
    for number, run in enumerate(runs):
        for method in run.methods:
            found.setdefault(method, {}).setdefault(run.identity(method), []).append(number)
    labels = {}
    for method, identities in found.items():
        groups = list(identities.values())
        names = _tell_apart(method, [runs[group[0]] for group in groups])
        labels.update({(number, method): name for name, group in zip(names, groups, strict=True) for number in group})
    return labels


def _tell_apart(method: str, runs: Sequence[RunDir]) -> list[str]:
    if len(runs) == 1:
        return [method]
    candidates = ([run.model for run in runs], [run.path.name for run in runs], [str(run.path) for run in runs])
    chosen = next(names for names in candidates if len(set(names)) == len(names))
    return [f"{method} ({name})" for name in chosen]


def expected_questions(results: Results) -> Iterator[tuple[str, str, int, int]]:
    """Yield (label, set, rows found, rows expected) for every cell whose run is not at its end."""
    expected: dict[tuple[str, str], int] = {}
    for number, run in enumerate(results.runs):
        times = int(run.manifest.get("runs") or 1)
        for record in run.datasets:
            size = len(record.get("ids") or []) or int(record.get("n") or 0)
            for method in run.methods:
                cell = (results.labels[number, method], str(record.get("name")))
                expected[cell] = expected.get(cell, 0) + size * times
    for (label, name), size in expected.items():
        cell_found = results.cell(label, name)
        found = len(cell_found.ids) if cell_found else 0
        if found < size:
            yield label, name, found, size
