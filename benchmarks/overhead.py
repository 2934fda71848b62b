"""What the driver costs on top of DSPy: MAPS against the same calls made by hand.

A scripted model and a retriever that take no time; no reply needs a parse fallback. Two measurements:

- one question after the other, no latency: MAPS against its own sequence of calls to bare ``dspy.Predict`` with equal
  inputs, in interleaved rounds, in processor time; the median of the rounds' ratios may be at most 1.15;
- 64 questions on 32 threads, 200 ms a reply: wall time against the same schedule of bare calls, at most 1.15.

Run it from the root of the checkout: ``python benchmarks/overhead.py``. It exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
from maps_rag.programs import MAPS, lm_call

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import show_table
from tests.scripted import Roles, StubRetriever, chat, role_of

BAR = 1.15
ROUNDS_PER_QUESTION = 3


class Engine:
    """Replies out of a table by prompt, so that a reply costs a look-up; sleeps for the latency first."""

    def __init__(self, latency: float = 0.0) -> None:
        self.latency = latency
        self.usual = Roles(rounds=ROUNDS_PER_QUESTION, directions=3)
        self.replies: dict[tuple[str, str], Any] = {}

    def complete(self, request: dspy.lm15.Request) -> dspy.lm15.Response:
        key = (request.system or "", request.messages[-1].text or "")
        if (response := self.replies.get(key)) is None:
            assert role_of(key[0])
            response = self.replies[key] = dspy.lm15.Response(
                id=None,
                model=request.model,
                message=dspy.lm15.Message.assistant(chat(self.usual(*key))),
                finish_reason="stop",
                usage=dspy.lm15.Usage(100, 20, 120),
            )
        if self.latency:
            time.sleep(self.latency)
        return response


class Retriever(StubRetriever):
    """Gives the same passages again without making them again."""

    def __init__(self) -> None:
        super().__init__("A passage of some forty words about {query}. " * 5)
        self.found: dict[tuple[Any, ...], Any] = {}

    def search(self, queries: Any, k: int) -> Any:
        key = (*queries, k)
        if key not in self.found:
            self.found[key] = super().search(queries, k)
        return self.found[key]


Calls = list[tuple[dspy.Predict, dict[str, Any]]]


def record(program: MAPS, question: str) -> Calls:
    """Return the predictor calls of one question with the arguments that they were given."""
    calls: Calls = []
    made = lm_call.LMCall.run

    def run(call: lm_call.LMCall) -> Any:
        calls.append((call.predictor, dict(call.arguments)))
        return made(call)

    lm_call.LMCall.run = run  # type: ignore[method-assign]
    try:
        program(question=question)
    finally:
        lm_call.LMCall.run = made  # type: ignore[method-assign]
    return calls


def bare(calls: Calls) -> None:
    for predictor, arguments in calls:
        predictor(**arguments)


def seconds(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    work()
    return clock() - start


def one_after_the_other(rounds: int, questions: int) -> tuple[float, float, float]:
    """Return the median milliseconds of a bare call and of a call of MAPS, and the median ratio."""
    program = MAPS(Retriever(), directions=3, max_rounds=ROUNDS_PER_QUESTION + 1)
    asked = [f"What is asked in question {i}?" for i in range(questions)]
    with dspy.context(lm=dspy.LM("scripted/model", engine=Engine(), cache=False), trace=None):
        recorded = [record(program, question) for question in asked]
        for calls in recorded:
            bare(calls)
        count = sum(map(len, recorded))
        pairs = []
        gc.disable()
        for i in range(rounds):
            works = [
                ("bare", lambda: [bare(calls) for calls in recorded]),
                ("maps", lambda: [program(question=question) for question in asked]),
            ]
            # One thread that never waits: processor time is its time, whatever else runs on the machine.
            times = {name: seconds(work, time.process_time) for name, work in (works if i % 2 else works[::-1])}
            pairs.append((times["bare"], times["maps"]))
            gc.collect()
        gc.enable()
    return (
        1000 * statistics.median(a for a, _ in pairs) / count,
        1000 * statistics.median(b for _, b in pairs) / count,
        statistics.median(b / a for a, b in pairs),
    )


def many_threads(rounds: int, questions: int, threads: int, latency: float) -> tuple[float, float, float]:
    """Return the median wall seconds of the bare schedule and of MAPS, and the median ratio."""
    program = MAPS(Retriever(), directions=3, max_rounds=ROUNDS_PER_QUESTION + 1)
    asked = [f"What is asked in question {i}?" for i in range(questions)]
    engine = Engine()
    lm = dspy.LM("scripted/model", engine=engine, cache=False)
    pairs = []
    with dspy.context(lm=lm, trace=None):
        recorded = [record(program, question) for question in asked]
        engine.latency = latency

    def threaded(work: Callable[[Any], Any], items: list[Any]) -> None:
        def one(item: Any) -> None:
            with dspy.context(lm=lm, trace=None):
                work(item)

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, items))

    for i in range(rounds):
        works = [
            ("bare", lambda: threaded(bare, recorded)),
            ("maps", lambda: threaded(lambda question: program(question=question), asked)),
        ]
        times = {name: seconds(work) for name, work in (works if i % 2 else works[::-1])}
        pairs.append((times["bare"], times["maps"]))
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(b / a for a, b in pairs),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds of the first measurement")
    parser.add_argument("--questions", type=int, default=20, help="questions a round of the first measurement")
    options = parser.parse_args()
    alone = one_after_the_other(options.rounds, options.questions)
    threads = many_threads(rounds=3, questions=64, threads=32, latency=0.2)
    rows = [
        (
            name,
            f"{one:.3f} {unit}",
            f"{other:.3f} {unit}",
            f"{ratio:.3f}",
            f"<= {BAR}",
            "met" if ratio <= BAR else "MISSED",
        )
        for name, unit, (one, other, ratio) in (
            ("a call, no latency", "ms", alone),
            ("64 questions, 32 threads, 200 ms a reply", "s", threads),
        )
    ]
    show_table("What the driver costs", ("measurement", "bare dspy.Predict", "MAPS", "ratio", "bar", ""), rows)
    return 0 if max(alone[2], threads[2]) <= BAR else 1


if __name__ == "__main__":
    sys.exit(main())
