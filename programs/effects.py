"""Effects: what a driven generator waits for, and the two loops that carry them out.

The driver's logic is written once, as generators that yield effects; ``run`` carries them out with plain calls,
``arun`` with ``await``.
"""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import dspy
from maps_rag.programs.types import Passage, Retriever

T = TypeVar("T")


class Effect(Protocol):
    """Something that takes time, in a blocking and an awaitable form."""

    def run(self) -> Any: ...

    async def arun(self) -> Any: ...


Effects = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for some seconds, before a request is tried again."""

    seconds: float

    def run(self) -> None:
        time.sleep(self.seconds)

    async def arun(self) -> None:
        await asyncio.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class Retrieve:
    """Search a batch of queries."""

    retriever: Retriever
    queries: Sequence[str]
    k: int

    def run(self) -> list[list[Passage]]:
        return self.retriever.search(self.queries, self.k)

    async def arun(self) -> list[list[Passage]]:
        if (search := getattr(self.retriever, "asearch", None)) is not None:
            found: list[list[Passage]] = await search(self.queries, self.k)
            return found
        return await asyncio.to_thread(self.retriever.search, self.queries, self.k)


@dataclass(frozen=True, slots=True)
class Fork:
    """Carry out several generators side by side; results stand in their order, the first error is raised.

    Threads get a copy of the caller's context each, so LM, trace and usage tracking reach them. Under
    ``dspy.streamify``, whose stream belongs to one thread, they run one after the other.
    """

    branches: Sequence[Effects[Any]]

    def run(self) -> list[Any]:
        if len(self.branches) == 1 or dspy.settings.send_stream is not None:
            return [run(branch) for branch in self.branches]
        with ThreadPoolExecutor(len(self.branches)) as pool:
            futures = [pool.submit(contextvars.copy_context().run, run, branch) for branch in self.branches]
            return [future.result() for future in futures]

    async def arun(self) -> list[Any]:
        if dspy.settings.send_stream is not None:
            return [await arun(branch) for branch in self.branches]
        tasks = [asyncio.ensure_future(arun(branch)) for branch in self.branches]
        try:
            return list(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:  # gather leaves the others running
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise


def run(effects: Effects[T]) -> T:
    """Carry out a generator's effects with plain calls and return its value."""
    try:
        effect = next(effects)
        while True:
            effect = _resume(effects, effect.run)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


async def arun(effects: Effects[T]) -> T:
    """Carry out a generator's effects with ``await`` and return its value."""
    try:
        effect = next(effects)
        while True:
            try:
                result = await effect.arun()
            except Exception as error:
                effect = effects.throw(error)
            else:
                effect = effects.send(result)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _resume(effects: Effects[Any], action: Callable[[], Any]) -> Effect:
    try:
        result = action()
    except Exception as error:
        return effects.throw(error)
    return effects.send(result)
