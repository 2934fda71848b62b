"""A document as Markdown: tables that a terminal shows in columns and a paper takes as they are."""

from __future__ import annotations

import re
import unicodedata

from maps_rag.optimize.reporting.document import Document, Table

_MARKS = re.compile(r"([\\|`*<&]|~(?=~)|(?<![^\W_])_|_(?![^\W_])|\](?=[(\[:]))")
_OPENING = re.compile(r"(?=[#>+=~-]|\d+[.)])")


def to_markdown(document: Document) -> str:
    """Return a document as Markdown. What a file or a model wrote is text there, never markup."""
    blocks = [f"# {escaped(document.title)}"]
    for section in document.sections:
        if section.text or section.tables:
            blocks.append(f"## {escaped(section.title)}")
            blocks += [_paragraph(text) for text in section.text]
            blocks += [_table(table) for table in section.tables]
    return "\n\n".join(blocks) + "\n"


def escaped(text: str) -> str:
    """Return text on one line, in which Markdown and HTML see no markup and a terminal no control characters."""
    return _MARKS.sub(r"\\\1", one_line(text))


def _paragraph(text: str) -> str:
    """Return text as a paragraph: it must not begin as a heading, a quotation or a list does."""
    shown = escaped(text)
    return f"\\{shown}" if _OPENING.match(shown) else shown


def one_line(text: str) -> str:
    """Return text without control characters, line breaks and lone surrogates."""
    return " ".join("".join(" " if unicodedata.category(char) in _HIDDEN else char for char in text).split())


# Control characters and lone surrogates, and the format characters that reorder text.
_HIDDEN = ("Cc", "Cs", "Cf", "Zl", "Zp")


def _table(table: Table) -> str:
    lines = [tuple(escaped(cell) for cell in line) for line in (table.header, *table.rows)]
    widths = [max(3, *(_width(line[place]) for line in lines)) for place in range(len(table.header))]
    rule = [("-" * width if place < table.left else "-" * (width - 1) + ":") for place, width in enumerate(widths)]
    head, *rows = [_row(line, widths, table.left) for line in lines]
    shown = [head, _row(rule, widths, table.left), *rows]
    return "\n\n".join([f"**{escaped(table.caption)}**", "\n".join(shown), *map(_paragraph, table.notes)])


def _row(cells: tuple[str, ...] | list[str], widths: list[int], left: int) -> str:
    padded = [
        cell + " " * (width - _width(cell)) if place < left else " " * (width - _width(cell)) + cell
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return f"| {' | '.join(padded)} |"


def _width(text: str) -> int:
    """Return the columns that a terminal needs: wide characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )
