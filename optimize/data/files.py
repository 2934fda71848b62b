"""Rows of a file one at a time, each with the place where it stands: JSON lines, a JSON array, CSV, TSV, Parquet."""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from maps_rag.optimize.data.json_array import array_rows
from maps_rag.programs.errors import UserError

_BOM = b"\xef\xbb\xbf"
_DELIMITERS = {".tsv": "\t", ".csv": ","}

Located = tuple[str, Any]


def read_rows(path: Path) -> Iterator[Located]:
    """Yield place and value of each row of a file, without holding the file in memory.

    The suffix tells .csv, .tsv and .parquet; everything else is JSON, a list of objects or an object a line. All but
    Parquet may be gzipped.

    :raises UserError: the file cannot be read, or what stands at a place is not of the format.
    """
    suffixes = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    suffix = suffixes[-1] if suffixes else ""
    with _reading(path):
        if suffix == ".parquet":
            yield from _parquet(path)
        elif suffix in _DELIMITERS:
            with _opened(path) as file:
                yield from _table(path, file, _DELIMITERS[suffix])
        else:
            with _opened(path) as file:
                start = file.read(4096).removeprefix(_BOM).lstrip()
                file.seek(0)
                yield from array_rows(path, file) if start.startswith(b"[") else _json_lines(path, file)


def _opened(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{path}: the gzip file is broken ({error}); fetch it again") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}") from None


def _lines(path: Path, file: IO[bytes]) -> Iterator[str]:
    for number, raw in enumerate(file, 1):
        try:
            yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            reason = f"not UTF-8 ({error.reason}); convert the file to UTF-8"
            raise UserError(f"{path}, line {number}: {reason}") from None


def _json_lines(path: Path, file: IO[bytes]) -> Iterator[Located]:
    for number, line in enumerate(_lines(path, file), 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise UserError(f"{where}: not a JSON object ({error.msg}, column {error.colno})") from None
        except RecursionError:
            raise UserError(f"{where}: not a JSON object that can be read (too deep)") from None
        yield where, row


def _table(path: Path, file: IO[bytes], delimiter: str) -> Iterator[Located]:
    rows = csv.reader(_lines(path, file), delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        start = rows.line_num + 1
        for cells in rows:
            where, start = f"{path}, line {start}", rows.line_num + 1
            if not cells:
                continue
            if len(cells) != len(header):
                raise UserError(f"{where}: {len(cells)} fields, but the header has {len(header)}")
            yield where, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise UserError(f"{path}, line {rows.line_num}: not the table that its suffix says ({error})") from None


def _parquet(path: Path) -> Iterator[Located]:
    import pyarrow
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=256):
                for row in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", row
    except pyarrow.ArrowException as error:
        raise UserError(f"{path}, after row {number}: not a Parquet file that can be read ({error})") from None
