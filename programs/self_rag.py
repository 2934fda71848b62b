"""Self-RAG: answer from every passage by itself, judge each answer, and take the best."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count, check_switch
from maps_rag.programs.choices import INSTRUCTION
from maps_rag.programs.errors import UserError
from maps_rag.programs.passages import show_passage
from maps_rag.programs.reader import NO_ANSWER
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import stated
from maps_rag.programs.types import Passage
from maps_rag.signatures.direct import AnswerFromMemory
from maps_rag.signatures.self_rag import SELF_RAG_DEMOS, AnswerAndCritique, DecideRetrieval

SUPPORT = {"full": 1.0, "partial": 0.5, "none": 0.0}
UNUSABLE = {"relevant": False, "reasoning": "", "answer": "", "support": "none", "utility": 1}

PRESETS: dict[str, Mapping[str, Any]] = {"paper": {"passages": 5}, "original": {"passages": 10}}


@dataclass(frozen=True, slots=True)
class SelfRAGConfig:
    """The knobs of :class:`SelfRAG`; see there."""

    passages: int
    always_retrieve: bool
    relevance_weight: float
    support_weight: float
    utility_weight: float

    def __post_init__(self) -> None:
        check_count("passages", self.passages)
        check_switch("always_retrieve", self.always_retrieve)
        for name in ("relevance_weight", "support_weight", "utility_weight"):
            weight = getattr(self, name)
            if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight < float("inf"):
                raise UserError(f"{name} must be a number of at least 0, but got {weight!r}.")


class SelfRAG(SearchProgram):
    """Prompted Self-RAG (Asai et al., 2023, arXiv 2310.11511), short form: retrieve if needed, then answers compete.

    One call decides whether passages are needed; if not, a second answers from memory. Otherwise one retrieval for the
    question, and one call per passage, side by side, that answers from this passage alone and judges relevance, support
    and utility. The score is relevance (0 or 1) + support (full 1, partial 0.5, none 0) + utility (1 to 5 as -1 to 1),
    each with its weight; the best answer wins, the nearer passage among equals. For a multiple-choice question the
    scores of all passages are added up per option instead. 1 + K calls and one retrieval (two calls and none where no
    passages are needed).

    Faithful: the decision, one answer per passage, the weighted sum with the published weights, the vote for closed
    sets. Our reading: this is a prompted re-implementation. The original is trained to write reflection tokens and
    weighs their probabilities; ours are typed fields, so scores are coarse, and the likelihood of the answer itself is
    not in the sum. An answer that only says that there is none does not compete. Nothing is forced at a cap: there is
    no loop. A spent budget leaves one call: the answer from the nearest passage, or from memory before any retrieval.

    :param retriever: see :class:`SearchProgram`.
    :param passages: K, passages retrieved (the original's 5 to 10; 5 in the setting of the MAPS paper).
    :param always_retrieve: True skips the decision; the published threshold also retrieves nearly always.
    :param relevance_weight: weight of relevance (published: 1), as ``support_weight`` and ``utility_weight``.
    :param options: see :class:`~maps_rag.programs.base.Limits`.
    :raises UserError: when a knob is out of range or unknown.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        passages: int = 5,
        always_retrieve: bool = False,
        relevance_weight: float = 1.0,
        support_weight: float = 1.0,
        utility_weight: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = SelfRAGConfig(passages, always_retrieve, relevance_weight, support_weight, utility_weight)
        self.decide = dspy.Predict(DecideRetrieval)
        self.critique = dspy.Predict(AnswerAndCritique)
        self.answer = dspy.Predict(AnswerFromMemory)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return SELF_RAG_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        passages: list[Passage] = []
        stop_reason = "answered"
        try:
            if (yield from self._retrieval_is_needed(question)):
                (passages,) = yield Search([question], self.config.passages)
            if passages:
                critiques = yield [self._ask_critique(question, passage) for passage in passages]
        except OutOfBudget:
            stop_reason = "budget"
            if passages:
                critiques = [(yield self._ask_critique(question, passages[0], final=True))]
        if not passages:
            reply = yield Ask(self.answer, fallback=NO_ANSWER, retries=1, final=True, question=question)
            return Outcome(reply.answer.strip(), stop_reason, extra={"reasoning": reply.reasoning, "critiques": []})
        yield EndRound(passages=passages)
        scores = [self._score(critique) for critique in critiques]
        answer, reasoning = elect(question, critiques, scores)
        judged = [
            {
                "id": passage.id,
                "answer": critique.answer,
                "relevant": critique.relevant,
                "support": critique.support,
                "utility": critique.utility,
                "score": score,
            }
            for passage, critique, score in zip(passages, critiques, scores, strict=False)
        ]
        return Outcome(answer, stop_reason, passages=passages, extra={"reasoning": reasoning, "critiques": judged})

    def _retrieval_is_needed(self, question: str) -> Generator[Any, Any, bool]:
        if self.config.always_retrieve:
            return True
        reply = yield Ask(self.decide, fallback={"reasoning": "", "retrieve": True}, question=question)
        return bool(reply.retrieve)

    def _ask_critique(self, question: str, passage: Passage, final: bool = False) -> Ask:
        shown = show_passage(passage)
        return Ask(self.critique, fallback=UNUSABLE, retries=1, final=final, question=question, passage=shown)

    def _score(self, critique: dspy.Prediction) -> float:
        utility = (min(max(critique.utility, 1), 5) - 3) / 2
        score: float = (
            self.config.relevance_weight * bool(critique.relevant)
            + self.config.support_weight * SUPPORT[critique.support]
            + self.config.utility_weight * utility
        )
        return score


def elect(question: str, critiques: Sequence[dspy.Prediction], scores: Sequence[float]) -> tuple[str, str]:
    """Return the winning answer and its reasoning: the best by score, or for multiple choice the best by vote.

    A passage votes for the option that its answer names; an answer that names none has no vote. Without any vote the
    best answer by score wins.
    """
    standing = [index for index, critique in enumerate(critiques) if stated(critique.answer)]
    if not standing:
        return "", ""
    options = _options(question)
    named = {index: letter for index in standing if (letter := _named(critiques[index].answer, options))}
    votes: dict[str, float] = {}
    for index, letter in named.items():
        votes[letter] = votes.get(letter, 0.0) + scores[index]
    if votes:
        elected = max(votes, key=votes.__getitem__)
        best = max((index for index in named if named[index] == elected), key=scores.__getitem__)
        return elected, critiques[best].reasoning
    best = max(standing, key=scores.__getitem__)
    return critiques[best].answer.strip(), critiques[best].reasoning


def _options(question: str) -> dict[str, str]:
    """Return the options of a question that had them rendered in, by letter: the last run of lines "A. text"."""
    *lines, last = question.splitlines()
    options: dict[str, str] = {}
    if last != INSTRUCTION:
        return options
    for line in reversed(lines):
        letter, dot, text = line.partition(". ")
        if not dot or len(letter) != 1 or not letter.isupper() or letter in options:
            break
        options[letter] = text
    return options


def _named(answer: str, options: Mapping[str, str]) -> str | None:
    """Return the letter that an answer begins with ("B", "(B) tin", "B. tin") or whose text it is, else None."""
    text = " ".join(answer.split())
    same = [
        letter for letter, option in options.items() if option.casefold().strip(" .") == text.casefold().strip(" .")
    ]
    if same:
        return same[0]
    head = text.lstrip("([ ")
    label = head[:1].upper()
    return label if label in options and head[1:2] in ("", ".", ")", "]", ":", ",") else None
