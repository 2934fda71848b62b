"""ParallelSearch: several sub-queries a step, with the full history."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count, check_switch
from maps_rag.programs.history import NO_ACTION, ask_answer, asked_for
from maps_rag.programs.passages import show_passage
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import stated
from maps_rag.programs.types import Passage
from maps_rag.signatures.history import AnswerFromHistory, show_turn
from maps_rag.signatures.parallel_search import PARALLEL_SEARCH_DEMOS, ReasonAndDecompose

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"queries": 3, "passages": 5, "max_rounds": 10, "force_answer": True},
    "original": {"queries": 5, "passages": 3, "max_rounds": 4, "force_answer": False},
}


@dataclass(frozen=True, slots=True)
class ParallelSearchConfig:
    """The knobs of :class:`ParallelSearch`; see there."""

    queries: int
    passages: int
    max_rounds: int
    force_answer: bool

    def __post_init__(self) -> None:
        for name in ("queries", "passages", "max_rounds"):
            check_count(name, getattr(self, name))
        check_switch("force_answer", self.force_answer)


class ParallelSearch(SearchProgram):
    """Prompted ParallelSearch (Zhao et al., 2025, arXiv 2508.09303): independent sub-queries are searched side by side.

    Each turn the model sees its full history, thinks, and either writes one or more sub-queries or answers. All
    sub-queries of a turn are searched in one batch, and their results enter the history in order, repeats included.
    R rounds take R + 1 LM calls, and as many retrievals as there are sub-queries.

    Faithful: the loop, the full history, results concatenated without removing repeats; a turn with sub-queries
    searches even if it answers as well; a turn with neither costs a turn and leaves a message. Our reading: this is a
    prompted re-implementation, the original trains the model by reinforcement; typed fields instead of tags; our
    prompts; passages are cut one by one by the driver, not as a block of 1,000 tokens.

    :param retriever: see :class:`SearchProgram`.
    :param queries: N, sub-queries a turn at most (ours: 3, the N of MAPS; the original has no limit, its preset
        allows 5).
    :param passages: K, passages per sub-query (the original's 3; 5 in the setting of the MAPS paper).
    :param max_rounds: turns that may search (the original's 4; 10 in the setting of the MAPS paper).
    :param force_answer: True (ours: the model is not trained to be done in time) asks for an answer from the history
        after the last round. False is the original's last turn: the same prompt, in which only an answer counts.
    :param options: see :class:`~maps_rag.programs.base.Limits`; a spent budget always asks for an answer.
    :raises UserError: when a knob is out of range or unknown.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        queries: int = 3,
        passages: int = 5,
        max_rounds: int = 10,
        force_answer: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = ParallelSearchConfig(queries, passages, max_rounds, force_answer)
        self.agent = dspy.Predict(ReasonAndDecompose)
        self.answer = dspy.Predict(AnswerFromHistory)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return PARALLEL_SEARCH_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        history: list[str] = []
        seen: dict[str, Passage] = {}
        answer, reasoning, stop_reason = "", "", "max_rounds"
        try:
            for _ in range(self.config.max_rounds):
                turn = yield self._ask_turn(question, history)
                reasoning, queries = turn.reasoning, asked_for(turn.queries, self.config.queries)
                if queries:
                    found = yield Search(queries, self.config.passages)
                    passages = list(chain.from_iterable(found))
                    seen.update((passage.id, passage) for passage in passages)
                    history.append(show_turn(reasoning, queries, [show_passage(passage) for passage in passages]))
                    yield EndRound(passages=passages)
                elif answer := stated(turn.answer):
                    stop_reason = "answered"
                    break
                else:
                    history.append(show_turn(reasoning, results=[NO_ACTION]))
            if stop_reason == "max_rounds" and not self.config.force_answer:
                turn = yield self._ask_turn(question, history)
                answer, reasoning = stated(turn.answer), turn.reasoning
        except OutOfBudget:
            stop_reason = "budget"
        if stop_reason == "budget" or (stop_reason == "max_rounds" and self.config.force_answer):
            reply = yield ask_answer(self.answer, question, history)
            answer, reasoning = stated(reply.answer), reply.reasoning
        return Outcome(answer, stop_reason, passages=list(seen.values()), extra={"reasoning": reasoning})

    def _ask_turn(self, question: str, history: list[str]) -> Ask:
        return Ask(
            self.agent,
            fallback={"reasoning": "", "queries": [], "answer": ""},
            bounds=("queries", 0, self.config.queries),
            question=question,
            history=history,
        )
