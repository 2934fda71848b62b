"""The prompts of Search-o1."""

from __future__ import annotations

from typing import Annotated, Any

import dspy
from maps_rag.signatures.direct import DIRECT_DEMOS
from maps_rag.signatures.fields import Line
from maps_rag.signatures.history import (
    ANSWER_DEMOS,
    FIRM,
    FIRM_QUERIES,
    FIRM_THOUGHTS,
    HISTORY,
    Answer,
    Reasoning,
    firm_history,
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


def search_o1_demos(*, back_off: bool) -> dict[str, list[dict[str, Any]]]:
    """Return the demos of every role of Search-o1."""
    question = FIRM["question"]
    return {
        "reason": [
            {
                "question": question,
                "history": firm_history(1),
                "reasoning": FIRM_THOUGHTS[1],
                "query": FIRM_QUERIES[1],
                "answer": "",
            },
            {
                "question": question,
                "history": firm_history(3),
                "reasoning": FIRM["reasoning"],
                "query": "",
                "answer": FIRM["answer"],
            },
        ],
        "refine": [
            {
                "question": question,
                "history": [f"Step 1: Thought: {FIRM_THOUGHTS[0]}", f"Step 2: Search: {FIRM_QUERIES[0]}"],
                "query": FIRM_QUERIES[0],
                "passages": ["Brightwater Bay: Brightwater Bay is a bay with a small harbour.", FIRM["passages"][0]],
                "information": "Brightwater Instruments was founded in 1934 by the engineer Perrin Askew.",
            },
            {
                "question": question,
                "history": [f"Step 1: Thought: {FIRM_THOUGHTS[0]}", f"Step 2: Search: {FIRM_QUERIES[0]}"],
                "query": FIRM_QUERIES[0],
                "passages": ["Askew Street: Askew Street is named after an alderman."],
                "information": "",
            },
        ],
        "answer": ANSWER_DEMOS,
    } | ({"direct": DIRECT_DEMOS["answer"]} if back_off else {})
