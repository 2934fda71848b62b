"""The thinking that some models write before their reply."""

from __future__ import annotations

import re

PAIR = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
OPEN = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)


def strip_think(text: str) -> str:
    """Return a reply without its thinking.

    - Complete ``<think>...</think>`` pairs go.
    - A closing tag without an opening one (some chat templates write the opening tag themselves) ends the thinking.
    - An opening tag that is never closed means that the reply broke off while thinking: what follows it goes.
    - Inside a reply that begins as JSON nothing is touched: there the tags are text.
    """
    text = text.strip()
    if text.startswith(("{", "[")):
        return text
    text = PAIR.sub("", text)
    if last := list(CLOSE.finditer(text)):
        text = text[last[-1].end() :]
    if opened := OPEN.search(text):
        text = text[: opened.start()]
    return text.strip()
