"""What was measured for one method on one set: columns of numbers, a row per question and run."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

COMPANIONS = ("exact_match", "f1", "cover_em_substring", "cover_em_response", "cover_em_capped", "answer_tokens")
"""Reported beside the primary score."""

USAGE = (
    "calls",
    "requests",
    "retries",
    "prompt_tokens",
    "completion_tokens",
    "cached_prompt_tokens",
    "billed_tokens",
    "retrievals",
    "seconds",
)
"""What a question cost, as :meth:`maps_rag.programs.trajectory.Trajectory.usage` names it."""

_COLUMNS = ("score", *COMPANIONS, *USAGE, "tokens", "rounds", "steps")
_SHOWN_ERRORS = 20
_NOTHING = float("nan")


@dataclass(frozen=True, slots=True)
class FailedQuestion:
    """A question that ended in an error."""

    id: str
    run: int
    error: str


@dataclass(frozen=True, slots=True)
class Questions:
    """The primary scores of one cell by question, in the order of the ids; each is the mean over its runs."""

    ids: list[str]
    scores: Floats


class EvidenceSums:
    """What :mod:`maps_rag.metrics.evidence` found, added up over questions."""

    def __init__(self) -> None:
        self.total: defaultdict[str, float] = defaultdict(float)
        self.count: Counter[str] = Counter()
        self.by_round: list[float] = []
        self.ended: defaultdict[int, float] = defaultdict(float)
        self.with_gold = 0
        self.lost: Counter[str] = Counter()

    def add(self, evidence: Mapping[str, Any]) -> None:
        """Add one question; what it has no value for is not counted."""
        for name, value in evidence.items():
            if isinstance(value, bool | int | float):
                self.total[name] += value
                self.count[name] += 1
        if evidence.get("gold_share") is not None:
            shares = evidence.get("gold_share_by_round") or []
            self.by_round += [0.0] * (len(shares) - len(self.by_round))
            for place, share in enumerate(shares):
                self.by_round[place] += share
            self.ended[len(shares)] += shares[-1] if shares else 0.0
            self.with_gold += 1
        if (place_lost := where_lost(evidence)) is not None:
            self.lost[place_lost] += 1

    def mean(self, name: str) -> float | None:
        """Return the mean over the questions that have this value."""
        return self.total[name] / self.count[name] if self.count[name] else None

    def gold_by_round(self) -> list[float]:
        """Return the mean cumulative share of gold passages after each round.

        A question that ended earlier keeps its last share, so that every round is a mean over the same questions.
        """
        return [
            (total + sum(last for length, last in self.ended.items() if length <= place)) / self.with_gold
            for place, total in enumerate(self.by_round)
        ]


LOST = ("never retrieved", "retrieved, not kept", "kept, not given", "given")


def where_lost(evidence: Mapping[str, Any]) -> str | None:
    """Return at which step the answer was lost, one of :data:`LOST`; None where it was not looked for.

    An answer that is given although no passage held it counts as "given". Kept means in the knowledge or the state.
    A method that keeps no knowledge answers from its passages: there, what was retrieved was kept.
    """
    if evidence.get("answer_in_passages") is None:
        return None
    if evidence.get("answer_given"):
        return LOST[3]
    kept = [evidence.get(name) for name in ("answer_in_knowledge", "answer_in_state")]
    if any(kept):
        return LOST[2]
    if not evidence["answer_in_passages"]:
        return LOST[0]
    return LOST[1] if any(value is not None for value in kept) else LOST[2]


class Cell:
    """The rows of one method on one set. A question that failed scores 0 and has no other number."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.runs = array("i")
        self.types: list[str] = []
        self.hops: list[str] = []
        self.columns = {name: array("d") for name in _COLUMNS}
        self.roles: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
        self.stops: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.evidence = EvidenceSums()
        self.errors: list[FailedQuestion] = []
        self.failed = 0
        self.choices = False
        self._by_id: tuple[list[str], npt.NDArray[np.intp]] | None = None

    def add(self, content: Mapping[str, Any]) -> None:
        """Add a line of the journal."""
        self.ids.append(str(content["id"]))
        self.runs.append(int(content["run"]))
        self.types.append(str(content.get("type") or ""))
        self.hops.append("" if content.get("hops") is None else str(content["hops"]))
        row = dict.fromkeys(_COLUMNS, _NOTHING)
        if "error" in content:
            self.failed += 1
            if len(self.errors) < _SHOWN_ERRORS:
                self.errors.append(FailedQuestion(str(content["id"]), int(content["run"]), str(content["error"])))
            row.update(dict.fromkeys(("score", *COMPANIONS[:-1]), 0.0))
        else:
            self._fill(row, content)
        for name, value in row.items():
            self.columns[name].append(value)

    def _fill(self, row: dict[str, float], content: Mapping[str, Any]) -> None:
        scores, usage = content["scores"], content.get("usage") or {}
        self.choices = self.choices or "choice_accuracy" in scores
        row["score"] = primary_score(scores)
        row.update({name: float(scores[name]) for name in COMPANIONS if scores.get(name) is not None})
        row.update({name: float(usage[name]) for name in USAGE if usage.get(name) is not None})
        row["tokens"] = row["prompt_tokens"] + row["completion_tokens"]
        row["rounds"] = float(content.get("rounds", _NOTHING))
        row["steps"] = float(content.get("steps", row["rounds"] + 1))
        self.stops[str(content.get("stop_reason", ""))] += 1
        self.failures.update(content.get("failures") or {})
        for role, spent in ((content.get("cost") or {}).get("by_role") or {}).items():
            for name, value in spent.items():
                self.roles[role][name] += value
        if content.get("evidence"):
            self.evidence.add(content["evidence"])

    @property
    def answered(self) -> int:
        """Rows that did not fail."""
        return len(self.ids) - self.failed

    def column(self, name: str) -> Floats:
        """Return a column, a number per row; NaN where a row has none."""
        return np.array(self.columns[name])

    def by_question(self, name: str) -> Floats:
        """Return a column by question, in the order of the ids: the mean over its runs; NaN where none has a number."""
        values, (ids, place) = self.column(name), self._places()
        known = ~np.isnan(values)
        counts = np.bincount(place[known], minlength=len(ids))
        sums = np.bincount(place[known], values[known], minlength=len(ids))
        means = np.full(len(ids), _NOTHING)
        means[counts > 0] = sums[counts > 0] / counts[counts > 0]
        return means

    def mean(self, name: str) -> float:
        """Return the mean of a column over the questions that have a number there; NaN if none has."""
        values = self.by_question(name)
        known = values[~np.isnan(values)]
        return float(known.mean()) if known.size else _NOTHING

    def _places(self) -> tuple[list[str], npt.NDArray[np.intp]]:
        """Return the ids of the questions, sorted, and for each row the place of its id there."""
        if self._by_id is None:
            ids = sorted(set(self.ids))
            places = {name: place for place, name in enumerate(ids)}
            self._by_id = ids, np.array([places[name] for name in self.ids])
        return self._by_id

    def questions(self) -> Questions:
        """Return the primary score of every question."""
        return Questions(self._places()[0], self.by_question("score"))

    def by_run(self) -> Floats:
        """Return the primary scores of each run on the questions that all runs have, shape (runs, questions)."""
        ids, place = self._places()
        runs, row = np.unique(np.array(self.runs), return_inverse=True)
        scores = np.full((runs.size, len(ids)), _NOTHING)
        scores[row, place] = self.column("score")
        return scores[:, ~np.isnan(scores).any(axis=0)]

    def groups(self, field: Literal["type", "hops"]) -> list[str]:
        """Return the type or the number of hops of each question, in the order of :meth:`questions`; "" if unknown."""
        by_id = dict(zip(self.ids, self.types if field == "type" else self.hops, strict=True))
        return [by_id[name] for name in self.questions().ids]


def primary_score(scores: Mapping[str, Any]) -> float:
    """Return the score of a question: accuracy of the letter for multiple choice, else Cover-EM."""
    return float(scores["choice_accuracy"] if "choice_accuracy" in scores else scores["cover_em"])
