"""Retrieval: encoders, corpora, index directories and retrievers."""

from maps_rag.programs.retrieval.adapters import as_retriever
from maps_rag.programs.retrieval.build import BuildProgress, build_index
from maps_rag.programs.retrieval.corpora import Document, read_corpus
from maps_rag.programs.retrieval.encoders import Encoder, SentenceTransformerEncoder, load_encoder
from maps_rag.programs.retrieval.index import Index, verify_index
from maps_rag.programs.retrieval.manifest import Manifest
from maps_rag.programs.retrieval.prefixes import Prefixes
from maps_rag.programs.retrieval.retriever import E5Retriever, RetrievalModel

__all__ = [
    "BuildProgress",
    "Document",
    "E5Retriever",
    "Encoder",
    "Index",
    "Manifest",
    "Prefixes",
    "RetrievalModel",
    "SentenceTransformerEncoder",
    "as_retriever",
    "build_index",
    "load_encoder",
    "read_corpus",
    "verify_index",
]
