import asyncio
import os
import threading
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from maps_rag.programs.retrieval import batching
from maps_rag.programs.retrieval.batching import MicroBatcher


def numbered(queries, k):
    return [[f"{query}/{rank}" for rank in range(k)] for query in queries]


def in_threads(calls):
    """Run calls at once, each in a thread; return what they gave or raised."""
    results = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(at):
        barrier.wait()
        try:
            results[at] = calls[at]()
        except Exception as error:
            results[at] = error

    threads = [threading.Thread(target=run, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
        assert not thread.is_alive()
    return results


class Gate:
    """Work whose first batch waits until it is opened, so that others queue behind it."""

    def __init__(self, work=numbered):
        self.work = work
        self.entered = threading.Event()
        self.open = threading.Event()
        self.batches = []

    def __call__(self, queries, k):
        self.batches.append((list(queries), k))
        if len(self.batches) == 1:
            self.entered.set()
            assert self.open.wait(60)
        return self.work(queries, k)


def queued(batcher, count):
    """Wait until so many callers queue."""
    with batcher._arrived:
        assert batcher._arrived.wait_for(lambda: len(batcher._queue) >= count, timeout=60)


CALLS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 6)), min_size=1, max_size=12)


@settings(max_examples=40)
@given(CALLS, st.integers(1, 9))
def test_every_caller_gets_its_own_results_cut_to_its_k(calls, max_batch):
    batcher = MicroBatcher(numbered, max_batch=max_batch)
    queries = [[f"{at}.{part}" for part in range(count)] for at, (count, _) in enumerate(calls)]
    results = in_threads([lambda at=at: batcher.run(queries[at], calls[at][1]) for at in range(len(calls))])
    assert results == [numbered(queries[at], k) for at, (_, k) in enumerate(calls)]
    assert not batcher._busy
    assert not batcher._queue


@settings(max_examples=25)
@given(CALLS, CALLS)
def test_threads_and_tasks_share_one_batcher(calls, task_calls):
    batcher = MicroBatcher(numbered, max_batch=5)

    def tasks():
        async def gather():
            jobs = [batcher.arun([f"t{at}.{n}" for n in range(c)], k) for at, (c, k) in enumerate(task_calls)]
            return await asyncio.gather(*jobs)

        return asyncio.run(gather())

    threads = [
        lambda at=at, c=c, k=k: batcher.run([f"{at}.{n}" for n in range(c)], k) for at, (c, k) in enumerate(calls)
    ]
    *results, from_tasks = in_threads([*threads, tasks])
    assert results == [numbered([f"{at}.{n}" for n in range(c)], k) for at, (c, k) in enumerate(calls)]
    assert from_tasks == [numbered([f"t{at}.{n}" for n in range(c)], k) for at, (c, k) in enumerate(task_calls)]
    assert not batcher._busy


def test_callers_that_arrive_while_it_is_busy_share_one_batch():
    gate = Gate()
    batcher = MicroBatcher(gate)

    def release():
        gate.entered.wait(60)
        queued(batcher, 5)
        gate.open.set()

    def late(at):
        gate.entered.wait(60)
        return batcher.run([f"late{at}"], at + 1)

    first, *others, _ = in_threads(
        [lambda: batcher.run(["first"], 1), *[lambda at=at: late(at) for at in range(5)], release]
    )
    assert first == numbered(["first"], 1)
    assert others == [numbered([f"late{at}"], at + 1) for at in range(5)]
    assert gate.batches[0] == (["first"], 1)
    assert sorted(gate.batches[1][0]) == [f"late{at}" for at in range(5)]
    assert gate.batches[1][1] == 5  # the largest k
    assert len(gate.batches) == 2


def test_an_idle_batcher_runs_in_the_callers_thread():
    seen = []
    batcher = MicroBatcher(lambda queries, k: seen.append(threading.get_ident()) or numbered(queries, k))
    batcher.run(["a"], 1)
    assert seen == [threading.get_ident()]


def test_a_large_request_is_one_batch():
    sizes = []
    batcher = MicroBatcher(lambda queries, k: sizes.append(len(queries)) or numbered(queries, k), max_batch=4)
    batcher.run([str(at) for at in range(9)], 1)
    assert sizes == [9]


