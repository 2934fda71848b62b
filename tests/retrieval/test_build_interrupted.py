"""Builds that are interrupted, killed, out of space or not alone: nothing is lost, nothing half is left."""

import errno
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import faiss
import filelock
import numpy as np
import pytest
from maps_rag.programs.errors import UserError
from maps_rag.programs.retrieval import build, build_index, passages, verify_index


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def scratch_of(out):
    return out.with_name(f".{out.name}.building")


class Interrupted:
    """An encoder that is stopped after some batches."""

    def __init__(self, stub, batches, error=KeyboardInterrupt):
        self.stub, self.left, self.error = stub, batches, error
        self.name, self.dimension, self.prefixes = stub.name, stub.dimension, stub.prefixes

    def encode_passages(self, texts):
        if self.left == 0:
            raise self.error
        self.left -= 1
        return self.stub.encode_passages(texts)


def test_ctrl_c_leaves_nothing_at_the_place_and_the_next_build_goes_on(tmp_path, documents, stub, make_stub):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, out, Interrupted(stub, 2), window=8)
    assert not out.exists()
    again = make_stub()
    build_index(documents, out, again, window=8)
    assert sum(map(len, again.passage_batches)) == 14  # of 30, two windows of 8 were there
    build_index(documents, tmp_path / "whole", make_stub(), window=8)
    assert files_of(out) == files_of(tmp_path / "whole")


@pytest.mark.parametrize("change", ["corpus", "encoder", "prefixes", "window"])
def test_an_interrupted_build_of_something_else_is_not_continued(tmp_path, documents, stub, make_stub, change):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, out, Interrupted(stub, 2), window=8)
    again = (
        make_stub("other") if change == "encoder" else make_stub(prefixes=("q", "p")) if change == "prefixes" else stub
    )
    if change == "prefixes":
        again.prefixes = type(stub.prefixes)("q", "p")
    again.passage_batches.clear()
    if change == "corpus":
        documents = [*documents[:-1], documents[-1]._replace(text="changed")]
    build_index(documents, out, again, window=7 if change == "window" else 8)
    assert sum(map(len, again.passage_batches)) == 30
    assert verify_index(out).count == 30


