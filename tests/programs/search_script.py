"""Runs a program under replies that are given one after the other, and checks that hold for every method."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import dspy
from maps_rag.programs.types import Passage

from tests.scripted import StubRetriever, prompts, scripted_lm

QUESTION = "What is asked?"
CHAT = dspy.ChatAdapter(use_json_adapter_fallback=False)


class Shelf(StubRetriever):
    """Finds the same passages, by title, for every query that has an entry: each title is id and text at once."""

    def __init__(self, **found: list[str]) -> None:
        super().__init__()
        self.found = found

    def search(self, queries, k):
        super().search(queries, k)
        return [[Passage(title, title, f"about {title}") for title in self.found[query]][:k] for query in queries]


def script(replies: list[Any]) -> dspy.LM:
    """Return an LM that gives the replies in order."""
    left = iter(list(replies))
    return scripted_lm(lambda system, user: next(left))


def run(program: dspy.Module, replies: list[Any], question: str = QUESTION, **inputs: Any):
    lm = script(replies)
    with dspy.context(lm=lm, adapter=CHAT):
        return program(question=question, **inputs), prompts(lm)


def value_of(prompt: str, name: str) -> Any:
    """Return an input of a chat prompt's last message: text, or a list where one was given."""
    text = prompt.rsplit(f"[[ ## {name} ## ]]\n", 1)[1].split("\n\n[[ ##")[0].split("\n\nRespond with")[0]
    return json.loads(text) if text.startswith("[") else text


def without_times(prediction: dspy.Prediction) -> dict[str, Any]:
    trajectory = json.loads(json.dumps(prediction.trajectory))
    for timed in (trajectory, trajectory["usage"], *trajectory["calls"]):
        timed["seconds"] = 0
    return trajectory


def check_runs_are_equal(program: dspy.Module, replies: list[Any]) -> None:
    """Check that called, awaited and streamed runs leave the same record and the same prompts."""
    sync, sent = run(program, replies)
    awaiting, streaming = script(replies), script(replies)
    with dspy.context(lm=awaiting, adapter=CHAT):
        awaited = asyncio.run(program.acall(question=QUESTION))
    with dspy.context(lm=streaming, adapter=CHAT):
        *rounds, streamed = program.stream(QUESTION)
    assert without_times(sync) == without_times(awaited) == without_times(streamed)
    # Sorted: calls side by side reach the model in any order; the record has them in order.
    assert sorted(sent) == sorted(prompts(awaiting)) == sorted(prompts(streaming))
    assert len(rounds) == sync.rounds > 0


def check_state_survives(program: dspy.Module, twin: dspy.Module, replies: list[Any], path: Any) -> None:
    """Check that changed instructions and demos reach a twin by way of a file, and so do prompts word for word."""
    for name, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"Compiled instructions of {name}.")
        fields = predictor.signature.fields.items()
        values = {field: "DEMO" for field, info in fields if info.annotation is str}
        predictor.demos = [dspy.Example(**values)]
    program.save(path)
    before = run(twin, replies)[1]
    twin.load(path)
    after = run(twin, replies)[1]
    assert after == run(program, replies)[1] != before
    assert any("Compiled instructions of" in prompt and "DEMO" in prompt for prompt in after)
