"""The call that ends most methods: answer the question from passages."""

from __future__ import annotations

from collections.abc import Sequence

import dspy
from maps_rag.programs.passages import show_passage
from maps_rag.programs.steps import Ask
from maps_rag.programs.types import Passage

NO_ANSWER = {"answer": "", "reasoning": ""}


def answer_from_passages(reader: dspy.Module, question: str, passages: Sequence[Passage]) -> Ask:
    """Return the final call of a predictor of :class:`~maps_rag.signatures.AnswerFromPassages`."""
    return Ask(
        reader,
        fallback=NO_ANSWER,
        retries=1,
        final=True,
        passages=[show_passage(passage) for passage in passages],
        question=question,
    )
