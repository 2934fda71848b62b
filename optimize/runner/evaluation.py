"""Runs methods over questions and journals what each one took and scored."""

from __future__ import annotations

import copy
import logging
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy
from maps_rag.metrics.cost import Prices, money
from maps_rag.optimize.runner.journal import Journal, read_journal
from maps_rag.optimize.runner.lines import Task, failed_line, finished_line, trajectory_line
from maps_rag.optimize.runner.plan import Plan, check_budget, plan_evaluation, settings_of
from maps_rag.optimize.runner.progress import Watcher, default_watcher
from maps_rag.optimize.runner.tally import Tally
from maps_rag.optimize.runner.workers import work
from maps_rag.programs import SearchProgram, Trajectory
from maps_rag.programs.base import check_count
from maps_rag.programs.driver import LISTENER, RECORDS

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What an evaluation came to.

    :param folder: the run directory, for :func:`maps_rag.optimize.report`.
    :param scores: mean Cover-EM in [0, 1] of the answered questions, by method; None where none was answered.
    :param finished: questions answered, over all methods and runs, those of earlier calls included.
    :param failed: questions that ended in an error; the next call asks them again.
    :param total: questions there are, over all methods and runs.
    :param tokens: billed tokens of all calls so far.
    :param cost: what they cost; 0 without prices.
    :param stopped: "max_tokens" or "max_cost" where the budget ended the run before all were asked, else "".
    """

    folder: Path
    scores: dict[str, float | None]
    finished: int
    failed: int
    total: int
    tokens: int
    cost: float
    stopped: str


def evaluate(
    methods: Mapping[str, SearchProgram],
    questions: Sequence[dspy.Example],
    out: str | Path,
    *,
    lm: dspy.LM | None = None,
    runs: int = 1,
    threads: int = 8,
    max_tokens: int | None = None,
    max_cost: float | None = None,
    prices: Prices | None = None,
    name: str = "questions",
    seed: int | None = None,
    watch: Watcher | None = None,
) -> Evaluation:
    """Answer every question with every method and journal the results in a directory.

    Each answer is scored and written as it comes, one slim line in ``journal.jsonl`` and its trajectory in
    ``trajectories.jsonl``; what it was run with is in ``manifest.json``. Called again on the same directory it goes on:
    finished questions are kept, failed ones asked again. Interrupted or killed, it loses the questions under way, at
    most ``threads`` of them. An error within a question is recorded and ends that question alone.

        methods = {name: create(name, retriever) for name in ("maps", "search-o1", "vanilla")}
        evaluate(methods, questions, "my-run", lm=dspy.LM("openai/gpt-4o-mini"))

    :param methods: programs by the names they are reported under.
    :param questions: examples with ``id``, ``question`` and ``answers``; see :mod:`maps_rag.metrics.fields` for
        multiple choice. ``dataset``, ``type``, ``hops`` and ``supporting`` (ids, or title and text, of the passages
        that hold the evidence) are used where they are there. Of multiple choice, neither questions nor answers are
        written to any file but as letters.
    :param out: the run directory; made where it is missing.
    :param lm: the language model of programs that have none of their own; by default that of ``dspy.settings``.
    :param runs: how often each question is answered. Runs differ in ``rollout_id``, so the cache of replies does not
        repeat one sample, and need a temperature above 0.
    :param threads: questions under way side by side.
    :param max_tokens: billed tokens, over all calls on this directory, after which no further question begins; those
        under way are finished.
    :param max_cost: the same in money; needs ``prices``.
    :param prices: what a million tokens cost; see :mod:`maps_rag.metrics.cost`.
    :param name: the data set of questions that do not name theirs.
    :param seed: the seed the questions were drawn with, for the record.
    :param watch: shows the progress; by default bars on standard error where that is a terminal.
    :raises UserError: when an argument makes no sense, a question cannot be scored, the directory belongs to another
        run or another process writes to it.
    """
    check_budget(max_tokens, max_cost, prices)
    check_count("threads", threads)
    plan = plan_evaluation(methods, questions, lm=lm, runs=runs, name=name, seed=seed)
    price = (lambda usage: float(money(usage, prices))) if prices is not None else None
    with Journal(Path(out), plan.manifest) as journal:
        tally = Tally.read(read_journal(journal.folder), plan.totals(), price)
        with watch if watch is not None else default_watcher() as watcher:
            runner = _Runner(plan, journal, tally, watcher, max_tokens, max_cost)
            runner.run(threads)
    return Evaluation(
        folder=journal.folder,
        scores={method: row.cover_em for method, row in tally.rows.items()},
        finished=tally.finished,
        failed=tally.failed,
        total=tally.total,
        tokens=tally.tokens,
        cost=tally.money,
        stopped=runner.stopped,
    )


class _Stopped(BaseException):
    """Ends a question under way once the run has been interrupted; no method may take it for an error of a step."""


class _Runner:
    """One call of :func:`evaluate` at work."""

    def __init__(
        self,
        plan: Plan,
        journal: Journal,
        tally: Tally,
        watcher: Watcher,
        max_tokens: int | None,
        max_cost: float | None,
    ) -> None:
        self.plan, self.journal, self.tally, self.watcher = plan, journal, tally, watcher
        self.max_tokens, self.max_cost = max_tokens, max_cost
        self.stop = threading.Event()
        self.stopped = ""
        self.programs = {
            (method, run): (_of_run(program, run), _rolled(plan.lm or dspy.settings.lm, run))
            for method, program in plan.methods.items()
            for run in range(plan.runs)
        }

    def run(self, threads: int) -> None:
        """Answer what is not answered yet."""
        self.watcher.show(self.tally)
        work(self._pending(), self._answer, threads, self.stop)

    def _pending(self) -> Iterator[Task]:
        for task in self.plan.tasks():
            if self.tally.is_finished(task.key):
                continue
            if self.max_tokens is not None and self.tally.tokens >= self.max_tokens:
                self.stopped = "max_tokens"
                return
            if self.max_cost is not None and self.tally.money >= self.max_cost:
                self.stopped = "max_cost"
                return
            yield task

    def _answer(self, task: Task) -> None:
        program, lm = self.programs[task.method, task.run]
        records: list[Trajectory] = []
        RECORDS.set(records.append)
        LISTENER.set(self._at_each_step)
        start = time.perf_counter()
        trajectory = None
        try:
            with dspy.context(**settings_of(lm)):
                prediction = program(**task.inputs())
            line = finished_line(task, prediction, time.perf_counter() - start)
            trajectory = trajectory_line(task, prediction.trajectory)
        except _Stopped:
            return
        except Exception as error:
            logger.info("%s failed on %s", task.method, task.question.id, exc_info=True)
            line = failed_line(task, error, records[0] if records else None, time.perf_counter() - start)
        if self.journal.add(line, trajectory):
            self.tally.add(line)
            self.watcher.show(self.tally)

    def _at_each_step(self, step: object) -> None:
        if self.stop.is_set():
            raise _Stopped


def _of_run(program: SearchProgram, run: int) -> SearchProgram:
    """Return the program as a run has it: models of its own sample anew in each."""
    if run == 0 or all(predictor.lm is None for predictor in program.predictors()):
        return program
    twin = copy.deepcopy(program)
    for predictor in twin.predictors():
        predictor.lm = _rolled(predictor.lm, run)
    return twin


def _rolled(lm: dspy.LM | None, run: int) -> dspy.LM | None:
    return lm if lm is None or run == 0 else lm.copy(rollout_id=run)
