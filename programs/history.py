"""What methods with a full history share: usable queries and answers, condensed steps, the answer from all turns."""

from __future__ import annotations

from collections.abc import Sequence

import dspy
from maps_rag.programs.reader import NO_ANSWER
from maps_rag.programs.steps import Ask
from maps_rag.programs.texts import plain_query, says_something
from maps_rag.signatures.history import RESULT, SEARCH

NO_ACTION = "Neither a search nor an answer was given: search, or answer."
"""What a turn leaves in the history that did nothing."""


def asked_for(queries: Sequence[str], limit: int) -> list[str]:
    """Return the first ``limit`` usable queries, in order; repeats are kept."""
    cleaned = (plain_query(query) for query in queries)
    return [query for query in cleaned if says_something(query)][:limit]


def stated(answer: str) -> str:
    """Return a stripped answer: empty where the model only wrote that it has none."""
    return answer.strip() if says_something(answer) else ""


def same_query(query: str) -> str:
    """Return the form in which two spellings of one query are equal: case and spaces do not count."""
    return " ".join(query.casefold().split())


def condense(history: Sequence[str]) -> list[str]:
    """Shorten a history to numbered steps, as Search-o1 gives it to the reader of documents.

    Every line is a step. Up to five steps stay as they are; of more, the first, the last four and every step with a
    query or a result stay, and an ellipsis stands for those between.
    """
    steps = [line for turn in history for line in turn.splitlines()]
    numbered = [f"Step {number}: {step}" for number, step in enumerate(steps, 1)]
    if len(numbered) <= 5:
        return numbered
    kept: list[str] = []
    for index, step in enumerate(steps):
        if index in (0, *range(len(steps) - 4, len(steps))) or step.startswith((SEARCH, RESULT)):
            kept.append(numbered[index])
        elif kept[-1] != "...":
            kept.append("...")
    return kept


def ask_answer(predictor: dspy.Module, question: str, history: Sequence[str]) -> Ask:
    """Return the call that answers from all turns, whatever is left of the budget."""
    return Ask(
        predictor,
        fallback=NO_ANSWER,
        retries=1,
        final=True,
        question=question,
        history=list(history),
    )
