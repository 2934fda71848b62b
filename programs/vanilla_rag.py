"""Plain retrieve-then-answer."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count
from maps_rag.programs.reader import answer_from_passages
from maps_rag.programs.steps import EndRound, Outcome, Search
from maps_rag.signatures.maps_demos import VANILLA_DEMOS
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

PRESETS: dict[str, Mapping[str, Any]] = {"paper": {"passages": 5}, "original": {"passages": 5}}


@dataclass(frozen=True, slots=True)
class VanillaRAGConfig:
    """The knob of :class:`VanillaRAG`."""

    passages: int

    def __post_init__(self) -> None:
        check_count("passages", self.passages)


class VanillaRAG(SearchProgram):
    """One retrieval for the question itself, one answer: one LM call, one retrieval.

    :param passages: K, passages retrieved (the paper's 5).
    """

    def __init__(self, retriever: Any = None, *, passages: int = 5, **options: Any) -> None:
        super().__init__(retriever, **options)
        self.config = VanillaRAGConfig(passages)
        self.answer = dspy.Predict(AnswerFromPassages)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return VANILLA_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        (passages,) = yield Search([question], self.config.passages)
        yield EndRound(passages=passages)
        reply = yield answer_from_passages(self.answer, question, passages)
        return Outcome(reply.answer.strip(), "answered", passages=passages, extra={"reasoning": reply.reasoning})
