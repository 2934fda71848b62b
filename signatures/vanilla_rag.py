"""The prompt of plain retrieve-then-answer."""

from __future__ import annotations

from typing import Annotated

import dspy
from pydantic import Field


class AnswerFromPassages(dspy.Signature):
    """Answer the question from the passages.

    First reason briefly: put the facts together, compare dates where the question compares. Then answer with the name,
    date, number or yes/no that is asked for, as short as possible.
    Always answer: if the passages do not settle it, give the most likely answer.
    """

    passages: list[str] = dspy.InputField(desc="passages found")
    question: str = dspy.InputField(desc="the question to answer")
    reasoning: Annotated[str, Field(max_length=400)] = dspy.OutputField(desc="the facts put together")
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="the short answer")
