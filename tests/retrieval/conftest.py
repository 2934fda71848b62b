import importlib.util
import json
import sys
from pathlib import Path

import pytest
from maps_rag.programs.retrieval import Document, E5Retriever, build_index

_spec = importlib.util.spec_from_file_location("stub_encoder", Path(__file__).with_name("stub_encoder.py"))
_module = importlib.util.module_from_spec(_spec)
sys.modules["stub_encoder"] = _module  # so that a retriever with a stub can be pickled
_spec.loader.exec_module(_module)


@pytest.fixture
def stub():
    """A new stub encoder."""
    return _module.StubEncoder()


@pytest.fixture
def make_stub():
    """The class of the stub encoder."""
    return _module.StubEncoder


def some_documents(count):
    return [Document(f"d{at}", f"Title {at}", f"text {at} " + "word " * (at * 7 % 23)) for at in range(count)]


@pytest.fixture
def documents():
    """Thirty passages of different lengths."""
    return some_documents(30)


@pytest.fixture
def corpus(tmp_path, documents):
    """The thirty passages as a JSON lines file."""
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(document._asdict()) + "\n" for document in documents))
    return path


@pytest.fixture
def index(tmp_path, documents, make_stub):
    """An index over the thirty passages."""
    build_index(documents, tmp_path / "index", make_stub())
    return tmp_path / "index"


@pytest.fixture
def retriever(index, stub):
    """A retriever over the thirty passages. The stub's query vector of a passage's contents is the passage's own."""
    return E5Retriever(index, stub, k=3)
