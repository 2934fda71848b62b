"""A question of the sample as the page shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from maps_rag.metrics.evidence import GoldPassages
from maps_rag.optimize.reporting.cells import where_lost
from maps_rag.optimize.reporting.document import number
from maps_rag.optimize.reporting.sample import Shown

MAX_CHARS = 2_000
"""Characters of one text that are shown; a passage of Wikipedia has about 600."""


@dataclass(frozen=True, slots=True)
class PassageView:
    """A retrieved passage."""

    id: str
    title: str
    text: str
    score: str
    gold: bool


@dataclass(frozen=True, slots=True)
class RoundView:
    """A retrieval round: its texts, or for multiple choice their numbers alone in ``counts``."""

    index: int
    complete: bool
    counts: str = ""
    known: Sequence[str] = ()
    missing: Sequence[str] = ()
    directions: Sequence[str] = ()
    queries: Sequence[str] = ()
    passages: Sequence[PassageView] = ()
    knowledge: Sequence[str] = ()
    state: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """A question with all that happened. ``missing`` says what could not be shown, and why."""

    method: str
    dataset: str
    id: str
    verdict: str
    question: str
    answer: str
    gold: Sequence[str]
    facts: Sequence[tuple[str, str]]
    rounds: Sequence[RoundView] = ()
    missing: str = ""


def entry_of(shown: Shown, is_choice: bool) -> Entry:
    """Return what the page shows of a question.

    :param is_choice: True for a multiple-choice set: its texts must not be published, so that only letters and numbers
        are shown, whatever the files hold.
    """
    line, record = shown.line, shown.record
    trajectory = (record or {}).get("trajectory") or {}
    rounds = trajectory.get("rounds") or []
    answer = str(line.get("answer") or "")
    missing = "" if record else "Its trajectory is not in the run directory."
    if is_choice:
        missing = "The texts of multiple-choice sets are not shown."
        views = [_counts(index, item) for index, item in enumerate(rounds, 1)]
    else:
        gold = GoldPassages((record or {}).get("supporting") or ())
        views = [_round(index, item, gold) for index, item in enumerate(rounds, 1)]
    method, dataset, name, _ = shown.key
    return Entry(
        method,
        dataset,
        name,
        "right" if shown.right else "wrong",
        "" if is_choice else _cut((record or {}).get("question", "")),
        (answer if len(answer) == 1 else "(no letter)") if is_choice else _cut(answer),
        [gold for gold in map(str, line.get("gold") or ()) if not is_choice or len(gold) == 1],
        list(_facts(shown, is_choice)),
        views,
        missing,
    )


def _facts(shown: Shown, is_choice: bool) -> list[tuple[str, str]]:
    line, usage = shown.line, shown.line.get("usage") or {}
    tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
    facts = [
        ("question", f"{shown.key[2]}, run {shown.key[3]}"),
        ("stopped", f"{line.get('stop_reason', '')}, rounds: {line.get('rounds', 0)}"),
        (
            "cost",
            f"{usage.get('calls', 0)} calls, {number(tokens)} tokens, {usage.get('retrievals', 0)} retrievals, "
            f"{number(usage.get('seconds'))} s",
        ),
    ]
    if line.get("evidence") and (lost := where_lost(line["evidence"])) is not None:
        facts.append(("evidence", lost))
    if line.get("failures"):
        kinds = line["failures"]
        named = f"{sum(kinds.values())}" if is_choice else ", ".join(f"{kind} x {n}" for kind, n in kinds.items())
        facts.append(("failures", _cut(named)))
    return facts


def _round(index: int, item: Mapping[str, Any], gold: GoldPassages) -> RoundView:
    return RoundView(
        index,
        bool(item.get("complete", True)),
        known=_texts(item.get("known")),
        missing=_texts([item.get("missing")]),
        directions=_texts(item.get("directions")),
        queries=_texts([search.get("query") for search in item.get("searches") or ()]),
        passages=[
            PassageView(
                str(passage.get("id", "")),
                _cut(passage.get("title", "")),
                _cut(passage.get("text", "")),
                number(passage.get("score")) if passage.get("score") else "",
                passage in gold,
            )
            for passage in item.get("passages") or ()
        ],
        knowledge=_texts([fact.get("text") for fact in item.get("knowledge") or ()]),
        state=_texts([item.get("reasoning_state")]),
    )


def _counts(index: int, item: Mapping[str, Any]) -> RoundView:
    found = [f"{label}: {_size(item.get(name))}" for name, label in _COUNTED if item.get(name)]
    return RoundView(index, bool(item.get("complete", True)), ", ".join(found))


_COUNTED = (
    ("directions", "directions"),
    ("searches", "sub-queries"),
    ("passages", "passages"),
    ("knowledge", "pieces of knowledge"),
)


def _size(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else len(value)


def _texts(items: Sequence[Any] | None) -> list[str]:
    return [_cut(item) for item in items or () if item]


def _cut(text: Any) -> str:
    shown = str(text)
    return shown if len(shown) <= MAX_CHARS else f"{shown[:MAX_CHARS]} …"
