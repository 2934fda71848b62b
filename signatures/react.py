"""The task that DSPy's own ReAct is given: its prompts grow out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import dspy
from maps_rag.signatures.history import (
    BIRTH_QUERIES,
    FAMILY_QUERIES,
    FAMILY_THOUGHTS,
    FILM_QUERIES,
    FILMS,
    FIRM,
    FIRM_QUERIES,
    FIRM_THOUGHTS,
    GRANDMOTHER,
)
from pydantic import Field


class AnswerBySearching(dspy.Signature):
    """Answer the question from what the searches found.

    Answer with the name, date, number or yes/no that is asked for, as short as possible: the very thing asked for, not
    the last thing found. Always answer: if the searches do not settle it, give the most likely answer.
    """

    question: str = dspy.InputField(desc="the question to answer")
    answer: Annotated[str, Field(max_length=200)] = dspy.OutputField(desc="the short answer")


def react_demos(format_trajectory: Callable[[dict[str, Any]], str]) -> dict[str, list[dict[str, Any]]]:
    """Return the demos of both roles, their trajectories written as the agent writes them."""
    films = FILMS["passages"]
    births = [
        *zip(
            ["The director of the first film is needed.", "Now that of the other."],
            FILM_QUERIES,
            films[:2],
            strict=True,
        ),
        *zip(["Now the first date of birth.", "Now the other."], BIRTH_QUERIES, films[2:], strict=True),
    ]
    founder = list(zip(FIRM_THOUGHTS, FIRM_QUERIES, FIRM["passages"], strict=True))
    family = list(zip(FAMILY_THOUGHTS, FAMILY_QUERIES, GRANDMOTHER["passages"], strict=True))

    def told(turns: list[tuple[str, str, str]], finished: bool = True) -> str:
        trajectory: dict[str, Any] = {}
        calls: list[tuple[Any, ...]] = [(thought, "search", {"query": query}, [fact]) for thought, query, fact in turns]
        if finished:
            calls.append(("All facts are found.", "finish", {}, "Completed."))
        for index, values in enumerate(calls):
            names = ("thought", "tool_name", "tool_args", "observation")
            trajectory |= {f"{name}_{index}": value for name, value in zip(names, values, strict=True)}
        return format_trajectory(trajectory)

    return {
        "react": [
            {
                "question": GRANDMOTHER["question"],
                "trajectory": told([], finished=False),
                "next_thought": FAMILY_THOUGHTS[0],
                "next_tool_name": "search",
                "next_tool_args": {"query": FAMILY_QUERIES[0]},
            },
            {
                "question": FIRM["question"],
                "trajectory": told(founder[:1], finished=False),
                "next_thought": FIRM_THOUGHTS[1],
                "next_tool_name": "search",
                "next_tool_args": {"query": FIRM_QUERIES[1]},
            },
            {
                "question": FILMS["question"],
                "trajectory": told(births, finished=False),
                "next_thought": FILMS["reasoning"],
                "next_tool_name": "finish",
                "next_tool_args": {},
            },
        ],
        "extract": [
            {
                "question": demo["question"],
                "trajectory": told(turns),
                "reasoning": demo["reasoning"],
                "answer": demo["answer"],
            }
            for demo, turns in ((FILMS, births), (FIRM, founder), (GRANDMOTHER, family))
        ],
    }
