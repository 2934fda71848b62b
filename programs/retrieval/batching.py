"""Many callers, one batch at a time."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# After a batch of several callers the next one waits this share of that batch's time, and at most so many seconds, for
# them to come back. Without it 16 callers settle into batches of 1 and 15. A lone caller never waits.
_RETURN_SHARE = 0.1
_RETURN_SECONDS = 0.003


class _Job(Generic[T]):
    """The queries of one caller and what became of them."""

    __slots__ = ("error", "k", "leads", "queries", "result", "wake")

    def __init__(self, queries: Sequence[str], k: int) -> None:
        self.queries = queries
        self.k = k
        self.leads = False
        self.result: list[list[T]] | None = None
        self.error: BaseException | None = None
        self.wake: Callable[[], None] = _nothing

    def outcome(self) -> list[list[T]]:
        if self.error is not None:
            raise self.error
        assert self.result is not None
        return self.result


def _nothing() -> None:
    pass


class MicroBatcher(Generic[T]):
    """Runs ``work(queries, k)`` for many callers, joining those that arrive while it is busy into one call.

    - A caller that finds it idle runs its own queries at once, in its own thread.
    - Callers that arrive meanwhile queue; when the batch ends, the first of them runs all that queued.
    - ``work`` gets the largest k of a batch; each caller receives its own k, per query in order, best first.
    - An exception of ``work`` reaches every caller of that batch. An interrupt of the thread that runs it reaches only
      its own caller; the others' queries are run again.
    - A process forked from a busy one starts with an idle batcher.
    """

    def __init__(self, work: Callable[[list[str], int], list[list[T]]], *, max_batch: int = 64) -> None:
        self._work = work
        self._max_batch = max_batch
        self._reset()
        _batchers.add(self)

    def _reset(self) -> None:
        self._arrived = threading.Condition(threading.Lock())
        self._queue: deque[_Job[T]] = deque()
        self._busy = False
        self._expected = 0
        self._deadline = 0.0
        self._executor: ThreadPoolExecutor | None = None

    def run(self, queries: Sequence[str], k: int) -> list[list[T]]:
        """Return ``work``'s results for these queries."""
        job: _Job[T] = _Job(queries, k)
        woken = threading.Event()
        job.wake = woken.set
        leads = self._enter(job)
        if not leads:
            try:
                woken.wait()
            except BaseException:
                self._leave(job)
                raise
        if job.leads:
            self._lead(job)
        return job.outcome()

    async def arun(self, queries: Sequence[str], k: int) -> list[list[T]]:
        """Return ``work``'s results for these queries without blocking the event loop."""
        job: _Job[T] = _Job(queries, k)
        loop = asyncio.get_running_loop()
        finished = loop.create_future()

        def lead() -> None:
            try:
                self._lead(job)
            finally:
                settle()

        def settle() -> None:
            if not loop.is_closed():  # the caller may be gone by now
                loop.call_soon_threadsafe(_finish, finished)

        def wake() -> None:
            if job.leads:
                self._thread().submit(lead)
            else:
                settle()

        job.wake = wake
        if self._enter(job):
            wake()
        try:
            await finished
        except BaseException:
            self._drop(job)
            raise
        return job.outcome()

    def _thread(self) -> ThreadPoolExecutor:
        # The loop's own pool could be full of callers that wait for this very job.
        with self._arrived:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(1, thread_name_prefix="maps-rag-retrieval")
            return self._executor

    def _enter(self, job: _Job[T]) -> bool:
        """Queue a job and return whether it leads."""
        with self._arrived:
            self._queue.append(job)
            if self._busy:
                self._arrived.notify()
                return False
            self._busy = job.leads = True
            return True

    def _drop(self, job: _Job[T]) -> None:
        """Take a job that nobody waits for out of the queue, unless it is about to lead."""
        with self._arrived:
            if not job.leads and job in self._queue:
                self._queue.remove(job)

    def _leave(self, job: _Job[T]) -> None:
        """Withdraw a job whose thread was interrupted while it waited."""
        with self._arrived:
            if job in self._queue:
                self._queue.remove(job)
            follower = self._hand_over() if job.leads else None
        if follower is not None:
            follower.wake()

    def _lead(self, own: _Job[T]) -> None:
        """Run one batch, with ``own`` in it, and hand over to the next in the queue."""
        batch: list[_Job[T]] = []
        started = time.perf_counter()
        try:
            with self._arrived:
                self._await_returning()
                batch = self._take()
            started = time.perf_counter()
            queries = [query for job in batch for query in job.queries]
            results = iter(self._work(queries, max(job.k for job in batch)))
            for job in batch:
                job.result = [next(results)[: job.k] for _ in job.queries]
        except Exception as error:
            for job in batch:
                job.error = error
        except BaseException as error:
            own.error = error
            batch = [job for job in batch if job is not own]
            with self._arrived:
                self._queue.extendleft(reversed(batch))
            batch = []
        finally:
            with self._arrived:
                if own in self._queue:  # interrupted before the batch was taken
                    self._queue.remove(own)
                self._expected = len(batch) + len(self._queue)
                ended = time.perf_counter()
                self._deadline = ended + min(_RETURN_SECONDS, _RETURN_SHARE * (ended - started))
                follower = self._hand_over()
            if follower is not None:
                follower.wake()
            for job in batch:
                if job is not own:
                    job.leads = False
                    job.wake()

    def _await_returning(self) -> None:
        while len(self._queue) < self._expected and (left := self._deadline - time.perf_counter()) > 0:
            self._arrived.wait(left)

    def _take(self) -> list[_Job[T]]:
        batch = [self._queue.popleft()]
        size = len(batch[0].queries)
        while self._queue and size + len(self._queue[0].queries) <= self._max_batch:
            batch.append(self._queue.popleft())
            size += len(batch[-1].queries)
        return batch

    def _hand_over(self) -> _Job[T] | None:
        """Make the first job in the queue the leader and return it; with none, become idle."""
        if not self._queue:
            self._busy = False
            return None
        self._queue[0].leads = True
        return self._queue[0]


def _finish(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)


_batchers: weakref.WeakSet[MicroBatcher[Any]] = weakref.WeakSet()


def _reset_all() -> None:
    for batcher in list(_batchers):
        batcher._reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_all)
