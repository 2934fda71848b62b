"""The prompt of answering without retrieval."""

from __future__ import annotations

from typing import Annotated, Any

import dspy
from maps_rag.signatures.maps_demos import VANILLA_DEMOS
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
    "answer": [{name: demo[name] for name in ("question", "reasoning", "answer")} for demo in VANILLA_DEMOS["answer"]]
}
