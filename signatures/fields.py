"""Field types and helpers that the prompts share."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import dspy
from pydantic import Field

Short = Annotated[str, Field(max_length=120)]
"""A phrase: a direction, a sub-query, a fact by name. The bound reaches the grammar of servers that have one."""

Line = Annotated[str, Field(max_length=300)]
"""A sentence or two."""


@lru_cache(maxsize=256)
def bounded(signature: type[dspy.Signature], name: str, least: int, most: int) -> type[dspy.Signature]:
    """Return a signature whose list output ``name`` has ``least`` to ``most`` items.

    For bounds that depend on the configuration (N directions): passed per call, so that the predictor's own signature,
    which optimizers rewrite, stays free of them.
    """
    outputs = signature.output_fields
    field = outputs[name]
    replacement = dspy.OutputField(desc=field.json_schema_extra["desc"], min_length=least, max_length=most)
    return signature.delete(name).insert(list(outputs).index(name), name, replacement, field.annotation)


def with_history(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """Return a signature that also reads the full history: for methods that are not disentangled."""
    position = list(signature.input_fields).index("question") + 1
    field = dspy.InputField(desc="all earlier rounds: reasoning, sub-queries and results")
    return signature.insert(position, "history", field, list[str])
