"""The prompt of RAG-Fusion that is its own: rewriting the question. The answer is read as in plain retrieval."""

from __future__ import annotations

from typing import Any

import dspy
from maps_rag.signatures.fields import Phrases
from maps_rag.signatures.history import FAMILY_QUERIES, FILM_QUERIES, FILMS, FIRM, FIRM_QUERIES, GRANDMOTHER
from maps_rag.signatures.maps_demos import VANILLA_DEMOS


class RewriteQuestion(dspy.Signature):
    """Rewrite the question as several different search queries.

    Each query looks for what the question asks from another side or in other words: its persons, works and places, a
    wider and a narrower wording. Each names its subject in full, so that it can be understood without the question.
    """

    question: str = dspy.InputField(desc="the question to answer")
    queries: Phrases = dspy.OutputField(desc="different search queries for the question")


RAG_FUSION_DEMOS: dict[str, list[dict[str, Any]]] = {
    "rewrite": [
        {
            "question": FILMS["question"],
            "queries": [*FILM_QUERIES, "dates of birth of the directors of The Salt Orchard and Kestrel Lane"],
        },
        {
            "question": FIRM["question"],
            "queries": [
                FIRM_QUERIES[0],
                "education of the founder of Brightwater Instruments",
                "university attended by the person who founded Brightwater Instruments",
            ],
        },
        {
            "question": GRANDMOTHER["question"],
            "queries": [
                FAMILY_QUERIES[0],
                "mother of the father of Prince Ardent of Velmark",
                "ancestors of Prince Ardent of Velmark",
            ],
        },
    ],
    "answer": VANILLA_DEMOS["answer"],
}
