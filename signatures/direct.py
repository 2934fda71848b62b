"""The prompt of answering without retrieval."""

from __future__ import annotations

from typing import Annotated, Any

import dspy
from pydantic import Field


class AnswerFromMemory(dspy.Signature):
    """Answer the question from what you know.

    First reason step by step, briefly: name what the answer depends on, compare dates where the question compares. Then
    answer with the name, date, number or yes/no that is asked for, as short as possible.
    Always answer: if you are not sure, give the most likely answer.
    """

    question: str = dspy.InputField(desc="the question to answer")
    reasoning: Annotated[str, Field(max_length=400)] = dspy.OutputField(desc="the steps that lead to the answer")
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="the short answer")


DIRECT_DEMOS: dict[str, list[dict[str, Any]]] = {
    "answer": [
        {
            "question": "Which film has the director who was born earlier, The Salt Orchard or Kestrel Lane?",
            "reasoning": "The Salt Orchard was directed by Imre Voskuil, born in 1909. Kestrel Lane was directed by "
            "Odette Lammers, born in 1915. 1909 is earlier, so the film is The Salt Orchard.",
            "answer": "The Salt Orchard",
        },
        {
            "question": "In which country is the university where the founder of Brightwater Instruments studied?",
            "reasoning": "The founder Perrin Askew studied at the Tarnvik Polytechnic, which is in Norway.",
            "answer": "Norway",
        },
    ]
}
