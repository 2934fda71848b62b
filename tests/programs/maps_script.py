"""A scripted run of MAPS whose every field names its round."""

from __future__ import annotations

import itertools

import dspy
from maps_rag.programs import MAPS

from tests.scripted import StubRetriever, prompts, role_of, scripted_lm


class Script:
    """Replies for R rounds of N directions, each field carrying a sentinel that names field, round and item."""

    def __init__(self, rounds: int, directions: int = 3, listed: bool = True) -> None:
        self.rounds = rounds
        self.directions = directions
        self.listed = listed
        self.plans = itertools.count(1)
        self.round = 0

    def __call__(self, system: str, user: str) -> dict[str, object]:
        role = role_of(system)
        if role == "propose":
            self.round = next(self.plans)
            t = self.round
            items = [f"SENT-item-{t}-{i}" for i in range(self.directions)]
            return {
                "known": [f"SENT-known-{t}"],
                "missing": f"SENT-missing-{t}",
                "sufficient": t > self.rounds,
                "directions" if self.listed else "queries": items,
            }
        t = self.round
        if role == "write":
            return {"queries": [f"SENT-query-{t}-{i}" for i in range(self.directions)]}
        if role == "refine":
            return {"new_knowledge": f"fact of round {t}", "new_state": f"state after round {t}"}
        return {"reasoning": "because", "answer": "the answer"}


def run(script: Script, retriever: StubRetriever | None = None, **knobs):
    lm = scripted_lm(script)
    program = MAPS(retriever or StubRetriever("SENT-passage about {query}"), **knobs)
    with dspy.context(lm=lm):
        prediction = program(question="What is asked?")
    return prediction, prompts(lm)
