"""The prompts of Search-o1."""

from __future__ import annotations

from typing import Annotated, Any

import dspy
from maps_rag.signatures.direct import DIRECT_DEMOS
from maps_rag.signatures.fields import Line
from maps_rag.signatures.history import (
    ANSWER_DEMOS,
    BAY,
    DUCHY,
    FAMILY_QUERIES,
    FAMILY_THOUGHTS,
    FATHER_FOUND,
    FIRM,
    FIRM_HISTORY,
    FIRM_QUERIES,
    FIRM_THOUGHTS,
    GRANDMOTHER,
    HISTORY,
    STREET,
    Answer,
    Reasoning,
    show_turn,
)
from pydantic import Field


class ReasonAndSearch(dspy.Signature):
    """Reason step by step towards the answer, and search whenever a fact is missing.

    Go on from the history. Where a fact is missing or uncertain, write one search query for it and leave the answer
    empty. Once every fact is found, leave the query empty and answer with the name, date, number or yes/no that is
    asked for, as short as possible.
    """

    question: str = dspy.InputField(desc="the question to answer")
    history: list[str] = dspy.InputField(desc=HISTORY)
    reasoning: Reasoning = dspy.OutputField(desc="the next steps of reasoning")
    query: Line = dspy.OutputField(desc="a search query for the next missing fact, or empty")
    answer: Answer = dspy.OutputField(desc="the short answer, or empty while a fact is missing")


class ReasonInDocuments(dspy.Signature):
    """Read the passages for the current search query and write what helps the reasoning on.

    Take only what the passages state and what the query or the earlier steps need, with full names and dates. Leave the
    information empty if no passage helps.
    """

    question: str = dspy.InputField(desc="the question to answer")
    history: list[str] = dspy.InputField(desc="the reasoning so far, shortened")
    passages: list[str] = dspy.InputField(desc="passages found for the current search query")
    query: str = dspy.InputField(desc="the current search query")
    information: Annotated[str, Field(max_length=900)] = dspy.OutputField(desc="the information that helps, or nothing")


def _steps(*turns: str) -> list[str]:
    lines = [line for turn in turns for line in turn.splitlines()]
    return [f"Step {number}: {line}" for number, line in enumerate(lines, 1)]


_FOUNDER_SOUGHT = _steps(show_turn(FIRM_THOUGHTS[0], FIRM_QUERIES[:1]))
_MOTHER_SOUGHT = _steps(
    show_turn(FAMILY_THOUGHTS[0], FAMILY_QUERIES[:1], [FATHER_FOUND]),
    show_turn(FAMILY_THOUGHTS[1], FAMILY_QUERIES[1:]),
)


def search_o1_demos(*, back_off: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the demos of every role of Search-o1."""
    return {
        "reason": [
            {
                "question": GRANDMOTHER["question"],
                "history": [],
                "reasoning": FAMILY_THOUGHTS[0],
                "query": FAMILY_QUERIES[0],
                "answer": "",
            },
            {
                "question": FIRM["question"],
                "history": FIRM_HISTORY[:1],
                "reasoning": FIRM_THOUGHTS[1],
                "query": FIRM_QUERIES[1],
                "answer": "",
            },
            {
                "question": FIRM["question"],
                "history": FIRM_HISTORY,
                "reasoning": FIRM["reasoning"],
                "query": "",
                "answer": FIRM["answer"],
            },
        ],
        "refine": [
            {
                "question": FIRM["question"],
                "history": _FOUNDER_SOUGHT,
                "query": FIRM_QUERIES[0],
                "passages": [BAY, FIRM["passages"][0]],
                "information": "Brightwater Instruments was founded in 1934 by the engineer Perrin Askew.",
            },
            {
                "question": FIRM["question"],
                "history": _FOUNDER_SOUGHT,
                "query": FIRM_QUERIES[0],
                "passages": [STREET],
                "information": "",
            },
            {
                "question": GRANDMOTHER["question"],
                "history": _MOTHER_SOUGHT,
                "query": FAMILY_QUERIES[1],
                "passages": [DUCHY, GRANDMOTHER["passages"][1]],
                "information": "Duke Tobin III of Velmark was the eldest son of Duke Osric II and Countess Maren Lowe.",
            },
        ],
        "answer": ANSWER_DEMOS,
    } | ({"direct": DIRECT_DEMOS["answer"]} if back_off else {})
