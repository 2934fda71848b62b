"""A small data set of our own: passages and multi-hop questions about them.

266 passages of 40 to 110 words on people, places, works, companies and science, and 73 questions with answers, other
spellings of the answers and the ids of the passages that are needed. All of it was written for this project and is
under the MIT licence like the rest. It serves the demo and the tests: small enough to index in a minute, yet one search
for the question itself misses a needed passage for about a third of the questions.

A question is ``single`` (one passage), ``bridge`` (each passage but the last leads to the next; the last holds the
answer) or ``comparison``; ``hops`` is the number of passages it needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import dspy
from maps_rag.programs.types import Passage

__all__ = ["load_passages", "load_questions", "passages_path", "questions_path"]


def passages_path() -> Path:
    """Give the path of the corpus, one JSON object a line with ``id``, ``title`` and ``text``."""
    return Path(str(files(__name__) / "passages.jsonl"))


def questions_path() -> Path:
    """Give the path of the questions, one JSON object a line; ``load_questions`` names the fields."""
    return Path(str(files(__name__) / "questions.jsonl"))


def load_passages() -> list[Passage]:
    """Read all passages, in the order of the file."""
    return [Passage(**row) for row in _rows(passages_path())]


def load_questions() -> list[dspy.Example]:
    """Read all questions as examples whose only input is ``question``.

    Each has ``id``, ``question``, ``answers`` (the first is the preferred spelling), ``supporting`` (passage ids in
    the order of the hops), ``type`` (``single``, ``bridge`` or ``comparison``) and ``hops``.
    """
    return [dspy.Example(**row).with_inputs("question") for row in _rows(questions_path())]


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
