"""The prompt of ParallelSearch's reasoner; the forced answer's is shared."""

from __future__ import annotations

from typing import Any

import dspy
from maps_rag.signatures.fields import Phrases
from maps_rag.signatures.history import (
    ANSWER_DEMOS,
    BIRTH_QUERIES,
    FAMILY_QUERIES,
    FAMILY_THOUGHTS,
    FILM_HISTORY,
    FILM_THOUGHTS,
    FILMS,
    FIRM,
    FIRM_HISTORY,
    GRANDMOTHER,
    HISTORY,
    Answer,
    Reasoning,
)


class ReasonAndDecompose(dspy.Signature):
    """Reason about what is missing, then search for it or answer.

    Go on from the history. Where facts are missing, write search queries and leave the answer empty: if parts of the
    question can be looked up independently, one query for each part, to be searched at the same time. Otherwise write
    no query, and answer with the name, date, number or yes/no that is asked for, as short as possible.
    """

    question: str = dspy.InputField(desc="the question to answer")
    history: list[str] = dspy.InputField(desc=HISTORY)
    reasoning: Reasoning = dspy.OutputField(desc="what is known and what is missing")
    queries: Phrases = dspy.OutputField(desc="independent search queries; empty if the answer is known")
    answer: Answer = dspy.OutputField(desc="the short answer, or empty while a fact is missing")


PARALLEL_SEARCH_DEMOS: dict[str, list[dict[str, Any]]] = {
    "agent": [
        {
            "question": GRANDMOTHER["question"],
            "history": [],
            "reasoning": FAMILY_THOUGHTS[0],
            "queries": FAMILY_QUERIES[:1],
            "answer": "",
        },
        {
            "question": FILMS["question"],
            "history": FILM_HISTORY[:1],
            "reasoning": FILM_THOUGHTS[1],
            "queries": BIRTH_QUERIES,
            "answer": "",
        },
        {
            "question": FIRM["question"],
            "history": FIRM_HISTORY,
            "reasoning": FIRM["reasoning"],
            "queries": [],
            "answer": FIRM["answer"],
        },
    ],
    "answer": ANSWER_DEMOS,
}
