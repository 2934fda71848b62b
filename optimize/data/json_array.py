"""The objects of one large JSON array, one at a time: official files are arrays of hundreds of megabytes."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from maps_rag.programs.errors import UserError

CHUNK = 1 << 20
# An object that is cut off fails to parse at most this many characters before the cut, but for strings.
_TAIL = 16
_SPACE = re.compile(r"[ \t\n\r]*")


def array_rows(path: Path, file: IO[bytes]) -> Iterator[tuple[str, Any]]:
    """Yield place and value of each element; memory holds one chunk, or the largest element.

    :raises UserError: the file is not UTF-8 or no JSON array; the message names the row and the line.
    """
    text = _Text(path, file)
    text.expect("[", "")
    number = 0
    while text.peek() != "]" or number:
        number += 1
        where = f"{path}, row {number} (line {text.line})"
        yield where, text.value(where)
        if text.expect(",]", f"after row {number}") == "]":
            break
    else:
        text.expect("]", "")
    if text.peek():
        raise UserError(f"{path}, line {text.line}: the JSON array has ended, but more follows")


class _Text:
    """A window on a text file: what has been parsed is dropped, more is read when it is needed."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.line = 1
        self._path = path
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self._window = ""
        self._at = 0
        self._ended = False

    def peek(self) -> str:
        """Skip spaces; return the next character without moving past it, "" at the end."""
        while True:
            match = _SPACE.match(self._window, self._at)
            self._move(match.end() if match else self._at)
            if self._at < len(self._window):
                return self._window[self._at]
            if not self._more():
                return ""

    def expect(self, marks: str, when: str) -> str:
        """Move past the next character, which must be one of ``marks``, and return it."""
        found = self.peek()
        if not found or found not in marks:
            wanted = " or ".join(f"'{mark}'" for mark in marks)
            got = f"'{found}'" if found else "the end of the file"
            place = f"{self._path}, line {self.line}{', ' * bool(when)}{when}"
            raise UserError(f"{place}: not a JSON array ({wanted} expected, not {got})")
        self._move(self._at + 1)
        return found

    def value(self, where: str) -> Any:
        """Parse the value that begins here and move past it."""
        decoder = json.JSONDecoder()
        while True:
            try:
                value, end = decoder.raw_decode(self._window, self._at)
            except json.JSONDecodeError as error:
                line = self._line_of(error.pos)
                cut = error.pos >= len(self._window) - _TAIL or error.msg.startswith("Unterminated string")
                if cut and self._more():
                    continue
                raise UserError(f"{where}: not a JSON object ({error.msg}, line {line})") from None
            except RecursionError:
                raise UserError(f"{where}: not a JSON object that can be read (too deep)") from None
            self._move(end)
            return value

    def _line_of(self, position: int) -> int:
        return self.line + self._window.count("\n", self._at, position)

    def _move(self, position: int) -> None:
        self.line = self._line_of(position)
        self._at = position

    def _more(self) -> bool:
        """Read on, at least as much as is held, so that a large element is not parsed again for every chunk."""
        if self._ended:
            return False
        held = self._window[self._at :]
        raw = self._file.read(max(CHUNK, len(held)))
        self._ended = not raw
        try:
            self._window = held + self._decoder.decode(raw, final=self._ended)
        except UnicodeDecodeError as error:
            before = held + error.object[: error.start].decode("utf-8", "replace")
            line = self.line + before.count("\n")
            raise UserError(
                f"{self._path}, line {line}: not UTF-8 ({error.reason}); convert the file to UTF-8"
            ) from None
        self._at = 0
        return not self._ended
