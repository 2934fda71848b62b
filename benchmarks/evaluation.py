"""What the evaluation runner costs on top of its methods, and how it bears many questions.

A scripted model and a retriever that take no time. Four measurements:

- 500 questions of MAPS, 200 ms a reply, on 32 threads: wall time of the runner against the same schedule of bare
  ``dspy.Predict`` calls on as many threads, in interleaved rounds; the median ratio may be at most 1.15;
- no latency, one thread: processor time of the runner against calling the program, per question; the median of the
  rounds' differences may be at most 2 ms;
- a journal of 100,000 questions: the next call goes on within 5 s;
- the same journal is reported within 60 s, in memory that does not grow with the trajectories (their file is made
  ten times as long).

Run it from the root of the checkout: ``python benchmarks/evaluation.py``. It exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
from maps_rag.optimize.runner import evaluate
from maps_rag.programs import MAPS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import show_table
from benchmarks.overhead import Engine, Retriever, bare, record, seconds

RATIO_BAR = 1.15
OVERHEAD_BAR = 2.0
RESUME_BAR = 5.0
REPORT_BAR = 60.0
MEMORY_BAR = 1.1
LATENCY = 0.2

PASSAGE = [{"id": "p", "title": "A title", "text": "Some forty words of text. " * 8, "score": 0.9}]

Row = tuple[str, str, str, bool]
"""What was measured, the value, the bar, whether it is met."""


def questions(count: int) -> list[dspy.Example]:
    """Return questions that the scripted model answers."""
    rows = ({"id": f"q{i}", "question": f"What is asked in question {i}?", "answers": ["it"]} for i in range(count))
    return [dspy.Example(**row).with_inputs("question") for row in rows]


def program() -> MAPS:
    return MAPS(Retriever(), directions=3, max_rounds=4)


def model(engine: Engine) -> dspy.LM:
    return dspy.LM("scripted/model", engine=engine, cache=False)


def wall_time(rounds: int, count: int, threads: int) -> Row:
    """Compare the runner with the same schedule of bare calls, on as many threads."""
    asked, maps, engine = questions(count), program(), Engine()
    lm = model(engine)
    with dspy.context(lm=lm, trace=None):
        recorded = [record(maps, question.question) for question in asked]
    engine.latency = LATENCY

    def one(calls: Any) -> None:
        with dspy.context(lm=lm, trace=None, disable_history=True):
            bare(calls)

    def schedule() -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(one, recorded))

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            result = evaluate({"maps": maps}, asked, Path(folder) / "run", lm=lm, threads=threads)
            assert result.finished == count

    ratios = []
    for number in range(rounds):
        works = [("bare", schedule), ("runner", run)]
        times = {name: seconds(work) for name, work in (works if number % 2 else works[::-1])}
        ratios.append(times["runner"] / times["bare"])
        print(f"bare {times['bare']:.1f} s, runner {times['runner']:.1f} s", file=sys.stderr)
    ratio = statistics.median(ratios)
    name = f"wall time, {count} questions, {threads} threads, 200 ms a reply, against bare Predict"
    return name, f"{ratio:.3f} x", f"<= {RATIO_BAR} x", ratio <= RATIO_BAR


def overhead(rounds: int, count: int) -> Row:
    """Compare the runner on one thread with calling the program, in processor time."""
    asked, maps = questions(count), program()
    lm = model(Engine())

    def direct() -> None:
        with dspy.context(lm=lm, trace=None, disable_history=True):
            for question in asked:
                maps(question=question.question)

    def run() -> None:
        with tempfile.TemporaryDirectory() as folder:
            evaluate({"maps": maps}, asked, Path(folder) / "run", lm=lm, threads=1)

    direct()
    differences = []
    gc.disable()
    for number in range(rounds):
        works = [("direct", direct), ("runner", run)]
        times = {name: seconds(work, time.process_time) for name, work in (works if number % 2 else works[::-1])}
        differences.append(1000 * (times["runner"] - times["direct"]) / count)
        gc.collect()
    gc.enable()
    extra = statistics.median(differences)
    return "overhead of a question", f"{extra:.2f} ms", f"<= {OVERHEAD_BAR} ms", extra <= OVERHEAD_BAR


def long_journal(folder: Path, count: int) -> tuple[list[dspy.Example], MAPS, dspy.LM]:
    """Make the directory of a run of which all questions but one are answered."""
    asked, maps, lm = questions(count), program(), model(Engine())
    evaluate({"maps": maps}, asked, folder, lm=lm, threads=1, max_tokens=1)
    for name in ("journal", "trajectories"):
        path = folder / f"{name}.jsonl"
        line = json.loads(path.read_text())
        if name == "trajectories":  # short ones, to spare the disk
            line["trajectory"]["rounds"] = [line["trajectory"]["rounds"][0] | {"passages": PASSAGE}]
        with path.open("w") as file:
            for question in asked[:-1]:
                file.write(json.dumps(line | {"id": question.id}, separators=(",", ":")) + "\n")
    return asked, maps, lm


def resume(folder: Path, count: int) -> Row:
    """Go on with a run of which one question is left."""
    asked, maps, lm = long_journal(folder, count)
    results = []
    took = seconds(lambda: results.append(evaluate({"maps": maps}, asked, folder, lm=lm, threads=1)))
    assert results[0].finished == count
    return f"resuming a journal of {count:,} questions", f"{took:.1f} s", f"<= {RESUME_BAR} s", took <= RESUME_BAR


REPORT = """
import resource, sys, time
from maps_rag.optimize.reporting import report
start = time.perf_counter()
report([sys.argv[1]], html=sys.argv[1] + "/report.html")
print(time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def reported(folder: Path) -> tuple[float, float]:
    """Return the seconds and the peak memory, in MB, of reporting a run directory in a process of its own."""
    done = subprocess.run([sys.executable, "-c", REPORT, str(folder)], capture_output=True, text=True, check=True)
    took, peak = done.stdout.split()[-2:]
    return float(took), float(peak) / 1024


def report_rows(folder: Path, count: int) -> list[Row]:
    """Report a long run, and once more with trajectories ten times as long."""
    took, peak = reported(folder)
    path = folder / "trajectories.jsonl"
    longer = folder / "longer.jsonl"
    with path.open() as lines, longer.open("w") as file:
        for line in lines:
            row = json.loads(line)
            for item in row["trajectory"]["rounds"]:
                item["passages"] *= 10
            file.write(json.dumps(row) + "\n")
    longer.replace(path)
    _, grown = reported(folder)
    ratio = grown / peak
    return [
        (f"reporting {count:,} questions", f"{took:.1f} s", f"<= {REPORT_BAR} s", took <= REPORT_BAR),
        (
            "memory of a report with longer trajectories",
            f"{peak:.0f} to {grown:.0f} MB",
            f"<= {MEMORY_BAR} x",
            ratio <= MEMORY_BAR,
        ),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of the wall time")
    parser.add_argument("--questions", type=int, default=500, help="questions of a round of the wall time")
    parser.add_argument("--threads", type=int, default=32, help="threads of the wall time")
    parser.add_argument("--journal", type=int, default=100_000, help="questions of the long journal")
    options = parser.parse_args()
    rows = [
        wall_time(options.rounds, options.questions, options.threads),
        overhead(rounds=9, count=100),
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        rows.append(resume(folder, options.journal))
        rows += report_rows(folder, options.journal)
    cells = [(name, value, bar, "met" if met else "MISSED") for name, value, bar, met in rows]
    show_table("What the evaluation runner costs", ("measurement", "value", "bar", ""), cells)
    return 0 if all(met for *_, met in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
