"""What the tests of every method share: scripted replies by output field, and checks that hold for all methods."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import dspy
from maps_rag.programs import SearchProgram

from tests.scripted import Reply, output_fields, prompts, scripted_lm

QUESTION = "What is asked?"
NO_FALLBACK = dspy.ChatAdapter(use_json_adapter_fallback=False)


class ByOutput:
    """Replies by the output field that tells a role from the others.

    ``ByOutput(thought=[{...}, {...}], answer={...})``: a list is used up call by call, and its last reply stays.
    """

    def __init__(self, **replies: Reply | list[Reply]) -> None:
        self.replies: dict[str, Any] = {k: list(v) if isinstance(v, list) else v for k, v in replies.items()}

    def __call__(self, system: str, user: str) -> Reply:
        outputs = output_fields(system)
        for field, reply in self.replies.items():
            if field in outputs:
                if not isinstance(reply, list):
                    return reply
                return reply.pop(0) if len(reply) > 1 else reply[0]
        raise AssertionError(f"no reply for a role with the outputs {sorted(outputs)}")


def run(program: SearchProgram, reply: Callable[[str, str], Reply], **inputs: Any) -> tuple[dspy.Prediction, list[str]]:
    """Answer one question under a scripted model; return the prediction and every prompt."""
    lm = scripted_lm(reply)
    with dspy.context(lm=lm, adapter=NO_FALLBACK):
        prediction = program(question=QUESTION, **inputs)
    return prediction, prompts(lm)


def titles_in(prompt: str) -> list[str]:
    """Return the titles of a stub retriever's passages in a prompt, in order: "query rank"."""
    return re.findall(r"Title (.+?): text about", prompt)


def queries_of(prediction: dspy.Prediction) -> list[list[str]]:
    """Return the searched queries, round by round."""
    return [[search["query"] for search in record["searches"]] for record in prediction.trajectory["rounds"]]


def roles_of(prediction: dspy.Prediction) -> list[str]:
    return [call["role"] for call in prediction.trajectory["calls"]]


def without_times(prediction: dspy.Prediction) -> dict[str, Any]:
    trajectory = json.loads(json.dumps(prediction.trajectory))
    for timed in (trajectory, trajectory["usage"], *trajectory["calls"]):
        timed["seconds"] = 0
    return trajectory


def check_sync_async_and_stream_are_equal(
    make: Callable[[], SearchProgram], script: Callable[[], Callable[[str, str], Reply]]
) -> None:
    """Check that the three ways to run a program record the same; each gets a fresh program and script."""
    synced, _ = run(make(), script())
    with dspy.context(lm=scripted_lm(script()), adapter=NO_FALLBACK):
        awaited = asyncio.run(make().acall(question=QUESTION))
    with dspy.context(lm=scripted_lm(script()), adapter=NO_FALLBACK):
        *rounds, streamed = make().stream(QUESTION)
    assert without_times(synced) == without_times(awaited) == without_times(streamed)
    assert len(rounds) == synced.rounds
    assert dict(synced.items()).keys() == dict(awaited.items()).keys()


def check_saving(
    make: Callable[..., SearchProgram],
    script: Callable[[], Callable[[str, str], Reply]],
    path: Any,
    demo: Mapping[str, Any],
) -> None:
    """Check that a program with changed prompts sends the same prompts after saving and loading."""
    program = make()
    for name, predictor in program.named_predictors():
        predictor.signature = predictor.signature.with_instructions(f"Do as the compiled {name} does.")
    program.answer.demos = [dspy.Example(**demo, augmented=True)]
    program.save(path / "program.json")
    twin = make()
    twin.load(path / "program.json")
    _, sent = run(program, script())
    _, again = run(twin, script())
    assert again == sent
    assert all("Do as the compiled" in prompt for prompt in sent)
    assert demo["answer"] in sent[-1]
