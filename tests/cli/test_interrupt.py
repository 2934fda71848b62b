"""Ctrl-C while a command runs, in a process of its own."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from maps_rag.programs.retrieval import Index

from tests.models.endpoint import Endpoint, Reply

ROOT = Path(__file__).parents[2]
PATIENCE = 120  # seconds until a hanging process is given up


@pytest.fixture
def start():
    """Start a command over stub encoders; it is killed at the end if it still runs."""
    started = []

    def run(*arguments, **environment):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cli.stubbed", *map(str, arguments)],
            cwd=ROOT,
            env=os.environ | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def test_an_interrupted_build_leaves_no_index_and_goes_on_when_asked_again(start, corpus, tmp_path):
    command = ("index", "build", corpus, "--out", tmp_path / "made")
    process = start(*command, STUB_BLOCKS="1")
    assert process.stdout.readline() == "encoding\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr.splitlines()[-1] == "Stopped: the same command goes on from where this one was."
    assert "Traceback" not in stderr
    assert not (tmp_path / "made").exists()

    again = start(*command)
    again.communicate(timeout=PATIENCE)
    assert again.returncode == 0
    assert len(Index(tmp_path / "made")) == 12
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus.jsonl", "made"]


def test_an_interrupted_question_ends_at_once_with_one_line(start, index):
    arrived = threading.Event()

    def never(body):
        arrived.set()
        return Reply(hang=True)

    with Endpoint(never) as endpoint:
        process = start("ask", "who?", "--index", index, "--lm", "m", "--api-base", endpoint.url, "--json")
        assert arrived.wait(PATIENCE)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert (stdout, stderr) == ("", "Stopped.\n")
