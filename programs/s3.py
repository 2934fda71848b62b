"""s3: a searcher that collects passages, and a generator that answers from them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count
from maps_rag.programs.passages import show_passage
from maps_rag.programs.reader import answer_from_passages
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import plain_query
from maps_rag.programs.types import Passage
from maps_rag.signatures.s3 import S3_DEMOS, SelectAndSearchOn
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"passages": 5, "select": 3, "max_rounds": 10},
    # "8-3-3": 8 retrieved, 3 selected, 3 turns after the search for the question itself.
    "original": {"passages": 8, "select": 3, "max_rounds": 4},
}


@dataclass(frozen=True, slots=True)
class S3Config:
    """The knobs of :class:`S3`; see there."""

    passages: int
    select: int
    max_rounds: int
    max_passages: int

    def __post_init__(self) -> None:
        for name in self.__dataclass_fields__:
            check_count(name, getattr(self, name))


class S3(SearchProgram):
    """Prompted s3 (Jiang et al. 2025, arXiv 2505.14146): search, select, stop, then a generator that never searches.

    The question itself is searched first. Each turn the searcher, which sees its whole history, selects passages of the
    latest search and either stops or writes the next query. The generator answers once from the union of what was
    selected; a search of which nothing was selected gives all its passages. R rounds, the first search among them, take
    R + 1 LM calls and R retrievals.

    Faithful: the loop, the numbers 8-3-3, the union, the separate generator. Our reading: this is a prompted
    re-implementation, the original trains its searcher by reinforcement (the gain of the generator over plain
    retrieval); the prompts; the last search is selected from too; a searcher that neither stops nor writes a query
    stops. "Frozen" means that only the searcher is trained; here each role may have its own LM and prompt.

    :param passages: K, passages per search (the paper of MAPS: 5; its own: 8).
    :param select: passages selected per search at most (its own 3).
    :param max_rounds: searches at most, that for the question included (the paper of MAPS: 10; its own: 1 + 3).
    :param max_passages: passages that the generator gets at most, the earliest first (20, the upper end of its code).
    :param options: see :class:`~maps_rag.programs.base.Limits`.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        passages: int = 5,
        select: int = 3,
        max_rounds: int = 10,
        max_passages: int = 20,
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = S3Config(passages, select, max_rounds, max_passages)
        self.searcher = dspy.Predict(SelectAndSearchOn)
        self.answer = dspy.Predict(AnswerFromPassages)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return S3_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        blocks: list[Sequence[Passage]] = []
        history: list[str] = []
        stop_reason, query = "max_rounds", question
        try:
            for _ in range(self.config.max_rounds):
                (found,) = yield Search([query], self.config.passages)
                blocks.append(found)  # all of it, until something is selected
                numbered = [f"[{number}] {show_passage(passage)}" for number, passage in enumerate(found, 1)]
                turn = yield Ask(
                    self.searcher,
                    fallback={"selected": [], "complete": False, "next_query": ""},
                    retries=1,
                    bounds=("selected", 0, self.config.select),
                    shrinkable=("history", "passages"),
                    question=question,
                    history=history,
                    passages=numbered,
                )
                selected = [n for n in dict.fromkeys(turn.selected) if 1 <= n <= len(found)][: self.config.select]
                blocks[-1] = [found[number - 1] for number in selected] or found
                yield EndRound(
                    passages=found, knowledge=[(show_passage(passage), passage.id) for passage in blocks[-1]]
                )
                numbers = ", ".join(map(str, selected)) or "none"
                history.append("\n".join([f"Query: {query}", *numbered, f"Selected: {numbers}"]))
                query = plain_query(turn.next_query)
                if turn.complete or not query:
                    stop_reason = "sufficient" if turn.complete else "no_query"
                    break
        except OutOfBudget:
            stop_reason = "budget"
        union: dict[str, Passage] = {}
        for passage in chain.from_iterable(blocks):
            union.setdefault(passage.id, passage)
        context = list(union.values())[: self.config.max_passages]
        reply = yield answer_from_passages(self.answer, question, context)
        return Outcome(reply.answer.strip(), stop_reason, passages=context, extra={"reasoning": reply.reasoning})
