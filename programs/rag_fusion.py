"""RAG-Fusion: several rewrites of the question, their results fused by rank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.programs.base import SearchProgram, check_count
from maps_rag.programs.errors import UserError
from maps_rag.programs.passages import merge_passages
from maps_rag.programs.reader import answer_from_passages
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.texts import distinct, plain_query
from maps_rag.programs.types import Passage
from maps_rag.signatures.rag_fusion import RAG_FUSION_DEMOS, RewriteQuestion
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

RANK_CONSTANT = 60  # Cormack, Clarke and Buettcher, SIGIR 2009; also in the author's code

PRESETS: dict[str, Mapping[str, Any]] = {
    "paper": {"rewrites": 3, "passages": 5},
    "original": {"rewrites": 4, "passages": 5, "search_question": True},
}


@dataclass(frozen=True, slots=True)
class RAGFusionConfig:
    """The knobs of :class:`RAGFusion`; see there."""

    rewrites: int
    passages: int
    search_question: bool

    def __post_init__(self) -> None:
        check_count("rewrites", self.rewrites)
        check_count("passages", self.passages)
        if not isinstance(self.search_question, bool):
            raise UserError(f"search_question must be True or False, but got {self.search_question!r}.")


class RAGFusion(SearchProgram):
    """RAG-Fusion (Rackauckas 2024, arXiv 2402.03367; first published as code by A. Raudaschl).

    One call rewrites the question into N queries, one batch retrieves for all of them, reciprocal-rank fusion orders
    what came back, one call answers: 2 LM calls, N retrievals (N + 1 with ``search_question``), one round. Beside
    MAPS it is the control for "N retrievals without rounds".

    Faithful: rewriting in one call, fusion with 1 / (60 + rank), every fused passage reaches the answer, best first.
    Our reading: ranks count from 1 as in the paper on fusion (the author's code counts from 0), the wording, and an
    answer that sees the question alone, where the author's also sees the rewrites. The answer is read by the prompt of
    :class:`VanillaRAG`.

    :param rewrites: N, queries written (the author's 4; ours: 3, the N of MAPS).
    :param passages: K, passages per query (5 in the paper of MAPS and in the author's code).
    :param search_question: whether the question itself is searched too (the author does; ours: no, so that N
        retrievals are compared with N).
    :param options: see :class:`~maps_rag.programs.base.Limits`.
    """

    def __init__(
        self,
        retriever: Any = None,
        *,
        rewrites: int = 3,
        passages: int = 5,
        search_question: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(retriever, **options)
        self.config = RAGFusionConfig(rewrites, passages, search_question)
        self.rewrite = dspy.Predict(RewriteQuestion)
        self.answer = dspy.Predict(AnswerFromPassages)

    @property
    def shipped_demos(self) -> dict[str, list[dict[str, Any]]]:
        return RAG_FUSION_DEMOS

    def steps(self, question: str) -> Generator[Any, Any, Outcome]:
        limit = self.config.rewrites
        stop_reason, rewrites = "answered", []
        try:
            written = yield Ask(
                self.rewrite, fallback={"queries": []}, bounds=("queries", limit, limit), question=question
            )
            rewrites = distinct([plain_query(query) for query in written.queries], limit)
        except OutOfBudget:
            stop_reason = "budget"
        # Nothing usable written: the question itself is searched.
        queries = [question, *rewrites] if self.config.search_question else rewrites or [question]
        found = yield Search(queries, self.config.passages)
        passages = fuse_ranks(found)
        yield EndRound(passages=passages)
        reply = yield answer_from_passages(self.answer, question, passages)
        return Outcome(reply.answer.strip(), stop_reason, passages=passages, extra={"reasoning": reply.reasoning})


def fuse_ranks(results: Sequence[Sequence[Passage]], constant: float = RANK_CONSTANT) -> list[Passage]:
    """Merge ranked results by reciprocal-rank fusion, best first; each passage once, with its best similarity.

    A passage weighs the sum of 1 / (constant + rank) over the results it is in, ranks from 1 (Cormack, Clarke and
    Buettcher, SIGIR 2009). Equal weights stand in the order of :func:`merge_passages`.
    """
    weights: defaultdict[str, float] = defaultdict(float)
    for result in results:
        for rank, passage_id in enumerate(dict.fromkeys(passage.id for passage in result), 1):
            weights[passage_id] += 1 / (constant + rank)
    return sorted(merge_passages(results), key=lambda passage: -weights[passage.id])
