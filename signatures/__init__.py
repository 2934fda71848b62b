"""The prompts: one Signature class per role of a method."""

from maps_rag.signatures.maps import (
    AnswerQuestion,
    DistilFindings,
    DistilKnowledge,
    ProposeDirections,
    ProposeSubQueries,
    SelectFindings,
    SelectKnowledge,
    WriteSubQueries,
)
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

__all__ = [
    "AnswerFromPassages",
    "AnswerQuestion",
    "DistilFindings",
    "DistilKnowledge",
    "ProposeDirections",
    "ProposeSubQueries",
    "SelectFindings",
    "SelectKnowledge",
    "WriteSubQueries",
]
