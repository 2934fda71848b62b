"""What methods with a full history share: how a turn is shown, and the prompt that answers from all turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import dspy
from maps_rag.signatures.maps_demos import VANILLA_DEMOS
from pydantic import Field

HISTORY = "all earlier turns: thoughts, searches and what they found"
SEARCH, RESULT, MERGED = "Search: ", "Result: ", "Merged: "

Reasoning = Annotated[str, Field(max_length=600)]
Answer = Annotated[str, Field(max_length=200)]


class AnswerFromHistory(dspy.Signature):
    """Answer the question now, from the searches made so far.

    First reason briefly: put the facts together, compare dates where the question compares. Then answer with the name,
    date, number or yes/no that is asked for, as short as possible: the very thing asked for, not the last thing found.
    Always answer: if the searches do not settle it, give the most likely answer.
    """

    question: str = dspy.InputField(desc="the question to answer")
    history: list[str] = dspy.InputField(desc=HISTORY)
    reasoning: Annotated[str, Field(max_length=400)] = dspy.OutputField(desc="the facts put together")
    answer: Answer = dspy.OutputField(desc="the short answer")


def show_turn(thought: str, queries: Sequence[str] = (), results: Sequence[str] = (), merged: str = "") -> str:
    """Render one turn of a history: each query, each result and the merge on a line of its own."""
    thoughts = [line.strip() for line in thought.splitlines() if line.strip()]
    lines = [f"Thought: {thoughts[0]}", *thoughts[1:]] if thoughts else []
    lines += [SEARCH + _line(query) for query in queries]
    lines += [RESULT + _line(result) for result in results]
    lines += [MERGED + _line(merged)] if merged.strip() else []
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def numbered(*passages: str) -> list[str]:
    """Number passages as the roles that choose among them see them."""
    return [f"[{number}] {passage}" for number, passage in enumerate(passages, 1)]


def _one_query_a_turn(thoughts: list[str], queries: list[str], facts: list[str]) -> list[str]:
    turns = zip(thoughts, queries, facts, strict=True)
    return [show_turn(thought, [query], [fact]) for thought, query, fact in turns]


FILMS, FIRM, GRANDMOTHER = VANILLA_DEMOS["answer"]
"""Three made-up questions with their facts (``passages``), reasoning and answer."""

BAY = "Brightwater Bay: Brightwater Bay is a bay with a small harbour."
STREET = "Askew Street: Askew Street is named after an alderman."
DUCHY = "Velmark: Velmark is a duchy on the coast."
"""Made-up passages that help with none of the questions."""

FILM_QUERIES = ["director of the film The Salt Orchard", "director of the film Kestrel Lane"]
BIRTH_QUERIES = ["date of birth of Imre Voskuil", "date of birth of Odette Lammers"]
FILM_THOUGHTS = [
    "The directors of both films are needed.",
    "The directors are Imre Voskuil and Odette Lammers. Now their dates of birth are needed.",
]
FILM_HISTORY = [
    show_turn(FILM_THOUGHTS[0], FILM_QUERIES, FILMS["passages"][:2]),
    show_turn(FILM_THOUGHTS[1], BIRTH_QUERIES, FILMS["passages"][2:]),
]

FIRM_QUERIES = ["founder of Brightwater Instruments", "Perrin Askew studied at", "Tarnvik Polytechnic country"]
FIRM_THOUGHTS = [
    "First the founder of Brightwater Instruments is needed.",
    "The founder is Perrin Askew. Now his university is needed.",
    "He studied at the Tarnvik Polytechnic. Now its country is needed.",
]
FIRM_HISTORY = _one_query_a_turn(FIRM_THOUGHTS, FIRM_QUERIES, FIRM["passages"])

FAMILY_QUERIES = ["father of Prince Ardent of Velmark", "mother of Duke Tobin III"]
FAMILY_THOUGHTS = [
    "First the father of Prince Ardent is needed.",
    "The father is Duke Tobin III. Now his mother is needed.",
]
FAMILY_HISTORY = _one_query_a_turn(FAMILY_THOUGHTS, FAMILY_QUERIES, GRANDMOTHER["passages"])
FATHER_FOUND = "Prince Ardent of Velmark was the only son of Duke Tobin III and Lady Sunniva Hale."

ANSWER_DEMOS: list[dict[str, Any]] = [
    {**{name: demo[name] for name in ("question", "reasoning", "answer")}, "history": history}
    for demo, history in ((FILMS, FILM_HISTORY), (FIRM, FIRM_HISTORY), (GRANDMOTHER, FAMILY_HISTORY))
]
