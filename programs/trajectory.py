"""The record of one question: plain data that metrics, journals and reports read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Call:
    """One LM call as the program sees it; retries of the same request belong to it.

    ``round`` is the retrieval round it served, counted from 1. Token counts are what the server reported, summed over
    requests; replies out of DSPy's cache count in ``prompt_tokens`` and ``completion_tokens`` (logical) but not in
    ``billed_tokens``. ``cached_prompt_tokens`` were read from the server's own prefix cache. ``failure`` names what
    went wrong where the reply could not be used.
    """

    role: str
    round: int
    requests: int = 0
    retries: int = 0
    cache_hits: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_prompt_tokens: int = 0
    billed_tokens: int = 0
    seconds: float = 0.0
    failure: str | None = None


@dataclass(slots=True)
class SearchRecord:
    """What one sub-query found: corpus ids and scores, best first."""

    query: str
    ids: list[str]
    scores: list[float]


@dataclass(slots=True)
class Round:
    """One retrieval round.

    ``known`` and ``missing`` are what the planner said; ``directions`` and ``searches`` stand in the same order;
    ``passages`` is the merged result as {id, title, text, score}; ``knowledge`` is what this round added, each item
    {text, passage_id} with ``passage_id`` None where the text was written by the model. ``complete`` is False for a
    round that a budget cut short.
    """

    index: int
    known: list[str] = field(default_factory=list)
    missing: str = ""
    directions: list[str] = field(default_factory=list)
    searches: list[SearchRecord] = field(default_factory=list)
    passages: list[dict[str, Any]] = field(default_factory=list)
    knowledge: list[dict[str, Any]] = field(default_factory=list)
    reasoning_state: str = ""
    complete: bool = True

    @property
    def queries(self) -> list[str]:
        """The sub-queries of this round, in order."""
        return [search.query for search in self.searches]


@dataclass(slots=True)
class Trajectory:
    """Everything that happened for one question."""

    question: str
    program: str
    config: dict[str, Any]
    rounds: list[Round] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)
    answer: str = ""
    stop_reason: str = ""
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Logical tokens so far: prompt and completion, cache hits included."""
        return sum(call.prompt_tokens + call.completion_tokens for call in self.calls)

    def usage(self) -> dict[str, int | float]:
        """Sum the calls: LM calls, requests, tokens (logical and billed), retrievals and seconds."""
        total: dict[str, int | float] = {"calls": len(self.calls)}
        for name in (
            "requests",
            "retries",
            "cache_hits",
            "prompt_tokens",
            "completion_tokens",
            "cached_prompt_tokens",
            "billed_tokens",
        ):
            total[name] = sum(getattr(call, name) for call in self.calls)
        total["retrievals"] = sum(len(round_.searches) for round_ in self.rounds)
        total["seconds"] = self.seconds
        return total

    def as_dict(self) -> dict[str, Any]:
        """Return the whole record as plain, JSON-able data."""
        rounds = [{**_fields(item), "searches": [_fields(search) for search in item.searches]} for item in self.rounds]
        return {
            **_fields(self),
            "rounds": rounds,
            "calls": [_fields(call) for call in self.calls],
            "failures": dict(self.failures),
            "usage": self.usage(),
        }


def _fields(record: Any) -> dict[str, Any]:
    """Return the fields of a dataclass; ``asdict`` would copy every passage of every round once more."""
    return {name: getattr(record, name) for name in record.__dataclass_fields__}
