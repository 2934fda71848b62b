"""The prompt of RAG-Fusion that is its own: rewriting the question. The answer is read as in plain retrieval."""

from __future__ import annotations

from typing import Any

import dspy
from maps_rag.signatures.fields import Phrases
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
            "question": "Which film has the director who was born earlier, The Salt Orchard or Kestrel Lane?",
            "queries": [
                "director of the film The Salt Orchard",
                "director of the film Kestrel Lane",
                "dates of birth of the directors of The Salt Orchard and Kestrel Lane",
            ],
        },
        {
            "question": "In which country is the university where the founder of Brightwater Instruments studied?",
            "queries": [
                "founder of Brightwater Instruments",
                "education of the founder of Brightwater Instruments",
                "university attended by the engineer who founded Brightwater Instruments",
            ],
        },
    ],
    "answer": VANILLA_DEMOS["answer"],
}
