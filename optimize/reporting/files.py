"""Writes what a report consists of."""

from __future__ import annotations

from pathlib import Path

from maps_rag.programs.errors import UserError


def write_whole(path: Path, text: str) -> None:
    """Write a file whole or not at all; what UTF-8 cannot hold is replaced.

    :raises UserError: when it cannot be written.
    """
    partial = path.with_name(path.name + ".partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8", errors="replace")
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}): name another file.") from None
