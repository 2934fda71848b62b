"""Programs: the methods, the retriever and the language models they run on."""

from maps_rag.programs.base import SearchProgram
from maps_rag.programs.direct import Direct
from maps_rag.programs.errors import UserError
from maps_rag.programs.ircot import IRCoT
from maps_rag.programs.maps import MAPS
from maps_rag.programs.methods import METHODS, Method, create
from maps_rag.programs.models import fetch_weights, language_model
from maps_rag.programs.multi_search import MultiSearch
from maps_rag.programs.parallel_search import ParallelSearch
from maps_rag.programs.rag_fusion import RAGFusion
from maps_rag.programs.react import ReAct
from maps_rag.programs.retrieval import E5Retriever, as_retriever, build_index
from maps_rag.programs.s3 import S3
from maps_rag.programs.search_o1 import SearchO1
from maps_rag.programs.self_rag import SelfRAG
from maps_rag.programs.steps import Ask, EndRound, Outcome, OutOfBudget, Search
from maps_rag.programs.trajectory import Round, Trajectory
from maps_rag.programs.types import Passage, Retriever
from maps_rag.programs.vanilla_rag import VanillaRAG

__all__ = [
    "MAPS",
    "METHODS",
    "S3",
    "Ask",
    "Direct",
    "E5Retriever",
    "EndRound",
    "IRCoT",
    "Method",
    "MultiSearch",
    "OutOfBudget",
    "Outcome",
    "ParallelSearch",
    "Passage",
    "RAGFusion",
    "ReAct",
    "Retriever",
    "Round",
    "Search",
    "SearchO1",
    "SearchProgram",
    "SelfRAG",
    "Trajectory",
    "UserError",
    "VanillaRAG",
    "as_retriever",
    "build_index",
    "create",
    "fetch_weights",
    "language_model",
]
