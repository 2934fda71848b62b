"""A run directory as the runner leaves it: a manifest and two files of JSON lines, read one line at a time."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maps_rag.programs.errors import UserError

MANIFEST = "manifest.json"
JOURNAL = "journal.jsonl"
TRAJECTORIES = "trajectories.jsonl"
FORMAT = 1

Key = tuple[str, str, str, int]
"""(method, set, question id, run): what one line is about."""


@dataclass(frozen=True, slots=True)
class RunDir:
    """One run directory, opened: its manifest is read, its files are not."""

    path: Path
    manifest: dict[str, Any]

    @property
    def journal_path(self) -> str:
        """The journal, as errors name it."""
        return str(self.path / JOURNAL)

    @property
    def model(self) -> str:
        """The language model's name."""
        return str((self.manifest.get("lm") or {}).get("model", "unknown model"))

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """What each method was: its program, settings, prompts."""
        return dict(self.manifest.get("methods") or {})

    @property
    def datasets(self) -> list[dict[str, Any]]:
        """What was asked: a record of each set."""
        given = self.manifest.get("dataset") or []
        return list(given) if isinstance(given, list) else [given]

    @property
    def surroundings(self) -> str:
        """Return what all methods of the run share: model and index."""
        return json.dumps([self.manifest.get("lm"), self.manifest.get("index")], sort_keys=True)

    def identity(self, method: str) -> str:
        """Return all that makes the results of a method its own but the questions: model, index, settings, prompts."""
        return json.dumps([self.surroundings, self.methods.get(method)], sort_keys=True)

    def journal(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the lines of the journal with their numbers, from 1; see :func:`read_lines`."""
        return read_lines(self.path / JOURNAL)


def open_run_dirs(dirs: Sequence[str | Path]) -> list[RunDir]:
    """Open run directories in the given order; one that is given twice counts once.

    :raises UserError: when none is given, one is no run directory or of another format, or their scores come from
        different versions of the metrics.
    """
    paths = list(dict.fromkeys(Path(path).resolve() for path in dirs))
    if not paths:
        raise UserError("No run directory was given: name those that maps-rag eval --out has written.")
    opened = [_open(path) for path in paths]
    versions = {str(run.manifest.get("metric_version")): run.path for run in opened}
    if len(versions) > 1:
        found = ", ".join(f"{version} ({path})" for version, path in versions.items())
        raise UserError(f"The runs were scored by different versions of the metrics, {found}: report them apart.")
    return opened


def _open(path: Path) -> RunDir:
    if not (path / MANIFEST).is_file():
        raise UserError(
            f"{path} is no run directory: it has no {MANIFEST}. Name one that maps-rag eval --out has written."
        )
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(
            f"{path / MANIFEST} is not JSON ({error}): run the evaluation again into a new directory."
        ) from None
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise UserError(f"{path / MANIFEST} has format {found!r}; this version reads format {FORMAT}.")
    if not (path / JOURNAL).is_file():
        raise UserError(f"{path} has no {JOURNAL}: nothing was run there yet. Run maps-rag eval --out {path} first.")
    return RunDir(path, manifest)


def read_lines(path: Path, skip: Callable[[bytes], bool] = lambda raw: False) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects of a file of lines with their line numbers, from 1.

    A line that is no JSON object was cut off by a kill, and is skipped: the runner has written it anew, or will.

    :param skip: says of a line, before it is parsed, that nobody wants it.
    """
    with path.open("rb") as file:
        for line, raw in enumerate(file, 1):
            try:
                content = None if skip(raw) else json.loads(raw)
            except (ValueError, RecursionError):
                continue
            if isinstance(content, dict):
                yield line, content


def key_of(content: dict[str, Any], where: str) -> Key:
    """Return what a line is about.

    :param where: the file and line, for the error.
    :raises UserError: when a field of the key is missing.
    """
    for name in ("method", "dataset", "id", "run"):
        if name not in content:
            raise UserError(f"{where}: a line needs the field {name!r}; it has {', '.join(content) or 'none'}.")
    return str(content["method"]), str(content["dataset"]), str(content["id"]), int(content["run"])
