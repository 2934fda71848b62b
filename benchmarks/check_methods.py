"""Every method answers questions of the package's own set with a small local model: none may raise.

    python benchmarks/check_methods.py                        # 5 questions a method, local-small
    python benchmarks/check_methods.py --methods s3,ircot --n 2

The knobs are those of ``maps-rag ask``: of the preset "paper", with the smaller values for local models. Replies are
not taken from the cache. Bar: no exception. Answers, failures and Cover-EM are shown, not judged.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import dspy
from common import show_table
from maps_rag.cli.console import Screen
from maps_rag.cli.defaults import choose_knobs
from maps_rag.cli.demo import demo_retriever
from maps_rag.metrics import cover_em
from maps_rag.optimize.mini import load_questions
from maps_rag.programs import METHODS, create, fetch_weights, language_model

HEADER = ("method", "answered", "failures", "exceptions", "Cover-EM", "calls", "s")


def chosen_questions(n: int) -> list[dspy.Example]:
    """Return ``n`` questions of the package, spread over its kinds."""
    questions = load_questions()
    return questions[:: max(len(questions) // n, 1)][:n]


def check(name: str, retriever: Any, knobs: dict[str, Any], questions: Sequence[dspy.Example]) -> tuple[Any, ...]:
    """Ask one method every question; return its row of the table."""
    answered = failures = raised = calls = 0
    score = 0.0
    start = time.perf_counter()
    for question in questions:
        try:
            prediction = create(name, retriever, **knobs)(question=question.question)
        except Exception as error:  # counted and said; the other questions and methods are still checked
            raised += 1
            print(f"{name}, {question.id}: {type(error).__name__}: {error}", file=sys.stderr)
            continue
        answered += bool(prediction.answer)
        failures += sum(prediction.failures.values())
        calls += prediction.usage["calls"]
        score += float(cover_em(question, prediction))
    n = len(questions)
    seconds = round(time.perf_counter() - start)
    return name, f"{answered}/{n}", failures, raised, f"{score:.0f}/{n}", calls, seconds


def check_all(names: Iterable[str], retriever: Any, lm: str, questions: Sequence[dspy.Example]) -> int:
    """Check methods with the language model in effect, print the table, and return the exit code."""
    rows = []
    for name in names:
        rows.append(check(name, retriever, choose_knobs(lm, None, METHODS[name].knobs()), questions))
        print(f"{len(rows)} {name}: {rows[-1][1]} answered, {rows[-1][-1]} s", file=sys.stderr)
    show_table(f"{len(questions)} questions a method, {lm}", HEADER, rows)
    raised = sum(row[HEADER.index("exceptions")] for row in rows)
    print(f"Bar: no exception: {'met' if not raised else f'{raised} raised'}.")
    return 1 if raised else 0


def main() -> int:
    """Check the chosen methods."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lm", default="local-small", choices=("local-small", "local"))
    parser.add_argument("--n", type=int, default=5, help="questions a method")
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    names = options.methods.split(",")
    if options.n < 1:
        parser.error(f"--n must be at least 1, but got {options.n}")
    if unknown := [name for name in names if name not in METHODS]:
        parser.error(f"there is no method {', '.join(unknown)}; there are {', '.join(METHODS)}")
    retriever = demo_retriever(Screen())
    fetch_weights(options.lm)
    dspy.configure(lm=language_model(options.lm, cache=False), trace=None)
    return check_all(names, retriever, options.lm, chosen_questions(options.n))


if __name__ == "__main__":
    sys.exit(main())
