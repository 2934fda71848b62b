"""From one answered or failed question to its lines in the journal and among the trajectories.

Of a multiple-choice question nothing is written but letters and numbers: GPQA, which such sets stand for, must not
appear in clear text where a crawler could read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from maps_rag.metrics import (
    answer_tokens,
    choice_accuracy,
    choice_letter,
    cover_em,
    cover_em_capped,
    cover_em_response,
    cover_em_substring,
    exact_match,
    f1,
)
from maps_rag.metrics.cost import question_cost
from maps_rag.metrics.evidence import evidence
from maps_rag.metrics.fields import gold_answers, gold_choices, gold_letter
from maps_rag.optimize.runner.journal import Key
from maps_rag.programs import UserError
from maps_rag.programs.trajectory import Trajectory

_SCORES = (
    cover_em,
    exact_match,
    f1,
    cover_em_substring,
    cover_em_response,
    cover_em_capped,
    answer_tokens,
)
_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Task:
    """One question for one method in one run."""

    method: str
    dataset: str
    question: dspy.Example
    run: int

    @property
    def key(self) -> Key:
        """What the lines about it are found by."""
        return self.method, self.dataset, self.question.id, self.run

    @property
    def is_choice(self) -> bool:
        """Whether it is multiple choice."""
        return bool(gold_choices(self.question))

    def inputs(self) -> dict[str, Any]:
        """Return what a program is called with."""
        asked = {"question": self.question.question}
        return asked | ({"choices": self.question.choices} if self.is_choice else {})

    def name(self) -> dict[str, Any]:
        """Return the fields of the key."""
        return dict(zip(("method", "dataset", "id", "run"), self.key, strict=True))


def check_question(question: dspy.Example) -> None:
    """Raise a UserError unless a question can be asked and its answer be scored."""
    name = question.get("id")
    if not isinstance(name, str) or not name:
        raise UserError(f"Every question needs an 'id' (text), but one has {name!r}; its fields are {question.keys()}.")
    asked = question.get("question")
    if not isinstance(asked, str) or not asked.strip():
        raise UserError(f"Question {name!r} has no text (question is {asked!r}).")
    row = dict(question.items())  # read once: there may be very many questions
    try:
        gold_letter(row) if gold_choices(row) else gold_answers(row)
    except UserError as error:
        raise UserError(f"Question {name!r}: {error}") from None


def finished_line(task: Task, prediction: dspy.Prediction, seconds: float) -> dict[str, Any]:
    """Return the journal's line of an answered question."""
    question, trajectory = task.question, prediction.trajectory
    scores = {metric.__name__: metric(question, prediction) for metric in _SCORES}
    if task.is_choice:
        scores["choice_accuracy"] = choice_accuracy(question, prediction)
        answer, gold = choice_letter(prediction.answer, question.choices) or "", [gold_letter(question)]
        found = None
    else:
        answer, gold = prediction.answer, gold_answers(question)
        found = evidence(trajectory, question.get("supporting") or [], gold)
    return {
        **task.name(),
        "answer": answer,
        "gold": gold,
        "scores": scores,
        "rounds": prediction.rounds,
        "steps": prediction.steps,
        "stop_reason": prediction.stop_reason,
        "usage": prediction.usage,
        "failures": prediction.failures,
        **{name: question[name] for name in ("type", "hops") if question.get(name) is not None},
        "seconds": round(seconds, 3),
        "cost": question_cost(trajectory),  # read_journal leaves out this and what follows
        "evidence": found,
    }


def failed_line(task: Task, error: Exception, record: Trajectory | None, seconds: float) -> dict[str, Any]:
    """Return the journal's line of a question that ended in an error, with what it took until then."""
    message = "" if task.is_choice else " ".join(str(error).split())[:_LONGEST_ERROR]
    line = {**task.name(), "error": f"{type(error).__name__}: {message}".rstrip(": ")}
    line["seconds"] = round(seconds, 3)
    if record is not None:
        trajectory = record.as_dict()
        line |= {"usage": trajectory["usage"], "cost": question_cost(trajectory)}
    return line


def trajectory_line(task: Task, trajectory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line of a question's trajectory."""
    if task.is_choice:
        return {**task.name(), "question": "", "trajectory": _without_text(trajectory)}
    about = {"question": task.question.question, "supporting": task.question.get("supporting") or []}
    return {**task.name(), **about, "trajectory": trajectory}


def _without_text(trajectory: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trajectory of the same form without what was asked, searched, found, noted or answered."""
    nothing: dict[str, Any] = {"known": [], "missing": "", "directions": [], "passages": [], "knowledge": []}
    rounds = [
        {
            "index": item["index"],
            **nothing,
            "searches": [{"query": "", "ids": [], "scores": list(search["scores"])} for search in item["searches"]],
            "reasoning_state": "",
            "complete": item["complete"],
        }
        for item in trajectory["rounds"]
    ]
    return {**trajectory, "question": "", "answer": "", "rounds": rounds}
