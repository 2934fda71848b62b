"""What the tests of the runner share: questions, a scripted model and how to read a run directory."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import dspy
from maps_rag.optimize.runner import Evaluation, evaluate
from maps_rag.programs import SearchProgram, create

from tests.scripted import Roles, StubRetriever, output_fields, scripted_lm


class Replies(Roles):
    """Answers for MAPS and for methods of one call; even questions get the right answer."""

    def __call__(self, system: str, user: str) -> Any:
        fields = output_fields(system)
        if "answer" in fields and "sufficient" not in fields:
            return {"reasoning": "r", "answer": "right" if int(number_in(user)) % 2 == 0 else "wrong"}
        return super().__call__(system, user)


def number_in(prompt: str) -> str:
    """Return the number of the question that a prompt is about."""
    return re.findall(r"What is number (\d+)\?", prompt)[-1]


def questions(count: int, **fields: Any) -> list[dspy.Example]:
    """Return questions with the answer "right"."""
    rows = ({"id": f"q{i}", "question": f"What is number {i}?", "answers": ["right"], **fields} for i in range(count))
    return [dspy.Example(**row).with_inputs("question") for row in rows]


def methods(*names: str, **knobs: Any) -> dict[str, SearchProgram]:
    """Return methods over a stub retriever."""
    return {name: create(name, StubRetriever(), **knobs) for name in names or ("vanilla", "direct")}


def run(out: Path, count: int = 4, **options: Any) -> Evaluation:
    """Evaluate on a scripted model, one thread unless said otherwise."""
    given = {"methods": methods(), "questions": questions(count), "lm": scripted_lm(Replies()), "threads": 1}
    options = given | options
    return evaluate(options.pop("methods"), options.pop("questions"), out, **options)


def lines(out: Path, name: str = "journal") -> list[dict[str, Any]]:
    """Return the lines of a file of a run directory; every one must be whole."""
    return [json.loads(line) for line in (out / f"{name}.jsonl").read_text().splitlines()]


def key(line: dict[str, Any]) -> tuple[str, str, int]:
    """Return which question a line is about."""
    return line["method"], line["id"], line["run"]


def results(out: Path) -> dict[tuple[str, str, int], Any]:
    """Return answer and scores, or the error, of the last line about each question."""
    return {key(line): (line["answer"], line["scores"]) if "scores" in line else line["error"] for line in lines(out)}
