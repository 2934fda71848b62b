"""Runs a plain function, which waits for each step's result, as a generator of steps.

For programs of others that call their predictors themselves: the function runs unchanged on a thread of its own, and
the driver sees each of its steps in turn. Only one of the two sides runs at any time.
"""

from __future__ import annotations

import contextvars
import queue
import threading
from collections.abc import Callable, Generator
from typing import Any, TypeVar

T = TypeVar("T")

Perform = Callable[[Any], Any]
"""Carries out one step (an Ask, a Search ...) and returns its result or raises what it raised."""


class Abandoned(BaseException):
    """Ends the function where its run has ended: no ``except Exception`` on the way can hold it up."""


def inverted(function: Callable[[Perform], T]) -> Generator[Any, Any, T]:
    """Run ``function(perform)``, yielding every step that it performs, and return what it returned."""
    wanted: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()
    results: queue.SimpleQueue[tuple[Any, BaseException | None]] = queue.SimpleQueue()

    def perform(step: Any) -> Any:
        wanted.put(("step", step))
        result, error = results.get()
        if error is not None:
            raise error
        return result

    def work() -> None:
        try:
            wanted.put(("done", function(perform)))
        except BaseException as error:
            wanted.put(("failed", error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), daemon=True)
    thread.start()
    try:
        while True:
            kind, value = wanted.get()
            if kind == "done":
                return value  # type: ignore[no-any-return]
            if kind == "failed":
                raise value
            try:
                result = yield value
            except Exception as error:
                results.put((None, error))
            else:
                results.put((result, None))
    finally:
        results.put((None, Abandoned()))
        thread.join()
