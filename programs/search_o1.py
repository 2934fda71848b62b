"""Search-o1: reason, search, reason in documents."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count, check_switch
from maps_rag.programs.history import ask_answer, asked_for, condense, same_query, stated
from maps_rag.programs.passages import show_passage
from maps_rag.programs.reader import NO_ANSWER
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import says_something
from maps_rag.programs.types import Passage
from maps_rag.signatures.direct import AnswerFromMemory
from maps_rag.signatures.history import AnswerFromHistory, show_turn
from maps_rag.signatures.search_o1 import ReasonAndSearch, ReasonInDocuments, search_o1_demos

NOTHING_FOUND = "Nothing in the passages helps."
LIMIT_REACHED = "The limit of searches is reached: no further search is possible."
SEARCHED_BEFORE = "This was searched for before: see its result above."

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"passages": 5, "max_rounds": 10, "max_turns": 15},
    "original": {"passages": 10, "max_rounds": 10, "max_turns": 15},
}


@dataclass(frozen=True, slots=True)
class SearchO1Config:
    """The knobs of :class:`SearchO1`; see there."""

    passages: int
    max_rounds: int
    max_turns: int
    force_answer: bool
    back_off: bool

    def __post_init__(self) -> None:
        for name in ("passages", "max_rounds", "max_turns"):
            check_count(name, getattr(self, name))
        for name in ("force_answer", "back_off"):
            check_switch(name, getattr(self, name))


class SearchO1(SearchProgram):
    """Search-o1 (Li et al., 2025, arXiv 2501.05366): one line of reasoning that searches when a fact is missing.

    Each turn the model reasons on from its full history and either writes a query or answers. A query is searched, a
    second call reads the passages against the condensed reasoning (reason-in-documents), and only what that call wrote
    enters the history. R searches take 2R + 1 LM calls and R retrievals.

    Faithful: full history; condensed steps (:func:`~maps_rag.programs.history.condense`); a query already searched and
    a query beyond ``max_rounds`` get a message instead of a search and cost a turn; the turn cap gives no forced
    answer; where a turn writes both, the query counts, and the last answer written is the answer. Our reading: typed
    fields instead of marker tokens in one growing text, the wording of prompts and messages, passages of a fixed
    corpus instead of web pages, and an unusable reply, asked for once more, ends the search ("unparseable").

    :param retriever: see :class:`SearchProgram`.
    :param passages: K, passages per query (the original's 10; 5 in the setting of the MAPS paper).
    :param max_rounds: searches, each a round, per question (the original's 10 for multi-hop questions).
    :param max_turns: turns per question, with or without a search (the original's 15).
    :param force_answer: True (ours) asks for an answer from the history where the turns ran out without one.
    :param back_off: True replaces an empty answer by one from the model's own knowledge, as the published scores do;
        such an answer has ``backed_off`` set. Off, so that a retrieval method is credited with retrieval alone.
    :param options: see :class:`~maps_rag.programs.base.Limits`; a spent budget always asks for an answer.
    :raises UserError: when a knob is out of range or unknown.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        passages: int = 5,
        max_rounds: int = 10,
        max_turns: int = 15,
        force_answer: bool = False,
        back_off: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = SearchO1Config(passages, max_rounds, max_turns, force_answer, back_off)
        self.reason = dspy.Predict(ReasonAndSearch)
        self.refine = dspy.Predict(ReasonInDocuments)
        self.answer = dspy.Predict(AnswerFromHistory)
        if back_off:
            self.direct = dspy.Predict(AnswerFromMemory)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return search_o1_demos(back_off=self.config.back_off)

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        history: list[str] = []
        results: dict[str, str] = {}
        seen: dict[str, Passage] = {}
        answer, reasoning, stop_reason = "", "", "max_turns"
        try:
            for _ in range(self.config.max_turns):
                turn = yield Ask(
                    self.reason,
                    fallback={"reasoning": None, "query": "", "answer": ""},
                    retries=1,
                    question=question,
                    history=history,
                )
                if turn.reasoning is None:
                    stop_reason = "unparseable"
                    break
                reasoning, answer = turn.reasoning, stated(turn.answer) or answer
                queries = asked_for([turn.query], 1)
                if not queries:
                    stop_reason = "answered"
                    break
                (query,) = queries
                if len(results) >= self.config.max_rounds:
                    result = LIMIT_REACHED
                elif same_query(query) in results:
                    result = SEARCHED_BEFORE
                else:
                    result = yield from self._look_up(question, [*history, show_turn(reasoning, [query])], query, seen)
                    results[same_query(query)] = result
                history.append(show_turn(reasoning, [query], [result]))
        except OutOfBudget:
            stop_reason = "budget"
        out_of_turns = stop_reason == "max_turns" and self.config.force_answer
        if out_of_turns or stop_reason == "budget":
            reply = yield ask_answer(self.answer, question, history)
            answer, reasoning = stated(reply.answer) or answer, reply.reasoning
        backed_off = not answer and self.config.back_off and stop_reason != "budget"
        if backed_off:
            reply = yield Ask(self.direct, fallback=NO_ANSWER, retries=1, final=True, question=question)
            answer, reasoning = stated(reply.answer), reply.reasoning
        return Outcome(
            answer,
            stop_reason,
            knowledge=[result for result in results.values() if result != NOTHING_FOUND],
            passages=list(seen.values()),
            extra={"reasoning": reasoning, "backed_off": backed_off},
        )

    def _look_up(
        self, question: str, history: list[str], query: str, seen: dict[str, Passage]
    ) -> Generator[Any, Any, str]:
        """Search, and reason in the documents found."""
        (passages,) = yield Search([query], self.config.passages)
        seen.update((passage.id, passage) for passage in passages)
        reply = yield Ask(
            self.refine,
            fallback={"information": ""},
            question=question,
            history=condense(history),
            query=query,
            passages=[show_passage(passage) for passage in passages],
        )
        helps = says_something(reply.information)
        result = reply.information.strip() if helps else NOTHING_FOUND
        yield EndRound(passages=passages, knowledge=[(result, None)] if helps else [])
        return result
