"""The words that an encoder expects in front of queries and passages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import NamedTuple


class Prefixes(NamedTuple):
    """What is put in front of a query and in front of a passage before encoding, the trailing space included."""

    query: str = ""
    passage: str = ""


# From the model cards: https://huggingface.co/intfloat/e5-base-v2 and https://huggingface.co/BAAI/bge-base-en-v1.5.
# The "-instruct" E5 models take an instruction instead and are left to their own prompts.
_KNOWN = (
    (re.compile(r"(multilingual-)?e5-(small|base|large)(-v2|-unsupervised)?"), Prefixes("query: ", "passage: ")),
    (
        re.compile(r"bge-(small|base|large)-en(-v1\.5)?"),
        Prefixes("Represent this sentence for searching relevant passages: ", ""),
    ),
)


def known_prefixes(name: str) -> Prefixes | None:
    """Return the prefixes of a hub id or directory whose last part names a known family, else None."""
    last = PurePath(name).name.lower()
    return next((prefixes for pattern, prefixes in _KNOWN if pattern.fullmatch(last)), None)


def prefixes_from_prompts(prompts: Mapping[str, str | None]) -> Prefixes:
    """Return the prefixes in a sentence-transformers model's own ``prompts``; the ones it lacks are empty."""
    passage = prompts.get("passage") or prompts.get("document") or ""
    return Prefixes(prompts.get("query") or "", passage)
