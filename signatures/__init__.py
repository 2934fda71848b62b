"""The prompts: one Signature class per role of a method."""

from maps_rag.signatures.direct import AnswerFromMemory
from maps_rag.signatures.ircot import ThinkNextSentence
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
from maps_rag.signatures.rag_fusion import RewriteQuestion
from maps_rag.signatures.s3 import SelectAndSearchOn
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

__all__ = [
    "AnswerFromMemory",
    "AnswerFromPassages",
    "AnswerQuestion",
    "DistilFindings",
    "DistilKnowledge",
    "ProposeDirections",
    "ProposeSubQueries",
    "RewriteQuestion",
    "SelectAndSearchOn",
    "SelectFindings",
    "SelectKnowledge",
    "ThinkNextSentence",
    "WriteSubQueries",
]
