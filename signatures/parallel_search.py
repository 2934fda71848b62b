"""The prompt of ParallelSearch's reasoner; the forced answer's is shared."""

from __future__ import annotations

from typing import Any

import dspy
from maps_rag.signatures.fields import Phrases
from maps_rag.signatures.history import (
    ANSWER_DEMOS,
    BIRTH_QUERIES,
    FILM_HISTORY,
    FILMS,
    FIRM,
    HISTORY,
    Answer,
    Reasoning,
    firm_history,
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
            "question": FILMS["question"],
            "history": FILM_HISTORY[:1],
            "reasoning": "The directors are Imre Voskuil and Odette Lammers. Now their dates of birth are needed.",
            "queries": BIRTH_QUERIES,
            "answer": "",
        },
        {
            "question": FIRM["question"],
            "history": firm_history(3),
            "reasoning": FIRM["reasoning"],
            "queries": [],
            "answer": FIRM["answer"],
        },
    ],
    "answer": ANSWER_DEMOS,
}
