"""Building indexes and looking at them."""

import json
import os
import shutil
from types import SimpleNamespace

import pytest
from maps_rag.cli.index_build import BuildBar
from maps_rag.programs.retrieval import Index
from maps_rag.programs.retrieval.build import WINDOW

ROW = b'{"id": "a", "title": "A", "text": "About a."}\n'


def build(path, *more):
    return "index", "build", path, "--out", path.parent / "made", *more


def test_build_makes_an_index_and_says_what_is_in_it(run, corpus, stub_encoder):
    result = run(*build(corpus, "--factory", "HNSW8", "--encoder", "some/encoder"))
    assert result.exit_code == 0
    manifest = Index(corpus.parent / "made").manifest
    assert (manifest.count, manifest.encoder, manifest.factory) == (12, "some/encoder", "HNSW8")
    assert "12 passages, encoder some/encoder, 32 dimensions, HNSW8" in result.stdout
    assert "12/12" in result.stderr
    assert "\x1b" not in result.output


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ROW + b'{"id": "b", "title"\n', "line 2: not a JSON object"),
        (ROW + b'{"id": "b", "title": "B"}\n', "line 2: the field 'text' is missing"),
        (ROW + b'{"title": "B", "text": "b"}\n', "line 2: the field 'id' is missing"),
        (ROW + ROW, "'a'"),
        (b"", "no passages"),
        (ROW + b'{"id": "b", "title": "B", "text": "caf\xe9"}\n', "line 2: not UTF-8"),
    ],
    ids=["broken line", "no text", "no id", "repeated id", "no rows", "not UTF-8"],
)
def test_build_refuses_a_bad_corpus_and_leaves_nothing(run, tmp_path, stub_encoder, content, said):
    path = tmp_path / "corpus.jsonl"
    path.write_bytes(content)
    result = run(*build(path))
    assert result.exit_code == 2
    assert result.stdout == ""
    line = result.stderr.splitlines()[-1]
    assert line.startswith("Error: ")
    assert "corpus.jsonl" in line
    assert said in line
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_build_refuses_a_corpus_that_is_not_there(run, tmp_path, stub_encoder):
    result = run(*build(tmp_path / "missing.jsonl"))
    assert result.exit_code == 2
    assert "missing.jsonl" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_build_leaves_a_directory_that_is_there_alone(run, corpus):
    taken = corpus.parent / "made"
    taken.mkdir()
    (taken / "thesis.txt").write_text("years of work")
    result = run(*build(corpus))
    assert result.exit_code == 2
    assert "exists and is not empty" in result.stderr
    assert [path.name for path in taken.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    ("factory", "said"), [("Round", "'Round' is not a FAISS factory string"), ("IVF64,Flat", "at least 64 passages")]
)
def test_build_refuses_a_factory_string_that_cannot_work(run, corpus, stub_encoder, factory, said):
    result = run(*build(corpus, "--factory", factory))
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (corpus.parent / "made").exists()


def test_build_names_an_encoder_that_cannot_be_loaded_offline(run, corpus, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    result = run(*build(corpus, "--encoder", "nobody/no-such-encoder"))
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith("Error: encoder 'nobody/no-such-encoder' cannot be loaded")
    assert list(corpus.parent.iterdir()) == [corpus]


def test_build_says_that_the_disk_is_full(run, corpus, stub_encoder, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(total=1, used=1, free=0))
    result = run(*build(corpus))
    assert result.exit_code == 2
    assert "too full" in result.stderr
    assert not (corpus.parent / "made").exists()


def test_passages_that_a_resumed_build_finds_done_do_not_count_as_speed():
    with BuildBar() as bar:
        bar("encode", WINDOW, 3 * WINDOW)
        bar("encode", 2 * WINDOW, 3 * WINDOW)
        (task,) = bar._bar.tasks
        assert task.completed == 2 * WINDOW
        assert task.speed is None
        bar("encode", 2 * WINDOW + 128, 3 * WINDOW)
        bar("encode", 2 * WINDOW + 256, 3 * WINDOW)
        assert task.completed == 2 * WINDOW + 256
        assert task.speed is not None


def test_info_shows_what_an_index_holds(run, index):
    result = run("index", "info", index)
    assert result.exit_code == 0
    shown = dict(line.strip().split(maxsplit=1) for line in result.stdout.splitlines()[1:])
    assert (shown["passages"], shown["encoder"], shown["dimension"]) == ("12", "local", "32")
    assert "'query: '" in shown["prefixes"]
    assert shown["checksums"].startswith("not read")
    assert result.stderr == ""


def flip_last_byte(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_verify_finds_a_changed_byte_that_opening_does_not(run, fails, index):
    assert "all as built" in run("index", "info", index, "--verify").stdout
    flip_last_byte(index / "index.faiss")
    assert run("index", "info", index).exit_code == 0
    assert "index.faiss has changed" in fails("index", "info", index, "--verify")


def truncate(index):
    os.truncate(index / "index.faiss", 100)


def drop_vectors(index):
    (index / "index.faiss").unlink()


def break_manifest(index):
    (index / "manifest.json").write_text("{")


def claim_more_passages(index):
    manifest = json.loads((index / "manifest.json").read_text())
    (index / "manifest.json").write_text(json.dumps(manifest | {"count": 13}))


def drop_manifest(index):
    (index / "manifest.json").unlink()


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (truncate, "index.faiss is cut off"),
        (drop_vectors, "index.faiss is missing"),
        (break_manifest, "manifest.json cannot be read"),
        (claim_more_passages, "the manifest says 13"),
        (drop_manifest, "is not an index"),
    ],
)
@pytest.mark.parametrize("command", ["info", "ask"])
def test_a_damaged_index_is_refused_with_what_to_do(fails, index, model, command, damage, said):
    damage(index)
    arguments = ("index", "info", index) if command == "info" else ("ask", "who?", "--index", index)
    opened = model()
    line = fails(*arguments)
    assert said in line
    assert "build" in line
    assert opened == []
