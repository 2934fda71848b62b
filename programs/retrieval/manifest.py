"""What an index says about itself: ``manifest.json``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import MappingProxyType
from typing import Any

from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval.prefixes import Prefixes

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
INDEX_FILE = "index.faiss"
PASSAGES = "passages"
_LIBRARIES = ("maps-rag", "faiss-cpu", "sentence-transformers", "transformers", "torch", "datasets")

_NO_TEXT = {"format_version": int, "count": int, "dimension": int, "files": dict, "libraries": dict, "prefixes": dict}


@dataclass(frozen=True, slots=True)
class FileRecord:
    """Size in bytes and sha256 of one file of an index."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of an index.

    ``count`` passages of ``dimension`` numbers each, compared by ``metric``; ``corpus`` is a digest of the rows that
    went in, ``files`` maps each file's relative path to its size and sha256.
    """

    encoder: str
    dimension: int
    prefixes: Prefixes
    count: int
    factory: str
    corpus: str
    files: dict[str, FileRecord]
    libraries: dict[str, str]
    metric: str = "inner_product"
    text: str = "title, line break, text"
    format_version: int = FORMAT_VERSION

    @property
    def fingerprint(self) -> str:
        """A digest of everything the manifest says: equal exactly for equal indexes."""
        return hashlib.sha256(self._json().encode()).hexdigest()

    def write(self, folder: Path) -> None:
        """Write ``manifest.json`` into a folder."""
        (folder / MANIFEST).write_text(self._json())

    def _json(self) -> str:
        data = asdict(self) | {"prefixes": self.prefixes._asdict()}
        return json.dumps(data, indent=1, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the manifest of an index directory.

        Raises:
            UserError: there is none, it is not one, or it is of another format version.
        """
        path = folder / MANIFEST
        try:
            data = json.loads(path.read_text())
        except (FileNotFoundError, NotADirectoryError):
            raise UserError(
                f"{folder} is not an index: it has no {MANIFEST}; "
                f"make one with: maps-rag index build CORPUS --out {folder}"
            ) from None
        except (ValueError, OSError, RecursionError) as error:
            raise UserError(f"{path} cannot be read ({error}); build the index again") from None
        found = data.get("format_version") if isinstance(data, dict) else None
        if found != FORMAT_VERSION:
            raise UserError(
                f"{path} is of format version {found!r}, this release reads {FORMAT_VERSION}; build the index again"
            )
        try:
            return cls._from_dict(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise UserError(f"{path} is damaged ({error!r}); build the index again") from None

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Manifest:
        _check_kinds(data, _NO_TEXT)
        _check_kinds(data["libraries"])
        _check_kinds(data["prefixes"])
        for record in data["files"].values():
            _check_kinds(record, {"size": int})
        files = {name: FileRecord(**record) for name, record in data["files"].items()}
        return cls(**(data | {"files": files, "prefixes": Prefixes(**data["prefixes"])}))


def _check_kinds(values: dict[str, Any], kinds: Mapping[str, type] = MappingProxyType({})) -> None:
    """Raise a TypeError unless each value is of its kind, text where none is named."""
    for name, value in values.items():
        kind = kinds.get(name, str)
        if type(value) is not kind:
            raise TypeError(f"{name} must be {kind.__name__}, not {type(value).__name__}")


def library_versions() -> dict[str, str]:
    """Return the installed versions of the libraries that shape an index."""
    found = {}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def file_records(folder: Path) -> dict[str, FileRecord]:
    """Return size and sha256 of every file under a folder, the manifest itself aside."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MANIFEST)
    return {path.relative_to(folder).as_posix(): FileRecord(path.stat().st_size, sha256_of(path)) for path in paths}


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
