"""IRCoT: retrieval interleaved with the sentences of a chain of thought."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count
from maps_rag.programs.passages import show_passage, split_sentences
from maps_rag.programs.reader import answer_from_passages
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.types import Passage
from maps_rag.signatures.ircot import IRCOT_DEMOS, ThinkNextSentence
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"passages": 5, "max_rounds": 10, "max_passages": 15},
    # Its authors choose K in {2, 4, 6, 8} per data set.
    "original": {"passages": 6, "max_rounds": 10, "max_passages": 15},
}


@dataclass(frozen=True, slots=True)
class IRCoTConfig:
    """The knobs of :class:`IRCoT`; see there."""

    passages: int
    max_rounds: int
    max_passages: int

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            check_count(name, getattr(self, name))


class IRCoT(SearchProgram):
    """Interleaving retrieval with chain-of-thought reasoning (Trivedi et al., ACL 2023, arXiv 2212.10509).

    The question is searched first. Then one sentence of reasoning is written from all passages, the question and the
    sentences so far, and searched in its turn, until a sentence says "answer is", is empty, or is the last one allowed.
    A separate reader then answers from the passages alone. R rounds take R + 1 LM calls and R retrievals.

    Faithful: the loop, the stop rules, passages that add up to a cap (later ones are dropped, the search goes on), only
    the first sentence of a reply is kept, the reader sees no thoughts. Our reading: the prompts, which replace 20
    worked examples per data set with an instruction and three demos; no distractors in the demos; one retry where a
    sentence cannot be parsed.

    :param passages: K, passages per search (the paper of MAPS: 5; its authors choose among 2, 4, 6 and 8).
    :param max_rounds: sentences at most, and so searches (10 in the authors' code).
    :param max_passages: passages kept in all (the authors' 15).
    :param options: see :class:`~maps_rag.programs.base.Limits`.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        passages: int = 5,
        max_rounds: int = 10,
        max_passages: int = 15,
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = IRCoTConfig(passages, max_rounds, max_passages)
        self.think = dspy.Predict(ThinkNextSentence)
        self.answer = dspy.Predict(AnswerFromPassages)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return IRCOT_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        passages: dict[str, Passage] = {}
        thoughts: list[str] = []
        stop_reason, query = "max_rounds", question
        try:
            for _ in range(self.config.max_rounds):
                (found,) = yield Search([query], self.config.passages)
                for passage in found:
                    if len(passages) < self.config.max_passages:
                        passages.setdefault(passage.id, passage)
                reply = yield Ask(
                    self.think,
                    fallback={"thought": ""},
                    retries=1,
                    question=question,
                    passages=[show_passage(passage) for passage in passages.values()],
                    thoughts=thoughts,
                )
                query = first_sentence(reply.thought)
                if query:
                    thoughts.append(query)
                yield EndRound(passages=found, reasoning_state=" ".join(thoughts))
                if not query:
                    stop_reason = "no_thought"
                    break
                if "answer is" in query.casefold():
                    stop_reason = "sufficient"
                    break
        except OutOfBudget:
            stop_reason = "budget"
        kept = list(passages.values())
        reply = yield answer_from_passages(self.answer, question, kept)
        return Outcome(
            reply.answer.strip(),
            stop_reason,
            reasoning_state=" ".join(thoughts),
            passages=kept,
            extra={"reasoning": reply.reasoning, "thoughts": thoughts},
        )


def first_sentence(text: str) -> str:
    """Return the first sentence of a text; initials and abbreviations do not end it."""
    return next(iter(split_sentences(" ".join(text.split()))), "")
