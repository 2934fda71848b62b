"""Queries per second of 16 concurrent callers, and what a lone caller pays.

Side by side in one run, over one index and the same vectors:
  (a) E5Retriever, 16 threads, one query each at a time
  (b) encode + search per caller, 16 threads
  (c) dspy.retrievers.Embeddings, 16 threads
  (d) the limit: batches of 16 in arrival order, one thread, nobody waits

Rounds are interleaved and medians of rounds are compared: (a) must reach 0.80 of (d) and 1.5 times (b), and a lone
caller may pay at most 1 ms over encode + search. Exits with 1 if a bar is missed.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import dspy
import faiss
import numpy as np
from common import data_dir, read_jsonl, show_table
from maps_rag.optimize.mini import load_questions, passages_path
from maps_rag.programs.retrieval import Document, E5Retriever, build_index, read_corpus

CALLERS = 16
K = 5


def corpus_and_questions(most: int) -> tuple[list[Document], list[str]]:
    """Return at most so many passages and real questions over them."""
    folder = data_dir()
    if folder is None:
        return list(itertools.islice(read_corpus(passages_path()), most)), [row.question for row in load_questions()]
    documents = list(itertools.islice(read_corpus(folder / "corpus_multihop.jsonl"), most))
    names = ("musique_dev", "hotpotqa_dev", "2wikimultihopqa_dev")
    return documents, [row["question"] for name in names for row in read_jsonl(folder / f"{name}.jsonl")]


def with_callers(find: Callable[[str], object], queries: Sequence[str]) -> float:
    """Return the queries per second of 16 threads that take the queries in turn."""
    left: Iterator[str] = iter(queries)
    taking = threading.Lock()
    start = threading.Barrier(CALLERS + 1)

    def caller() -> None:
        start.wait()
        while True:
            with taking:
                query = next(left, None)
            if query is None:
                return
            find(query)

    threads = [threading.Thread(target=caller) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return len(queries) / (time.perf_counter() - began)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, default=1000, help="at most 4000")
    parser.add_argument("--queries", type=int, default=160, help="per round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=200, help="calls of a lone caller")
    parser.add_argument("--index", type=Path, help="an index to use instead of building one")
    options = parser.parse_args()
    documents, questions = corpus_and_questions(min(options.passages, 4000))
    with tempfile.TemporaryDirectory() as folder:
        place = options.index or Path(folder) / "index"
        if options.index is None:
            print(f"Building an index of {len(documents)} passages ...", flush=True)
            build_index(documents, place)
        return measure(E5Retriever(place, k=K), questions, options)


def measure(retriever: E5Retriever, questions: list[str], options: argparse.Namespace) -> int:
    encoder, index = retriever.encoder, retriever.index
    texts = [document.contents for document in index.passages(list(range(len(index))))]
    vectors = faiss.read_index(str(index.folder / "index.faiss")).reconstruct_n(0, len(index))
    theirs = dspy.retrievers.Embeddings(
        texts, lambda asked: vectors if asked is texts else encoder.encode_queries(asked), k=K
    )

    def encode_and_search(queries: Sequence[str]) -> list[list[Document]]:
        _, rows = index.search(encoder.encode_queries(queries), K)
        return [index.passages(found) for found in rows.tolist()]

    def limit(queries: Sequence[str]) -> float:
        began = time.perf_counter()
        for start in range(0, len(queries), CALLERS):
            encode_and_search(queries[start : start + CALLERS])
        return len(queries) / (time.perf_counter() - began)

    arms: dict[str, Callable[[Sequence[str]], float]] = {
        "(a) E5Retriever": lambda queries: with_callers(retriever, queries),
        "(b) encode + search per caller": lambda queries: with_callers(
            lambda query: encode_and_search([query]), queries
        ),
        "(c) dspy.retrievers.Embeddings": lambda queries: with_callers(theirs, queries),
        "(d) batches of 16, nobody waits": limit,
    }
    endless = itertools.cycle(questions)
    rates: dict[str, list[float]] = {name: [] for name in arms}
    for number in range(options.rounds + 1):
        queries = list(itertools.islice(endless, options.queries))
        # Each round in another order, so that no arm always follows the same one.
        for name in [*list(arms)[number % 4 :], *list(arms)[: number % 4]]:
            rate = arms[name](queries)
            if number:  # the first round warms up
                rates[name].append(rate)
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ours, alone, _, best = medians.values()
    of_limit, of_alone = ours / best, ours / alone
    over = lone_caller(retriever, encode_and_search, list(itertools.islice(endless, options.pairs)))
    show_table(
        f"{CALLERS} concurrent callers, {len(index)} passages, {options.rounds} rounds of {options.queries} queries",
        ("", "queries/s", "lowest", "highest"),
        [(name, medians[name], min(values), max(values)) for name, values in rates.items()],
    )
    bars = [
        ("(a) / (d)", of_limit, ">= 0.80", of_limit >= 0.80),
        ("(a) / (b)", of_alone, ">= 1.5", of_alone >= 1.5),
        ("lone caller over encode + search, ms", over, "<= 1", over <= 1.0),
    ]
    show_table("Bars", ("", "measured", "bar", "held"), [(*bar[:3], "yes" if bar[3] else "NO") for bar in bars])
    return 0 if all(held for *_, held in bars) else 1


def lone_caller(retriever: E5Retriever, bare: Callable[[Sequence[str]], object], queries: Sequence[str]) -> float:
    """Return the milliseconds that one call of the retriever takes over encode + search, the median of pairs."""

    def timed(call: Callable[[], object]) -> float:
        began = time.perf_counter()
        call()
        return 1000 * (time.perf_counter() - began)

    ours, theirs = [], []
    for number, query in enumerate(queries):
        calls = [(ours, lambda query=query: retriever(query)), (theirs, lambda query=query: bare([query]))]
        for times, call in calls if number % 2 else reversed(calls):
            times.append(timed(call))
    return float(np.median(np.asarray(ours) - np.asarray(theirs)))


if __name__ == "__main__":
    sys.exit(main())
