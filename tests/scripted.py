"""A scripted language model and retriever: deterministic stand-ins for tests of structure.

The LM is a real ``dspy.LM`` over an engine object, so adapters, callbacks, history, usage and cache behave as with a
provider.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import dspy
from dspy import lm15
from maps_rag.programs.types import Passage

Reply = str | Mapping[str, Any] | Exception


class ScriptEngine:
    """Answers by a function of (system prompt, user prompt); records every request and what it cost.

    A reply that is a mapping is written in the format the system prompt asks for; a string is sent as it is, and one
    that begins with ``<cut>`` as a reply that reached max_tokens; an exception is raised.
    """

    def __init__(self, reply: Callable[[str, str], Reply]) -> None:
        self.reply = reply
        self.prompts: list[str] = []
        self.requests: list[lm15.Request] = []
        self.input_tokens = 0
        self.output_tokens = 0
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        system, user = request.system or "", request.messages[-1].text or ""
        everything = "\n".join([system, *(message.text or "" for message in request.messages)])
        with self._lock:
            self.prompts.append(everything)
            self.requests.append(request)
            reply = self.reply(system, user)
        if isinstance(reply, Exception):
            raise reply
        finish = "stop"
        if isinstance(reply, str) and reply.startswith("<cut>"):
            reply, finish = reply.removeprefix("<cut>"), "length"
        text = reply if isinstance(reply, str) else written(reply, system)
        sent, received = len(everything.split()), len(text.split())
        with self._lock:
            self.input_tokens += sent
            self.output_tokens += received
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(text),
            finish_reason=finish,
            usage=lm15.Usage(sent, received, sent + received),
        )

    def stream(self, request: lm15.Request) -> Iterator[Any]:
        for event in lm15.response_to_events(self.complete(request)):
            if event.type != "delta":
                yield event
                continue
            for word in re.findall(r"\s*\S+|\s+$", event.delta.text):
                yield replace(event, delta=replace(event.delta, text=word))

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptEngine:
        return self


class AsyncScriptEngine:
    """The awaitable face of a :class:`ScriptEngine`."""

    def __init__(self, engine: ScriptEngine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return self.engine.complete(request)

    async def stream(self, request: lm15.Request) -> AsyncIterator[Any]:
        for event in self.engine.stream(request):
            yield event

    def __deepcopy__(self, memo: dict[int, Any]) -> AsyncScriptEngine:
        return self


def written(fields: Mapping[str, Any], system: str) -> str:
    """Write fields in the format that a system prompt asks for."""
    if "a JSON object with the following fields" in system or "Reply with one JSON object" in system:
        return json.dumps(fields)
    if "<question>" in system:
        return xml(fields)
    return chat(fields)


def chat(fields: Mapping[str, Any]) -> str:
    """Write fields as DSPy's ChatAdapter expects them."""
    shown = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{value}" for name, value in shown.items()), "[[ ## completed ## ]]"])


def xml(fields: Mapping[str, Any]) -> str:
    """Write fields as DSPy's XMLAdapter expects them."""

    def inner(value: Any) -> str:
        return "".join(f"<item>{item}</item>" for item in value) if isinstance(value, list) else str(value)

    return "\n".join(f"<{name}>{inner(value)}</{name}>" for name, value in fields.items())


def scripted_lm(reply: Callable[[str, str], Reply], **options: Any) -> dspy.LM:
    """Return a dspy.LM that answers by ``reply(system, user)``; its engine is ``lm.engine``."""
    engine = ScriptEngine(reply)
    options.setdefault("cache", False)
    return dspy.LM("scripted/model", engine=engine, async_engine=AsyncScriptEngine(engine), **options)


def prompts(lm: dspy.LM) -> list[str]:
    """Return every prompt the LM was sent, in order."""
    return lm.engine.prompts


ROLE_BY_OUTPUT = {
    "directions": "propose",
    "queries": "write",
    "new_knowledge": "refine",
    "selected": "refine",
    "answer": "answer",
}


def output_fields(system: str) -> set[str]:
    """Return the names of the output fields that a system prompt asks for."""
    if "Reply with one JSON object" in system:
        return set(re.findall(r"^- (\w+)", system.split("Reply with one JSON object", 1)[1], re.MULTILINE))
    outputs = system.split("Your output fields are:", 1)[1].split("All interactions", 1)[0]
    return set(re.findall(r"^\d+\. `(\w+)`", outputs, re.MULTILINE))


def role_of(system: str) -> str:
    """Return which role of MAPS a system prompt belongs to, by its output fields."""
    names = output_fields(system)
    if "sufficient" in names:
        return "propose"
    for name, role in ROLE_BY_OUTPUT.items():
        if name in names:
            return role
    raise AssertionError(f"no known role in {names}")


class Roles:
    """Replies for every role of MAPS, told from the prompt alone: enough is known after ``rounds`` pieces of knowledge.

    A role named in ``replies`` answers with that instead: a reply, a function of the user prompt, or a list of replies
    for its first calls, after which it answers as usual.
    """

    def __init__(self, rounds: int = 1, directions: int = 2, listed: bool = True, **replies: Any) -> None:
        self.rounds = rounds
        self.directions = directions
        self.listed = listed
        self.replies = {role: list(reply) if isinstance(reply, list) else reply for role, reply in replies.items()}

    def __call__(self, system: str, user: str) -> Reply:
        role = role_of(system)
        if role in self.replies:
            special = self.replies[role]
            if isinstance(special, list):
                if special:
                    return special.pop(0)
            else:
                return special(user) if callable(special) else special
        return self.usual(role, user)

    def usual(self, role: str, user: str) -> Reply:
        known = len(set(re.findall(r"fact number \d+", user)))
        numbers = range(self.directions)
        match role:
            case "propose":
                return {
                    "known": [],
                    "missing": f"missing {known}",
                    "sufficient": known >= self.rounds,
                    "directions" if self.listed else "queries": [f"direction {known} {i}" for i in numbers],
                }
            case "write":
                return {"queries": [f"query {known} {i}" for i in numbers]}
            case "refine":
                return {"new_knowledge": f"fact number {known}", "new_state": f"state {known}"}
        return {"reasoning": "the reasoning", "answer": "the answer"}


class StubRetriever:
    """Returns ``k`` passages per query that no other query gets; records every batch."""

    def __init__(self, text: str = "text about {query}") -> None:
        self.text = text
        self.batches: list[tuple[list[str], int]] = []
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return StubRetriever, (self.text,)

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        with self._lock:
            self.batches.append((list(queries), k))
        return [
            [
                Passage(
                    f"{query}/{rank}", f"Title {query} {rank}", self.text.format(query=f"{query} {rank}"), 1 - rank / 10
                )
                for rank in range(k)
            ]
            for query in queries
        ]
