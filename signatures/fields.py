"""Field types and helpers that the prompts share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any

import dspy
from annotated_types import MaxLen, MinLen
from pydantic import Field


@dataclass(frozen=True, slots=True)
class EachAtMost:
    """How long each item of a list of strings may be: in the schema, so in the grammar of servers that have one.

    Neither shown in prompts, where DSPy would spell the annotation out, nor checked when a reply is parsed: a phrase
    that is too long is no reason to lose the whole reply.
    """

    characters: int

    def __get_pydantic_json_schema__(
        self, core_schema: Any, handler: Callable[[Any], dict[str, Any]]
    ) -> dict[str, Any]:
        schema = handler(core_schema)
        schema["items"]["maxLength"] = self.characters
        return schema


Phrases = Annotated[list[str], EachAtMost(120)]
"""Directions, sub-queries, facts by name."""

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
    kept = [item for item in field.metadata if not isinstance(item, MinLen | MaxLen)]
    annotation = Annotated[(field.annotation, *kept)] if kept else field.annotation
    count = f"exactly {most}" if least == most else f"at most {most}"
    desc = f"{field.json_schema_extra['desc']} ({count})"
    replacement = dspy.OutputField(desc=desc, min_length=least, max_length=most)
    changed: type[dspy.Signature] = signature.delete(name)
    changed = changed.insert(list(outputs).index(name), name, replacement, annotation)
    return changed


def with_history(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """Return a signature that also reads the full history: for methods that are not disentangled."""
    position = list(signature.input_fields).index("question") + 1
    field = dspy.InputField(desc="all earlier rounds: reasoning, sub-queries and results")
    changed: type[dspy.Signature] = signature.insert(position, "history", field, list[str])
    return changed
