"""What an evaluation is to do, checked before anything is written or asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.metrics.cost import Prices
from maps_rag.optimize.runner.lines import Task, check_question
from maps_rag.optimize.runner.manifest import manifest_of
from maps_rag.programs import SearchProgram, UserError
from maps_rag.programs.base import check_count
from maps_rag.programs.lm_call import language_model_of


@dataclass(frozen=True, slots=True)
class Plan:
    """A checked evaluation that has not begun: what is run, on what, and its manifest."""

    methods: Mapping[str, SearchProgram]
    questions: Sequence[dspy.Example]
    lm: dspy.LM | None
    runs: int
    name: str
    manifest: dict[str, Any]

    def tasks(self) -> Iterator[Task]:
        """Yield all questions, the methods in turn: cut short at any point, all have had the same questions."""
        for run in range(self.runs):
            for question in self.questions:
                for method in self.methods:
                    yield Task(method, str(question.get("dataset") or self.name), question, run)

    def totals(self) -> dict[str, int]:
        """Return how many questions each method has to answer."""
        return dict.fromkeys(self.methods, len(self.questions) * self.runs)


def plan_evaluation(
    methods: Mapping[str, SearchProgram],
    questions: Sequence[dspy.Example],
    *,
    lm: dspy.LM | None = None,
    runs: int = 1,
    name: str = "questions",
    seed: int | None = None,
) -> Plan:
    """Check the arguments of :func:`evaluate`, which has them described, before anything is written or asked."""
    check_count("runs", runs)
    if not methods:
        raise UserError("No method was given: name at least one.")
    for method, program in methods.items():
        if not isinstance(program, SearchProgram):
            raise UserError(f"Method {method!r} must be a SearchProgram, but is a {type(program).__name__}.")
    questions = list(questions)
    if not questions:
        raise UserError("No questions were given.")
    seen: set[tuple[str, str]] = set()
    for question in questions:
        check_question(question)
        key = (str(question.get("dataset") or name), question.id)
        if key in seen:
            raise UserError(f"Two questions of {key[0]} have the id {key[1]!r}: results are found by it.")
        seen.add(key)
    with dspy.context(**settings_of(lm)):
        if runs > 1:
            _check_sampling(methods, runs)
        manifest = manifest_of(methods, questions, runs, name, seed)
    return Plan(methods, questions, lm, runs, name, manifest)


def check_budget(max_tokens: int | None, max_cost: float | None, prices: Prices | None) -> None:
    """Raise a UserError unless the limits are possible ones."""
    check_count("max_tokens", max_tokens, maximum=10**12, optional=True)
    if max_cost is not None and not max_cost > 0:
        raise UserError(f"max_cost must be above 0, but got {max_cost!r}.")
    if max_cost is not None and prices is None:
        raise UserError("max_cost needs the prices of a million tokens: give prices as well.")


def settings_of(lm: dspy.LM | None) -> dict[str, Any]:
    """Return the settings of DSPy under which questions are answered."""
    # DSPy's trace and history keep every prompt and passage of the run; our journal is the record.
    return {"trace": None, "disable_history": True} | ({} if lm is None else {"lm": lm})


def _check_sampling(methods: Mapping[str, SearchProgram], runs: int) -> None:
    for name, program in methods.items():
        for predictor in program.predictors():
            lm = language_model_of(predictor)
            if {**lm.kwargs, **predictor.config}.get("temperature") == 0:
                raise UserError(
                    f"runs={runs} needs a temperature above 0, but {lm.model} of {name} has 0, at which every run is "
                    "the same: set a temperature, or runs=1."
                )
