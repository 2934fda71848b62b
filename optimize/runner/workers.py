"""Threads that take work one piece at a time, each piece in a copy of the caller's context."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")


def work(pieces: Iterator[T], do: Callable[[T], None], threads: int, stop: threading.Event) -> None:
    """Do every piece of work, ``threads`` at a time, and return when all are done or ``stop`` is set.

    A piece is taken from ``pieces`` only when a thread is free for it. DSPy's settings live in the context, which a
    thread does not inherit: each piece gets a copy of the caller's. What ``do`` raises ends the work and is raised
    here. Ctrl-C sets ``stop`` and does not wait for what is under way: the threads are daemons.
    """
    context = contextvars.copy_context()
    taking = threading.Lock()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            while not stop.is_set():
                with taking:
                    piece = next(pieces, None)
                if piece is None:
                    return
                context.copy().run(do, piece)
        except BaseException as error:
            raised.append(error)
            stop.set()

    workers = [threading.Thread(target=run, name=f"question-{number}", daemon=True) for number in range(threads)]
    try:
        for worker in workers:
            worker.start()
        for worker in workers:
            while worker.is_alive():
                worker.join(1.0)  # without a limit, Ctrl-C would not be heard on Windows
    except BaseException:
        stop.set()
        raise
    if raised:
        raise raised[0]
