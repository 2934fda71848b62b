"""MultiSearch: queries from several perspectives a step, explicit merging."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count, check_switch
from maps_rag.programs.history import NO_ACTION, ask_answer, asked_for, stated
from maps_rag.programs.passages import merge_passages, show_passage
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import distinct
from maps_rag.programs.types import Passage
from maps_rag.signatures.history import AnswerFromHistory, show_turn
from maps_rag.signatures.multi_search import MULTI_SEARCH_DEMOS, MergeAndSearch

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"queries": 3, "passages": 5, "max_rounds": 10, "force_answer": True},
    # K and the cap are not known to us: those of Search-R1, on which this line of work builds.
    "original": {"queries": 3, "passages": 3, "max_rounds": 4, "force_answer": False},
}


@dataclass(frozen=True, slots=True)
class MultiSearchConfig:
    """The knobs of :class:`MultiSearch`; see there."""

    queries: int
    passages: int
    max_rounds: int
    force_answer: bool

    def __post_init__(self) -> None:
        for name in ("queries", "passages", "max_rounds"):
            check_count(name, getattr(self, name))
        check_switch("force_answer", self.force_answer)


@dataclass(slots=True)
class _State:
    """What goes on from turn to turn; ``thought``, ``queries`` and ``passages`` are of the search not yet merged."""

    history: list[str] = field(default_factory=list)
    kept: dict[str, Passage] = field(default_factory=dict)
    knowledge: list[str] = field(default_factory=list)
    thought: str = ""
    queries: list[str] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)

    def shown(self) -> list[str]:
        return [*self.history, show_turn(self.thought, self.queries)] if self.queries else self.history

    def settle(self, relevant: Sequence[Passage], merged: str) -> None:
        """Move the open search into the history, with the passages that count and their merge."""
        self.history.append(show_turn(self.thought, self.queries, [show_passage(p) for p in relevant], merged))
        self.kept.update((passage.id, passage) for passage in relevant)
        self.knowledge += [merged] if merged else []
        self.thought, self.queries, self.passages = "", [], []


class MultiSearch(SearchProgram):
    """Prompted MultiSearch (Liu et al., 2026, arXiv 2605.13534): queries from several perspectives, explicit merging.

    Each turn one call first reads the passages of the last search, names the relevant ones and merges what they state,
    then thinks and either writes queries (a rephrasing, a concept expansion, a decomposition, or a strategy of its
    own) or answers. The relevant passages and the merge go on into the next prompt, behind everything before. R rounds
    take R + 1 LM calls (R + 2 where an answer is forced) and N x R retrievals.

    Faithful: the cycle, the strategies, repeated and irrelevant passages removed, the full history with information
    and merge. Our reading: this is a prompted re-implementation, the original trains the model by reinforcement; merge
    and next search share a call; a passage is repeated if it came twice in a round or stands in the history; which are
    irrelevant is for the model to say in the same call; a reply that cannot be used keeps all passages; a turn with
    neither query nor answer costs a turn and leaves a message; typed fields instead of tags; our prompts.

    :param retriever: see :class:`SearchProgram`.
    :param queries: N, queries a turn at most (the original's 3).
    :param passages: K, passages per query (5 in the setting of the MAPS paper).
    :param max_rounds: turns that may search (10 in the setting of the MAPS paper).
    :param force_answer: True (ours: the model is not trained to be done in time) asks for an answer from the history
        where the turn after the last round gives none.
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
        self.config = MultiSearchConfig(queries, passages, max_rounds, force_answer)
        self.agent = dspy.Predict(MergeAndSearch)
        self.answer = dspy.Predict(AnswerFromHistory)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return MULTI_SEARCH_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        state = _State()
        answer, reasoning, stop_reason = "", "", "max_rounds"
        try:
            for turns in range(self.config.max_rounds + 1):
                turn = yield self._ask_turn(question, state)
                if state.queries:
                    yield self._merge(state, turn)
                reasoning, answer = turn.reasoning, stated(turn.answer)
                queries = distinct(asked_for(turn.queries, len(turn.queries)), self.config.queries)
                if turns == self.config.max_rounds:
                    break  # only an answer counts here
                if queries:
                    found = yield Search(queries, self.config.passages)
                    state.thought, state.queries = reasoning, queries
                    state.passages = [passage for passage in merge_passages(found) if passage.id not in state.kept]
                elif answer:
                    stop_reason = "answered"
                    break
                else:
                    state.history.append(show_turn(reasoning, results=[NO_ACTION]))
        except OutOfBudget:
            stop_reason = "budget"
            if state.queries:
                state.settle(state.passages, "")
        forced = stop_reason == "max_rounds" and not answer and self.config.force_answer
        if forced or stop_reason == "budget":
            reply = yield ask_answer(self.answer, question, state.history)
            answer, reasoning = stated(reply.answer), reply.reasoning
        return Outcome(
            answer,
            stop_reason,
            knowledge=state.knowledge,
            passages=list(state.kept.values()),
            extra={"reasoning": reasoning},
        )

    def _ask_turn(self, question: str, state: _State) -> Ask:
        return Ask(
            self.agent,
            fallback={"relevant": None, "merged": "", "reasoning": "", "queries": [], "answer": ""},
            bounds=("queries", 0, self.config.queries),
            question=question,
            history=state.shown(),
            passages=[f"[{number}] {show_passage(passage)}" for number, passage in enumerate(state.passages, 1)],
        )

    @staticmethod
    def _merge(state: _State, turn: dspy.Prediction) -> EndRound:
        """Settle the last search by what the turn said of it."""
        found, merged = state.passages, stated(turn.merged)
        numbers = range(1, len(found) + 1) if turn.relevant is None else dict.fromkeys(turn.relevant)
        state.settle([found[number - 1] for number in numbers if 1 <= number <= len(found)], merged)
        return EndRound(passages=found, knowledge=[(merged, None)] if merged else [])
