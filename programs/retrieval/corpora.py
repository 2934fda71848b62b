"""Passages out of the corpus files that the field uses, one at a time."""

from __future__ import annotations

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from maps_rag.programs.errors import UserError

_SHAPES = "{id, title, text} or {id, contents}"
_ALLOWED = f"a .jsonl of {_SHAPES}, DPR's .tsv, either with .gz, or a `datasets` id or saved directory"
_SUFFIXES = (".jsonl", ".json", ".ndjson", ".tsv", ".txt", ".csv", ".gz")
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?(:[\w.-]+)?")


class Document(NamedTuple):
    """One passage of a corpus. ``contents`` is what an encoder reads: the title, a line break, the text."""

    id: str
    title: str
    text: str

    @property
    def contents(self) -> str:
        return f"{self.title}\n{self.text}" if self.title else self.text


def read_corpus(source: str | PathLike[str]) -> Iterator[Document]:
    """Yield the passages of a corpus in its order, without holding it in memory.

    Read are JSON lines of {id, title, text} or of {id, contents} (wiki-18: the quoted title, a line break, the text),
    DPR's tab-separated ``psgs_w100.tsv`` (id, text, title), each of them also gzipped, a directory saved by `datasets`,
    and a hub id of one, as ``owner/name`` or ``owner/name:split`` (default split: train).

    :raises UserError: there is no such corpus, or a row is broken, lacks a field or is not UTF-8; the message names the
            file and the line.
    """
    path = Path(source)
    if path.is_dir():
        return _read_dataset(str(path), _load_saved)
    if path.is_file():
        suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
        return _read_tsv(path) if suffixes[-1:] == [".tsv"] else _read_jsonl(path)
    name = str(source)
    if path.is_absolute() or path.suffix.lower() in _SUFFIXES or not _HUB_ID.fullmatch(name):
        raise UserError(f"there is no corpus {name}; give {_ALLOWED}")
    return _read_dataset(name, _load_hub)


def document(row: object, where: str) -> Document:
    """Return the passage in one row of a corpus; ``where`` begins the message of an error."""
    if not isinstance(row, Mapping):
        raise UserError(f"{where}: a row must be an object {_SHAPES}, not {type(row).__name__}")
    if "contents" in row and "text" not in row:
        title, text = split_contents(_text(row, "contents", where))
        return Document(_id(row, where), title, text)
    return Document(_id(row, where), _text(row, "title", where), _text(row, "text", where))


def split_contents(contents: str) -> tuple[str, str]:
    """Return title and text of a wiki-18 row: the title in quotes (inner ones doubled), a line break, the text."""
    first, line_break, rest = contents.partition("\n")
    if not line_break:
        return "", contents
    if len(first) >= 2 and first[0] == first[-1] == '"':
        first = first[1:-1].replace('""', '"')
    return first, rest


def _id(row: Mapping[str, Any], where: str) -> str:
    value = row.get("id")
    if value is None:
        raise UserError(f"{where}: the field 'id' is missing; a row has {_SHAPES}")
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise UserError(f"{where}: the field 'id' must be a string or a whole number, not {repr(value)[:80]}")
    try:
        name = str(value)
    except ValueError:
        raise UserError(f"{where}: the field 'id' has too many digits; give it as a string") from None
    return _utf8(name, "id", where)


def _text(row: Mapping[str, Any], field: str, where: str) -> str:
    value = row.get(field)
    if value is None:
        raise UserError(f"{where}: the field {field!r} is missing; a row has {_SHAPES}")
    if not isinstance(value, str):
        raise UserError(f"{where}: the field {field!r} must be a string, not {type(value).__name__}")
    return _utf8(value, field, where)


def _utf8(value: str, field: str, where: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        code = f"\\u{ord(value[error.start]):04x}"
        raise UserError(
            f"{where}: the field {field!r} has half of a surrogate pair ({code} at character {error.start + 1}), "
            "which is no text; remove it"
        ) from None
    return value


def _lines(path: Path) -> Iterator[str]:
    number = 0
    opener: Callable[..., Any] = gzip.open if path.suffix.lower() == ".gz" else open
    try:
        with opener(path, "rb") as file:
            for raw in file:
                number += 1
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}, line {number}: not UTF-8 ({error.reason}); convert the file to UTF-8") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}, after line {number}: the gzip file is broken ({error}); fetch it again") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None


def _read_jsonl(path: Path) -> Iterator[Document]:
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError):
                reason = f"{error.msg}, column {error.colno}"
            else:
                reason = "too deep" if isinstance(error, RecursionError) else "a number has too many digits"
            raise UserError(f"{where}: not a JSON object ({reason})") from None
        yield document(row, where)


def _read_tsv(path: Path) -> Iterator[Document]:
    lines = _lines(path)
    rows = csv.reader(lines, delimiter="\t")
    try:
        header = next(rows, None)
        if header is None:
            return
        if not {"id", "text", "title"} <= set(header):
            raise UserError(
                f"{path}, line 1: the header must name id, text and title, but has {', '.join(header)[:200]}"
            )
        for fields in rows:
            where = f"{path}, line {rows.line_num}"
            if len(fields) != len(header):
                raise UserError(f"{where}: {len(fields)} fields, but the header has {len(header)}")
            yield document(dict(zip(header, fields, strict=True)), where)
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num}: not tab-separated text ({error})") from None


def _load_saved(name: str) -> Iterable[Any]:
    import datasets

    loaded = datasets.load_from_disk(name)
    return _one_split(loaded, name)


def _load_hub(name: str) -> Iterable[Any]:
    import datasets

    hub_id, _, split = name.partition(":")
    loaded = datasets.load_dataset(hub_id, split=split or "train", streaming=True)
    return _one_split(loaded, name)


def _one_split(loaded: Any, name: str) -> Iterable[Any]:
    if isinstance(loaded, Mapping):
        if len(loaded) != 1:
            raise UserError(
                f"the data set {name} has the splits {', '.join(loaded)}; save the one to be read by itself"
            )
        (loaded,) = loaded.values()
    rows: Iterable[Any] = loaded
    return rows


def _read_dataset(name: str, load: Callable[[str], Iterable[Any]]) -> Iterator[Document]:
    number = 0
    try:
        for number, row in enumerate(load(name), 1):
            yield document(row, f"{name}, row {number}")
    except UserError:
        raise
    except Exception as error:  # the libraries below raise anything from OSError to their own families
        first = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        what = f"read after row {number}: {first}" if number else f"loaded: {first}; give {_ALLOWED}"
        raise UserError(f"the corpus {name} cannot be {what}") from error


def check_documents(documents: Iterable[object]) -> Iterator[Document]:
    """Yield passages given as objects with ``id``, ``title`` and ``text``, such as `Document`, as documents.

    :raises UserError: what is given is no list of them; the message names the first that is none.
    """
    try:
        items = iter(documents)
    except TypeError:
        raise UserError(
            f"a corpus is a path, a name or a list of Document(id, title, text), not {type(documents).__name__}"
        ) from None
    for number, item in enumerate(items, 1):
        where = f"document {number} of the list"
        try:
            row = {name: getattr(item, name) for name in Document._fields}
        except AttributeError:
            raise UserError(f"{where} must be a Document(id, title, text), not {type(item).__name__}") from None
        yield document(row, where)
