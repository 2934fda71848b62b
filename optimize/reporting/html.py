"""A document and a sample of questions as one self-contained page."""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from maps_rag.optimize.reporting.browser import Entry
from maps_rag.optimize.reporting.document import Document
from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Browser:
    """The part of the page that shows questions.

    :param about: how they were chosen.
    :param methods: what the filter by method offers.
    :param sets: what the filter by set offers.
    """

    about: str
    entries: Sequence[Entry]
    methods: Sequence[str]
    sets: Sequence[str]


def to_html(document: Document, browser: Browser) -> str:
    """Return a page that needs nothing outside itself, and whose text is readable without its script.

    Everything is escaped by the template; and the page forbids any script and style but its own two, by their hashes,
    and all requests.
    """
    style, script = _asset("page.css"), _asset("page.js")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, finalize=_printable, trim_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(_asset("page.html.jinja")).render(
        document=document,
        about=browser.about,
        entries=browser.entries,
        methods=browser.methods,
        sets=browser.sets,
        style=Markup(style),
        script=Markup(script),
        style_hash=_digest(style),
        script_hash=_digest(script),
    )


def _asset(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(sha256(text.encode()).digest()).decode()


def _printable(value: Any) -> Any:
    """Replace what must not stand in HTML, or would reorder it: control characters but line breaks, and surrogates."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return "".join(char if char in "\n\t" or unicodedata.category(char) not in ("Cc", "Cs") else "�" for char in value)
