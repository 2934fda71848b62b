"""A run that is killed or interrupted, and gone on with."""

from __future__ import annotations

import multiprocessing
import random
import signal
import threading

import pytest

from tests.optimize.runs import Replies, key, lines, methods, questions, results, run
from tests.scripted import scripted_lm

KILLS = 20
QUESTIONS = 30
PATIENCE = 120  # seconds until a process that hangs is given up


def asked():
    """Return what the killed run and the undisturbed one are about: 60 answers, 180 requests."""
    both = methods("maps", directions=2) | methods("direct")
    return {"methods": both, "questions": questions(QUESTIONS), "threads": 3}


def child(out, said):
    """Run in a process of its own, and say before each request that it is about to be made."""
    lock = threading.Lock()

    def reply(system, user):
        with lock:
            said.send_bytes(b".")
        return Replies()(system, user)

    run(out, lm=scripted_lm(reply), **asked())
    said.close()


@pytest.fixture(scope="module")
def processes():
    """Start processes from one that has everything imported."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["maps_rag.optimize.runner", "maps_rag.programs"])
    return context


def killed_after(requests, out, processes):
    """Run until so many requests were made, and kill; return whether the run ended before."""
    listening, said = processes.Pipe(duplex=False)
    process = processes.Process(target=child, args=(out, said))
    process.start()
    said.close()
    try:
        for _ in range(requests):
            if not listening.poll(PATIENCE):
                pytest.fail("the process hangs")
            listening.recv_bytes()
    except EOFError:
        return True
    finally:
        process.kill()
        process.join()
        listening.close()
    return False


def test_a_run_killed_20_times_and_gone_on_with_equals_an_undisturbed_one(tmp_path, processes):
    drawn = random.Random(0)
    out = tmp_path / "killed"
    kept = 0
    for _ in range(KILLS):
        assert not killed_after(drawn.randint(1, 20), out, processes)
        path = out / "journal.jsonl"
        whole = path.read_bytes().count(b"\n") if path.exists() else 0
        assert whole >= kept
        kept = whole
    assert 0 < kept < 2 * QUESTIONS
    run(out, lm=scripted_lm(Replies()), **asked())
    run(tmp_path / "undisturbed", lm=scripted_lm(Replies()), **asked())

    found = [key(line) for line in lines(out)]
    assert len(found) == len(set(found)) == 2 * QUESTIONS
    assert results(out) == results(tmp_path / "undisturbed")
    # A kill between the two writes repeats a question: its trajectory is there twice, and never missing.
    assert {key(line) for line in lines(out, "trajectories")} == set(found)


@pytest.fixture
def ctrl_c():
    """Hear Ctrl-C, which a shell that starts the tests in the background has ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield lambda: signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_run_keeps_what_is_done_and_asks_nothing_more(tmp_path, ctrl_c):
    """Ctrl-C while three questions are under way: nothing is waited for, and what ends later is not written."""
    lock, hold, requests = threading.Lock(), threading.Event(), []

    def reply(system, user):
        with lock:
            requests.append(user)
            number = len(requests)
        if number == 32:  # all three wait for a reply now
            ctrl_c()
        if number >= 30:
            assert hold.wait(PATIENCE)
        return Replies()(system, user)

    lm = scripted_lm(reply)
    lm.engine._lock = Unlocked()  # requests are to wait side by side
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", lm=lm, **asked())
    before = lines(tmp_path / "run")
    under_way = [thread for thread in threading.enumerate() if thread.name.startswith("question-")]
    assert len(under_way) == 3
    made = len(requests)
    hold.set()
    for thread in under_way:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert len(requests) == made
    assert lines(tmp_path / "run") == before
    assert before

    assert run(tmp_path / "run", lm=scripted_lm(Replies()), **asked()).finished == 2 * QUESTIONS
    found = [key(line) for line in lines(tmp_path / "run")]
    assert len(found) == len(set(found)) == 2 * QUESTIONS


class Unlocked:
    """A lock that lets everyone in."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None
