"""The prompt of IRCoT that is its own: the next sentence of a chain of thought."""

from __future__ import annotations

from typing import Annotated, Any

import dspy
from maps_rag.signatures.history import FILMS, FIRM, GRANDMOTHER
from maps_rag.signatures.maps_demos import VANILLA_DEMOS
from pydantic import Field


class ThinkNextSentence(dspy.Signature):
    """Write the next sentence of the reasoning that leads to the answer.

    One sentence, one step: state a fact from the passages that the question needs, or, where none of them says it, what
    has to be looked up next, by name. Do not repeat an earlier sentence. Once the facts settle the question, write
    "So the answer is: ..." with the short answer.
    """

    question: str = dspy.InputField(desc="the question to answer")
    passages: list[str] = dspy.InputField(desc="passages found so far")
    thoughts: list[str] = dspy.InputField(desc="the sentences written so far, in order")
    thought: Annotated[str, Field(max_length=600)] = dspy.OutputField(desc="the next sentence, and only that")


IRCOT_DEMOS: dict[str, list[dict[str, Any]]] = {
    "think": [
        {
            "question": FIRM["question"],
            "passages": FIRM["passages"][:1],
            "thoughts": [],
            "thought": "Brightwater Instruments was founded by the engineer Perrin Askew.",
        },
        {
            "question": GRANDMOTHER["question"],
            "passages": GRANDMOTHER["passages"][:1],
            "thoughts": ["The father of Prince Ardent of Velmark is Duke Tobin III."],
            "thought": "Now the mother of Duke Tobin III has to be looked up.",
        },
        {
            "question": FILMS["question"],
            "passages": FILMS["passages"],
            "thoughts": [
                "The Salt Orchard was directed by Imre Voskuil, who was born on 4 March 1909.",
                "Kestrel Lane was directed by Odette Lammers, who was born on 22 October 1915.",
            ],
            "thought": "So the answer is: The Salt Orchard.",
        },
    ],
    "answer": VANILLA_DEMOS["answer"],
}
