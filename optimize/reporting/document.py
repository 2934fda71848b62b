"""What a report consists of, before it is Markdown or HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

NONE = "-"
"""A cell that has no value: not measured, not run, or not defined for this set."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text under a header.

    :param caption: what stands in it, with metric, unit and n.
    :param header: the names of the columns.
    :param rows: as many cells each as the header has.
    :param notes: what the reader must know, under the table.
    :param left: how many leading columns hold text; the rest hold numbers.
    """

    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: int = 1


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing as SVG and what it shows. Markdown leaves it out."""

    caption: str
    svg: Markup


@dataclass(frozen=True, slots=True)
class Section:
    """One heading and what stands under it: paragraphs, tables, figures."""

    title: str
    text: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """A title and its sections, in order."""

    title: str
    sections: tuple[Section, ...]


def percent(share: float | None) -> str:
    """Return a share in [0, 1] as per cent with one decimal: "48.0"."""
    return NONE if share is None or share != share else f"{100 * share:.1f}"


def points(difference: float) -> str:
    """Return a difference of shares as signed percentage points: "+4.0"."""
    return f"{100 * difference:+.1f}"


def number(value: float | None) -> str:
    """Return a mean: three digits that count, thousands with commas ("2.71", "48.3", "1,234")."""
    if value is None or value != value:
        return NONE
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 or not size else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def probability(value: float) -> str:
    """Return a p-value with three decimals, never as 0: "0.012", "<0.001"."""
    return "<0.001" if value < 0.0005 else f"{value:.3f}"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence: "a, b and c"."""
    return " and ".join([*filter(None, [", ".join(names[:-1])]), *names[-1:]])
