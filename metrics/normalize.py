"""Text normalisation shared by the answer metrics.

The order is SQuAD's (delete punctuation, drop articles, collapse spaces) after a Unicode step of ours: NFKC, case
folding, and one form for all quotes and dashes. Punctuation is ASCII's, as in SQuAD, plus those quotes and dashes.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

ARTICLES = frozenset({"a", "an", "the"})

_SINGLE_QUOTES = "\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u00b4\u02b9\u02bb\u02bc\u02c8\uff07"
_DOUBLE_QUOTES = "\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u301d\u301e\u301f\uff02"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e3a\u2e3b\ufe31\ufe32\ufe58\ufe63\uff0d"
_MARKS = str.maketrans(
    dict.fromkeys(_SINGLE_QUOTES, "'") | dict.fromkeys(_DOUBLE_QUOTES, '"') | dict.fromkeys(_DASHES, "-")
)
_DELETE_PUNCTUATION = str.maketrans("", "", string.punctuation)
_SPACE_PUNCTUATION = str.maketrans(string.punctuation, " " * len(string.punctuation))

_THINK_TAG = re.compile(r"(</?think(?:ing)?>)", re.IGNORECASE)


def visible(text: str) -> str:
    """Return what a reader sees of a model's text: without its think blocks.

    A closing tag alone (the chat template opened the block) hides all before it; an opening tag alone (the output was
    cut off) hides all after it.
    """
    kept: list[str] = []
    hidden = False
    for part in _THINK_TAG.split(text):
        if not _THINK_TAG.fullmatch(part):
            kept += [] if hidden else [part]
        elif part.startswith("</"):
            if not hidden:
                kept.clear()
            hidden = False
        else:
            hidden = True
    return " ".join(kept).strip()


def canonical(text: str) -> str:
    """Return ``text`` in one Unicode form: NFKC, case folded, quotes and dashes unified, spaces collapsed.

    Punctuation and articles stay. This is the "un-stripped" form by which a gold that normalises to nothing is
    compared.
    """
    # The marks come first: NFKC would turn an acute accent used as an apostrophe into a space and a combining mark.
    folded = unicodedata.normalize("NFKC", text.translate(_MARKS)).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())


def tokens(text: str, *, strip_diacritics: bool = False, punctuation_to_space: bool = False) -> list[str]:
    """Return the normalised tokens of ``text``, in order; empty if it has none but articles and punctuation.

    :param strip_diacritics: Compare base letters only ("Beyoncé" as "Beyonce"). Off in the published definition.
    :param punctuation_to_space: Punctuation parts tokens ("Spider-Man" as two) instead of vanishing (as "spiderman").
        Off in the published definition.
    """
    text = canonical(text).translate(_SPACE_PUNCTUATION if punctuation_to_space else _DELETE_PUNCTUATION)
    kept = [token for token in text.split() if token not in ARTICLES]
    if strip_diacritics:
        # After the articles: a French "à" is no English "a".
        kept = [bare for token in kept if (bare := _without_marks(token))]
    return kept


def normalize(text: str, *, strip_diacritics: bool = False, punctuation_to_space: bool = False) -> str:
    """Return the normalised tokens of ``text`` joined by single spaces; the options are those of :func:`tokens`."""
    return " ".join(tokens(text, strip_diacritics=strip_diacritics, punctuation_to_space=punctuation_to_space))


def contains(haystack: Sequence[str], needle: Sequence[str]) -> bool:
    """Say whether ``needle``, which must not be empty, stands in ``haystack`` as one contiguous run of tokens."""
    return find(haystack, needle) >= 0


def find(haystack: Sequence[str], needle: Sequence[str], start: int = 0) -> int:
    """Return where ``needle`` stands in ``haystack`` as one run, first from ``start`` on; -1 if nowhere or if empty."""
    wanted, size = list(needle), len(needle)
    if not size:
        return -1
    places = range(start, len(haystack) - size + 1)
    return next((place for place in places if list(haystack[place : place + size]) == wanted), -1)


def _without_marks(token: str) -> str:
    bare = "".join(char for char in unicodedata.normalize("NFD", token) if not unicodedata.combining(char))
    return unicodedata.normalize("NFC", bare)
