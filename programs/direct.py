"""Answering without retrieval."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram
from maps_rag.programs.reader import NO_ANSWER
from maps_rag.programs.steps import Ask, Outcome
from maps_rag.signatures.direct import DIRECT_DEMOS, AnswerFromMemory

PRESETS: dict[str, Mapping[str, Any]] = {"paper": {}, "original": {}}


class Direct(SearchProgram):
    """No retrieval: one LM call that reasons step by step and answers (Wei et al. 2022, arXiv 2201.11903, zero-shot).

    The baseline that says what the model knows by itself. It has no knobs of its own, and its two presets are the same.

    :param retriever: taken and never asked, so that every method is constructed alike.
    :param options: see :class:`~maps_rag.programs.base.Limits`.
    """

    def __init__(self, retriever: Any = None, **options: Any) -> None:
        super().__init__(retriever, **options)
        self.answer = dspy.Predict(AnswerFromMemory)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return DIRECT_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        reply = yield Ask(self.answer, fallback=NO_ANSWER, retries=1, final=True, question=question)
        return Outcome(reply.answer.strip(), "answered", extra={"reasoning": reply.reasoning})