def test_an_exception_reaches_every_caller_of_its_batch_and_no_other():
    def work(queries, k):
        if "bad" in queries:
            raise OSError("the encoder broke")
        return numbered(queries, k)

    gate = Gate(work)
    batcher = MicroBatcher(gate)

    def late(query):
        gate.entered.wait(60)
        return batcher.run([query], 1)

    def release():
        gate.entered.wait(60)
        queued(batcher, 3)
        gate.open.set()

    first, *others, _ = in_threads(
        [lambda: batcher.run(["first"], 1), lambda: late("bad"), lambda: late("b"), lambda: late("c"), release]
    )
    assert first == numbered(["first"], 1)
    assert [str(error) for error in others] == ["the encoder broke"] * 3
    assert batcher.run(["after"], 1) == numbered(["after"], 1)


def test_an_interrupt_reaches_its_own_caller_only():
    tries = Counter()

    def work(queries, k):
        tries["second"] += "b" in queries
        if "b" in queries and tries["second"] == 1:
            raise KeyboardInterrupt
        return numbered(queries, k)

    gate = Gate(work)
    batcher = MicroBatcher(gate)

    def late(query):
        gate.entered.wait(60)
        try:
            return batcher.run([query], 1)
        except KeyboardInterrupt:
            return "interrupted"

    def release():
        gate.entered.wait(60)
        queued(batcher, 3)
        gate.open.set()

    _, *others, _ = in_threads([lambda: batcher.run(["a"], 1), *[lambda q=q: late(q) for q in "bcd"], release])
    assert others.count("interrupted") == 1
    assert sorted(other[0][0] for other in others if other != "interrupted") == sorted(
        f"{query}/0" for query, other in zip("bcd", others, strict=True) if other != "interrupted"
    )
    assert batcher.run(["after"], 1) == numbered(["after"], 1)


def test_tasks_of_one_loop_are_joined_and_do_not_block_it():
    gate = Gate()
    batcher = MicroBatcher(gate)

    async def main():
        first = asyncio.create_task(batcher.arun(["first"], 1))
        while not gate.entered.is_set():
            await asyncio.sleep(0)
        others = [asyncio.create_task(batcher.arun([str(at)], 1)) for at in range(40)]
        await asyncio.sleep(0)  # the loop runs while the first batch does
        queued(batcher, 40)
        gate.open.set()
        return await asyncio.gather(first, *others)

    results = asyncio.run(main())
    assert results == [numbered([query], 1) for query in ["first", *map(str, range(40))]]
    assert [len(queries) for queries, _ in gate.batches] == [1, 40]


def test_a_cancelled_task_is_not_searched_for_and_leaves_the_others_alone():
    gate = Gate()
    batcher = MicroBatcher(gate)

    async def main():
        first = asyncio.create_task(batcher.arun(["first"], 1))
        while not gate.entered.is_set():
            await asyncio.sleep(0)
        gone = asyncio.create_task(batcher.arun(["gone"], 1))
        stays = asyncio.create_task(batcher.arun(["stays"], 1))
        await asyncio.sleep(0)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        gate.open.set()
        return await asyncio.gather(first, stays)

    assert asyncio.run(main()) == [numbered(["first"], 1), numbered(["stays"], 1)]
    assert [queries for queries, _ in gate.batches] == [["first"], ["stays"]]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_process_forked_from_a_busy_one_starts_idle():
    gate = Gate()
    batcher = MicroBatcher(gate)
    thread = threading.Thread(target=lambda: batcher.run(["first"], 1))
    thread.start()
    assert gate.entered.wait(60)
    child = os.fork()
    if child == 0:
        ok = batcher.run(["child"], 1) == numbered(["child"], 1)
        os._exit(0 if ok else 1)
    gate.open.set()
    thread.join(60)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_callers_that_come_back_are_waited_for_and_a_lone_one_is_not(monkeypatch):
    waits = []
    monkeypatch.setattr(batching, "_RETURN_SECONDS", 60.0)
    monkeypatch.setattr(batching, "_RETURN_SHARE", 1e9)
    batches = []
    batcher = MicroBatcher(lambda queries, k: batches.append(len(queries)) or numbered(queries, k))
    wait = batcher._arrived.wait
    monkeypatch.setattr(batcher._arrived, "wait", lambda timeout: waits.append(timeout) or wait(timeout))
    for _ in range(3):
        batcher.run(["alone"], 1)
    assert waits == []

    batcher._expected = 4  # as after a batch of four
    batcher._deadline = float("inf")
    monkeypatch.setattr(batcher._arrived, "wait", lambda timeout: wait(60))
    batches.clear()
    assert in_threads([lambda at=at: batcher.run([str(at)], 1) for at in range(4)]) == [
        numbered([str(at)], 1) for at in range(4)
    ]
    assert batches == [4]
