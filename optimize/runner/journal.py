"""The files of a run directory: written by one process, a line at a time, so that a kill loses nothing finished."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from filelock import FileLock, Timeout
from maps_rag.optimize.runner.manifest import MANIFEST, check_same, read_manifest, write_manifest
from maps_rag.programs.errors import UserError

JOURNAL = "journal.jsonl"
TRAJECTORIES = "trajectories.jsonl"
_LOCK = ".lock"
_TAIL = 1 << 16

Key = tuple[str, str, str, int]
"""(method, data set, question id, run): what one line is about."""


class Journal:
    """A run directory opened for writing; a context manager.

    A question's trajectory is written before its line in the journal: what the journal has is there in full. A line
    that a kill cut off is removed when the directory is opened again.

    :param folder: the directory; made where it is missing.
    :param manifest: what the run is.
    :raises UserError: when another process writes there, the directory holds something else, or its manifest differs.
    """

    def __init__(self, folder: Path, manifest: Mapping[str, Any]) -> None:
        self.folder = folder
        self._write_lock = threading.Lock()
        self._open = False
        check_folder(folder, manifest)  # before anything is put there; again when nobody else can
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise UserError(f"{folder} is a file: name a directory for the run.") from None
        self._owner = FileLock(folder / _LOCK)
        try:
            self._owner.acquire(timeout=0)
        except Timeout:
            raise UserError(
                f"Another process is writing to {folder}: wait for it, stop it, or name another directory."
            ) from None
        try:
            check_folder(folder, manifest)
            if not (folder / MANIFEST).exists():
                write_manifest(folder, manifest)
            for name in (JOURNAL, TRAJECTORIES):
                _drop_torn_line(folder / name)
            self._journal = (folder / JOURNAL).open("ab", buffering=0)
            self._trajectories = (folder / TRAJECTORIES).open("ab", buffering=0)
        except BaseException:
            self._owner.release()
            raise
        self._open = True

    def add(self, line: Mapping[str, Any], trajectory: Mapping[str, Any] | None = None) -> bool:
        """Write one line, after its trajectory; return False, and write nothing, once the journal is closed."""
        texts = [_encoded(item) for item in (trajectory, line) if item is not None]
        with self._write_lock:
            if not self._open:
                return False
            for text, file in zip(texts, (self._trajectories, self._journal)[-len(texts) :], strict=True):
                while text:  # a write to a full disk may be a partial one; the next raises
                    text = text[file.write(text) :]
        return True

    def close(self) -> None:
        """Close the files; lines that come later are dropped."""
        with self._write_lock:
            if self._open:
                self._open = False
                self._journal.close()
                self._trajectories.close()
                self._owner.release()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def check_folder(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Raise a UserError unless a run of this manifest may be written to a folder: a new one, or one of this very run.

    Nothing is changed.
    """
    if (folder / MANIFEST).exists():
        check_same(folder, read_manifest(folder), manifest)
    elif folder.is_dir() and (held := sorted(path.name for path in folder.iterdir() if path.name[0] != ".")):
        raise UserError(
            f"{folder} is no run directory (it has no {MANIFEST}) and is not empty (it holds {held[0]}): "
            "name a new directory."
        )


def read_journal(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a run directory's journal in order, none where there is no journal.

    What is no line of a journal, such as one cut off by a kill, is left out, and so are the details of cost and
    evidence, half of a line, which nobody needs to go on. Of several lines about one question the last counts.
    """
    try:
        file = (folder / JOURNAL).open("rb")
    except FileNotFoundError:
        return
    with file:
        for raw in file:
            try:
                # Within a text the quotes have a backslash before them: this is the field.
                head, details, _ = raw.partition(b',"cost":')
                line = json.loads(head + b"}" if details else raw) if raw.endswith(b"\n") else None
            except ValueError:
                continue
            if isinstance(line, dict) and line.keys() >= {"method", "dataset", "id", "run"}:
                yield line


def key_of(line: Mapping[str, Any]) -> Key:
    """Return what a line is about."""
    return line["method"], line["dataset"], line["id"], line["run"]


def _encoded(line: Mapping[str, Any]) -> bytes:
    text = json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_plain) + "\n"
    # A lone surrogate, which models do write, has no UTF-8; its backslash form is an escape of JSON.
    return text.encode("utf-8", errors="backslashreplace")


def _plain(value: Any) -> Any:
    # Retrievers of other people give numbers of NumPy.
    return value.item() if hasattr(value, "item") else str(value)


def _drop_torn_line(path: Path) -> None:
    """Cut a file after its last line break."""
    if not path.exists():
        return
    with path.open("r+b") as file:
        end = file.seek(0, 2)
        place = end
        while place:
            start = max(0, place - _TAIL)
            file.seek(start)
            found = file.read(place - start).rfind(b"\n")
            if found >= 0:
                place = start + found + 1
                break
            place = start
        if place < end:
            file.truncate(place)
