"""The prompts: one Signature class per role of a method."""

from maps_rag.signatures.direct import AnswerFromMemory
from maps_rag.signatures.history import AnswerFromHistory
from maps_rag.signatures.ircot import ThinkNextSentence
from maps_rag.signatures.maps import (
    AnswerQuestion,
    DistilKnowledge,
    ProposeDirections,
    ProposeSubQueries,
    SelectKnowledge,
    WriteSubQueries,
)
from maps_rag.signatures.multi_search import MergeAndSearch
from maps_rag.signatures.parallel_search import ReasonAndDecompose
from maps_rag.signatures.rag_fusion import RewriteQuestion
from maps_rag.signatures.react import AnswerBySearching
from maps_rag.signatures.s3 import SelectAndSearchOn
from maps_rag.signatures.search_o1 import ReasonAndSearch, ReasonInDocuments
from maps_rag.signatures.self_rag import AnswerAndCritique, DecideRetrieval
from maps_rag.signatures.vanilla_rag import AnswerFromPassages

__all__ = [
    "AnswerAndCritique",
    "AnswerBySearching",
    "AnswerFromHistory",
    "AnswerFromMemory",
    "AnswerFromPassages",
    "AnswerQuestion",
    "DecideRetrieval",
    "DistilKnowledge",
    "MergeAndSearch",
    "ProposeDirections",
    "ProposeSubQueries",
    "ReasonAndDecompose",
    "ReasonAndSearch",
    "ReasonInDocuments",
    "RewriteQuestion",
    "SelectAndSearchOn",
    "SelectKnowledge",
    "ThinkNextSentence",
    "WriteSubQueries",
]
