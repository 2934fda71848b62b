"""What models write, made usable: sub-queries, lists of texts, ways of saying nothing."""

from __future__ import annotations

from collections.abc import Sequence


def plain_query(text: str) -> str:
    """Cut a sub-query at the first bracket it closes but never opened: ``born?']}`` becomes ``born?``.

    Small models close the list that they are writing inside its last item.
    """
    opened = 0
    for position, character in enumerate(text):
        opened += (character in "[{") - (character in "]}")
        if opened < 0:
            return text[:position].rstrip(" '\"")
    return text.strip()


def distinct(texts: Sequence[str], limit: int) -> list[str]:
    """Strip, drop empty and repeated texts (case ignored), and keep the first ``limit``."""
    kept: dict[str, str] = {}
    for text in texts:
        if stripped := str(text).strip():
            kept.setdefault(stripped.casefold(), stripped)
    return list(kept.values())[:limit]


def says_something(text: str) -> bool:
    """Return whether a written piece of knowledge is more than a way to say "nothing"."""
    return text.strip().strip(".()").casefold() not in {"", "none", "nothing", "n/a", "null", "unknown"}
