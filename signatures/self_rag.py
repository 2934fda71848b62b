"""The prompts of Self-RAG; that of answering without retrieval is shared with the method that never retrieves."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import dspy
from maps_rag.signatures.direct import DIRECT_DEMOS
from maps_rag.signatures.history import FILMS, FIRM, GRANDMOTHER, STREET
from pydantic import Field


class DecideRetrieval(dspy.Signature):
    """Decide whether the question needs facts from an encyclopedia.

    Set retrieve to true if an answer from memory could be wrong: for questions about persons, works, places, dates and
    events. Set it to false only if general knowledge or plain reasoning settles the question.
    """

    question: str = dspy.InputField(desc="the question to answer")
    reasoning: Annotated[str, Field(max_length=300)] = dspy.OutputField(desc="what the answer depends on")
    retrieve: bool = dspy.OutputField(desc="true if passages are needed")


class AnswerAndCritique(dspy.Signature):
    """Answer the question from one passage, then judge passage and answer strictly.

    Answer with the name, date, number or yes/no that is asked for, as short as possible. The passage is relevant if it
    is about what the question asks. Support says how far the passage states what the answer claims: full, partial or
    none. Utility says how well the answer serves the question, from 1 (useless) to 5 (complete), whether supported
    or not.
    """

    question: str = dspy.InputField(desc="the question to answer")
    passage: str = dspy.InputField(desc="one passage found")
    relevant: bool = dspy.OutputField(desc="true if the passage helps to answer")
    reasoning: Annotated[str, Field(max_length=400)] = dspy.OutputField(desc="what the passage says of the question")
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="the short answer")
    support: Literal["full", "partial", "none"] = dspy.OutputField(desc="how far the passage supports the answer")
    utility: int = dspy.OutputField(desc="how useful the answer is, a whole number from 1 to 5", ge=1, le=5)


SELF_RAG_DEMOS: dict[str, list[dict[str, Any]]] = {
    "decide": [
        {
            "question": FILMS["question"],
            "reasoning": "It depends on the directors of two films and on their dates of birth.",
            "retrieve": True,
        },
        {
            "question": "Which is the larger number, a dozen or fifteen?",
            "reasoning": "A dozen is twelve. This is general knowledge.",
            "retrieve": False,
        },
        {
            "question": GRANDMOTHER["question"],
            "reasoning": "It depends on who the father of Prince Ardent is and on who the mother of that father is.",
            "retrieve": True,
        },
    ],
    "critique": [
        {
            "question": "Who founded Brightwater Instruments?",
            "passage": FIRM["passages"][0],
            "relevant": True,
            "reasoning": "The passage says that the engineer Perrin Askew founded it in 1934.",
            "answer": "Perrin Askew",
            "support": "full",
            "utility": 5,
        },
        {
            "question": GRANDMOTHER["question"],
            "passage": GRANDMOTHER["passages"][1],
            "relevant": True,
            "reasoning": "The passage says that the mother of Duke Tobin III is Countess Maren Lowe. It does not say "
            "that Tobin III is the father of Prince Ardent.",
            "answer": GRANDMOTHER["answer"],
            "support": "partial",
            "utility": 4,
        },
        {
            "question": FIRM["question"],
            "passage": STREET,
            "relevant": False,
            "reasoning": "The passage says nothing of the founder or of a university.",
            "answer": "unknown",
            "support": "none",
            "utility": 1,
        },
    ],
    "answer": DIRECT_DEMOS["answer"],
}
