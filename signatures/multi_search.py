"""The prompt of MultiSearch's agent; the forced answer's is shared."""

from __future__ import annotations

from typing import Annotated, Any

import dspy
from maps_rag.signatures.fields import Phrases
from maps_rag.signatures.history import (
    ANSWER_DEMOS,
    DUCHY,
    FAMILY_QUERIES,
    FAMILY_THOUGHTS,
    FATHER_FOUND,
    FIRM,
    FIRM_HISTORY,
    FIRM_THOUGHTS,
    GRANDMOTHER,
    HISTORY,
    Answer,
    Reasoning,
    numbered,
    show_turn,
)
from pydantic import Field


class MergeAndSearch(dspy.Signature):
    """Merge what the last search found, then search from several perspectives or answer.

    First name the numbered passages that are relevant, and merge what they state into a short text with full names and
    dates; without passages, leave both empty. Then reason about what is missing. Where a fact is missing, leave the
    answer empty and write three search queries for it from different perspectives: rephrase it, widen it to related
    concepts, break it into parts, or use a strategy of your own. Otherwise write no query, and answer with the name,
    date, number or yes/no that is asked for, as short as possible.
    """

    question: str = dspy.InputField(desc="the question to answer")
    history: list[str] = dspy.InputField(desc=HISTORY)
    passages: list[str] = dspy.InputField(desc="numbered passages that the last search found")
    relevant: list[int] = dspy.OutputField(desc="numbers of the relevant passages", max_length=20)
    merged: Annotated[str, Field(max_length=900)] = dspy.OutputField(desc="what the relevant passages state, or empty")
    reasoning: Reasoning = dspy.OutputField(desc="what is known and what is missing")
    queries: Phrases = dspy.OutputField(desc="search queries from different perspectives; empty if the answer is known")
    answer: Answer = dspy.OutputField(desc="the short answer, or empty while a fact is missing")


_FATHER_QUERIES = [FAMILY_QUERIES[0], "parents of Prince Ardent of Velmark", "family of Prince Ardent of Velmark"]

MULTI_SEARCH_DEMOS: dict[str, list[dict[str, Any]]] = {
    "agent": [
        {
            "question": FIRM["question"],
            "history": [],
            "passages": [],
            "relevant": [],
            "merged": "",
            "reasoning": FIRM_THOUGHTS[0],
            "queries": [
                "Who founded Brightwater Instruments?",
                "history of Brightwater Instruments",
                "Brightwater Instruments founder education",
            ],
            "answer": "",
        },
        {
            "question": GRANDMOTHER["question"],
            "history": [show_turn(FAMILY_THOUGHTS[0], _FATHER_QUERIES)],
            "passages": numbered(GRANDMOTHER["passages"][0], DUCHY),
            "relevant": [1],
            "merged": FATHER_FOUND,
            "reasoning": FAMILY_THOUGHTS[1],
            "queries": ["Who is the mother of Duke Tobin III?", "parents of Duke Tobin III", "life of Duke Tobin III"],
            "answer": "",
        },
        {
            "question": FIRM["question"],
            "history": [*FIRM_HISTORY[:2], show_turn(FIRM_THOUGHTS[2], ["Tarnvik Polytechnic", "Tarnvik country"])],
            "passages": numbered("Tarn Valley: Tarn Valley is known for its cheese.", FIRM["passages"][2]),
            "relevant": [2],
            "merged": "Tarnvik Polytechnic is a technical university in Norway.",
            "reasoning": FIRM["reasoning"],
            "queries": [],
            "answer": FIRM["answer"],
        },
    ],
    "answer": ANSWER_DEMOS,
}
