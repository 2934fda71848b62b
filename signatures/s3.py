"""The prompt of s3 that is its own: the searcher. The generator reads passages as in plain retrieval."""

from __future__ import annotations

from typing import Any

import dspy
from maps_rag.signatures.fields import Line
from maps_rag.signatures.history import BAY, DUCHY, FILMS, FIRM, GRANDMOTHER, STREET, numbered
from maps_rag.signatures.maps_demos import VANILLA_DEMOS


class SelectAndSearchOn(dspy.Signature):
    """Collect the passages from which somebody else will answer the question.

    First select the numbers of the passages that state a fact the question needs; select none if none does. Then set
    complete to true only if all passages selected so far settle the question. Otherwise write one search query for a
    fact that is still missing, by the name of what it is about, and different from the earlier queries.
    """

    question: str = dspy.InputField(desc="the question that will be answered")
    history: list[str] = dspy.InputField(desc="earlier turns: the query, its passages and the numbers selected")
    passages: list[str] = dspy.InputField(desc="numbered passages of the latest search")
    selected: list[int] = dspy.OutputField(desc="numbers of the passages that help")
    complete: bool = dspy.OutputField(desc="true only if nothing is missing")
    next_query: Line = dspy.OutputField(desc="one search query; empty if complete")


def _turn(query: str, passages: list[str], selected: str) -> str:
    return "\n".join([f"Query: {query}", *passages, f"Selected: {selected}"])


S3_DEMOS: dict[str, list[dict[str, Any]]] = {
    "searcher": [
        {
            "question": FIRM["question"],
            "history": [],
            "passages": numbered(BAY, FIRM["passages"][0], STREET),
            "selected": [2],
            "complete": False,
            "next_query": "university where the engineer Perrin Askew studied",
        },
        {
            "question": GRANDMOTHER["question"],
            "history": [_turn(GRANDMOTHER["question"], numbered(DUCHY, GRANDMOTHER["passages"][0]), "2")],
            "passages": numbered(
                "Tobin's Rock: Tobin's Rock is a lighthouse.",
                "Princess Ardena: Princess Ardena was the mother of Count Ruben.",
            ),
            "selected": [],
            "complete": False,
            "next_query": "parents of Duke Tobin III",
        },
        {
            "question": FILMS["question"],
            "history": [_turn(FILMS["question"], numbered(*FILMS["passages"][:2]), "1, 2")],
            "passages": numbered("Jan Voskuil: Jan Voskuil (born 1921) was a painter.", *FILMS["passages"][2:]),
            "selected": [2, 3],
            "complete": True,
            "next_query": "",
        },
    ],
    "answer": VANILLA_DEMOS["answer"],
}
