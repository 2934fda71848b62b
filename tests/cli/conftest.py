"""Commands run in this process, over small indexes of a stub encoder and a scripted language model."""

import json
import logging
import os
import warnings

import pytest
from maps_rag.cli.app import app
from maps_rag.cli.quiet import TALKATIVE
from maps_rag.programs.retrieval import build_index
from typer.testing import CliRunner

from tests.retrieval.stub_encoder import StubEncoder
from tests.scripted import Roles, scripted_lm

PASSAGES = [
    {"id": f"p{number}", "title": f"Title {number}", "text": f"Sentence one of {number}. Sentence two of {number}."}
    for number in range(12)
]


@pytest.fixture(autouse=True)
def untouched_process():
    """Commands set up their process; other tests run in the same one."""
    names = ("", "maps_rag", *TALKATIVE)
    levels = {name: logging.getLogger(name).level for name in names}
    handlers = list(logging.getLogger().handlers)
    environment = dict(os.environ)
    with warnings.catch_warnings():
        yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    logging.getLogger().handlers[:] = handlers
    for name in set(os.environ) - set(environment):
        del os.environ[name]


@pytest.fixture
def run():
    """Run a command and return its result, with standard output and error apart."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def fails(run):
    """Run a command that must fail with one line on standard error, and return the line."""

    def run_and_check(*arguments, code=2):
        result = run(*arguments)
        assert result.exit_code == code, result.output
        assert result.stdout == ""
        lines = result.stderr.splitlines()
        assert len(lines) == 1, lines
        return lines[0]

    return run_and_check


@pytest.fixture
def stub_encoder(monkeypatch):
    """Every encoder that is loaded by name is a stub of that name."""
    for module in ("build", "retriever"):
        monkeypatch.setattr(f"maps_rag.programs.retrieval.{module}.load_encoder", StubEncoder)
    monkeypatch.setattr("maps_rag.programs.retrieval.local_e5.local_e5_directory", lambda progress: None)


@pytest.fixture
def corpus(tmp_path):
    """Twelve passages as JSON lines."""
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in PASSAGES))
    return path


@pytest.fixture
def index(tmp_path, corpus, stub_encoder):
    """An index over the twelve passages."""
    build_index(corpus, tmp_path / "index", StubEncoder("local"))
    return tmp_path / "index"


@pytest.fixture
def model(monkeypatch):
    """Put a scripted model in the place of every model that a command opens; returns what it was opened with."""

    def install(reply=None):
        opened = []

        def language_model(name="local", api_base=None, **options):
            opened.append((name, api_base, options))
            return scripted_lm(reply or Roles(rounds=1))

        monkeypatch.setattr("maps_rag.programs.language_model", language_model)
        monkeypatch.setattr("maps_rag.programs.fetch_weights", lambda name: None)
        return opened

    return install