KILLED = """
import importlib.util, os, signal, sys
from maps_rag.programs.retrieval import build_index
spec = importlib.util.spec_from_file_location("stub_encoder", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
class Killed(module.StubEncoder):
    def encode_passages(self, texts):
        if len(self.passage_batches) == int(sys.argv[4]):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().encode_passages(texts)
build_index(sys.argv[2], sys.argv[3], Killed(), window=8)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_a_killed_build_resumed_equals_an_uninterrupted_one(tmp_path, corpus, stub, make_stub):
    out = tmp_path / "out"
    arguments = [str(Path(__file__).with_name("stub_encoder.py")), str(corpus), str(out), "3"]
    killed = subprocess.run([sys.executable, "-c", KILLED, *arguments], check=False, timeout=200)
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    build_index(corpus, out, stub, window=8)
    assert sum(map(len, stub.passage_batches)) == 6  # of 30, three windows of 8 were there
    build_index(corpus, tmp_path / "whole", make_stub(), window=8)
    assert files_of(out) == files_of(tmp_path / "whole")


def test_a_half_written_window_is_made_again(tmp_path, documents, stub):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, out, Interrupted(stub, 2), window=8)
    (scratch_of(out) / "vectors" / "000002.partial").write_bytes(b"half")
    build_index(documents, out, stub, window=8)
    assert verify_index(out).count == 30


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["file_records", "library_versions", "faiss.write_index"])
def test_a_build_stopped_after_encoding_goes_on_without_encoding(tmp_path, documents, stub, make_stub, where):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(f"{build.__name__}.{where}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            build_index(documents, tmp_path / "out", stub, window=8)
    again = make_stub()
    build_index(documents, tmp_path / "out", again, window=8)
    assert again.passage_batches == []
    build_index(documents, tmp_path / "whole", make_stub(), window=8)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "whole")


def cut(path):
    path.write_bytes(path.read_bytes()[:-50])


@pytest.mark.parametrize(
    ("name", "damage", "encoded"),
    [
        ("vectors/000001.npy", cut, 14 + 8),
        ("vectors/000001.npy", lambda path: path.write_bytes(b""), 14 + 8),
        ("vectors/000001.npy", lambda path: path.write_bytes(b"PK\3\4 not an array"), 14 + 8),
        ("vectors/000001.npy", lambda path: np.save(path, np.zeros((8, 32), np.float32)), 14 + 8),
        ("vectors/000001.npy", lambda path: np.save(path, np.ones((7, 32), np.float32)), 14 + 8),
        ("vectors", shutil.rmtree, 30),
        ("build.json", cut, 30),
        ("index/passages/data-00000.arrow", cut, 14),
        ("index/passages", shutil.rmtree, 14),
        ("index", shutil.rmtree, 14),
    ],
)
def test_what_is_damaged_in_an_interrupted_build_is_made_again(
    tmp_path, documents, stub, make_stub, name, damage, encoded
):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, out, Interrupted(stub, 2), window=8)
    damage(scratch_of(out) / name)
    again = make_stub()
    build_index(documents, out, again, window=8)
    assert sum(map(len, again.passage_batches)) == encoded
    build_index(documents, tmp_path / "whole", make_stub(), window=8)
    assert files_of(out) == files_of(tmp_path / "whole")


def test_an_interrupted_build_outlives_a_corpus_that_is_gone_for_a_while(tmp_path, corpus, stub, make_stub):
    with pytest.raises(KeyboardInterrupt):
        build_index(corpus, tmp_path / "out", Interrupted(stub, 2), window=8)
    corpus.rename(tmp_path / "away.jsonl")
    with pytest.raises(UserError, match="there is no corpus"):
        build_index(corpus, tmp_path / "out", stub, window=8)
    (tmp_path / "away.jsonl").rename(corpus)
    again = make_stub()
    build_index(corpus, tmp_path / "out", again, window=8)
    assert sum(map(len, again.passage_batches)) == 14


def test_what_a_build_killed_after_publishing_left_is_cleared_away(tmp_path, documents, stub):
    with pytest.raises(KeyboardInterrupt):
        build_index(documents, tmp_path / "out", Interrupted(stub, 2), window=8)
    (scratch_of(tmp_path / "out") / "index").rename(tmp_path / "out")
    with pytest.raises(UserError, match="exists and is not empty"):
        build_index(documents, tmp_path / "out", stub)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def no_space(*args, **kwargs):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def faiss_no_space(*args, **kwargs):
    raise RuntimeError(f"Error in write: write error in index.faiss: 1 != 0 ({os.strerror(errno.ENOSPC)})")


@pytest.mark.parametrize(
    ("where", "write"),
    [
        ((passages, "write_passages"), no_space),
        ((build, "write_array"), no_space),
        ((faiss, "write_index"), faiss_no_space),
    ],
)
def test_a_full_disk_ends_in_one_line_and_the_next_build_goes_on(tmp_path, documents, stub, monkeypatch, where, write):
    owner, name = where
    with monkeypatch.context() as patch:
        patch.setattr(build if name == "write_passages" else owner, name, write)
        with pytest.raises(UserError, match="the disk is full while building") as caught:
            build_index(documents, tmp_path / "out", stub)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    build_index(documents, tmp_path / "out", stub)
    assert verify_index(tmp_path / "out").count == 30


def test_too_little_free_space_is_refused_before_anything_is_encoded(tmp_path, documents, stub, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(build.shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(UserError, match="the disk is too full"):
        build_index(documents, tmp_path / "out", stub)
    assert stub.passage_batches == []


def test_a_second_builder_of_the_same_index_is_refused(tmp_path, documents, stub):
    out = tmp_path / "out"
    scratch_of(out).mkdir()
    with filelock.FileLock(scratch_of(out) / "lock"), pytest.raises(UserError, match="another process is building"):
        build_index(documents, out, stub)
    build_index(documents, out, stub)
    assert verify_index(out).count == 30


def test_a_place_taken_while_building_is_left_alone(tmp_path, documents, stub):
    out = tmp_path / "out"

    def taken(phase, done, total):
        if phase == "index" and not out.exists():
            out.mkdir()
            (out / "theirs").write_text("theirs")

    with pytest.raises(UserError, match="exists and is not empty"):
        build_index(documents, out, stub, progress=taken)
    assert files_of(out) == {"theirs": b"theirs"}
