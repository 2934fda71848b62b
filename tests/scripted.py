"""A scripted language model and retriever: deterministic stand-ins for tests of structure.

The LM is a real ``dspy.LM`` over an engine object, so adapters, callbacks, history, usage and cache behave as with a
provider.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy
from dspy import lm15
from maps_rag.programs.types import Passage

Reply = str | Mapping[str, Any] | Exception


class ScriptEngine:
    """Answers by a function of (system prompt, user prompt); records every prompt it was sent."""

    def __init__(self, reply: Callable[[str, str], Reply]) -> None:
        self.reply = reply
        self.prompts: list[str] = []
        self._lock = threading.Lock()

    def complete(self, request: lm15.Request) -> lm15.Response:
        user = request.messages[-1].text or ""
        everything = "\n".join([request.system or "", *(message.text or "" for message in request.messages)])
        with self._lock:
            self.prompts.append(everything)
            reply = self.reply(request.system or "", user)
        if isinstance(reply, Exception):
            raise reply
        finish = "stop"
        if isinstance(reply, str) and reply.startswith("<cut>"):
            reply, finish = reply.removeprefix("<cut>"), "length"
        text = reply if isinstance(reply, str) else chat(reply)
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(text),
            finish_reason=finish,
            usage=lm15.Usage(len(everything.split()), len(text.split()), len(everything.split()) + len(text.split())),
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> ScriptEngine:
        return self


class AsyncScriptEngine:
    """The awaitable face of a :class:`ScriptEngine`."""

    def __init__(self, engine: ScriptEngine) -> None:
        self.engine = engine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        return self.engine.complete(request)


def chat(fields: Mapping[str, Any]) -> str:
    """Write fields as DSPy's ChatAdapter expects them."""
    shown = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return "\n\n".join([*(f"[[ ## {name} ## ]]\n{value}" for name, value in shown.items()), "[[ ## completed ## ]]"])


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


def role_of(system: str) -> str:
    """Return which role of MAPS a system prompt belongs to, by its output fields."""
    outputs = system.split("Your output fields are:", 1)[1].split("All interactions", 1)[0]
    names = {line.split("`")[1] for line in outputs.splitlines() if "`" in line}
    if "sufficient" in names:
        return "propose"
    for name, role in ROLE_BY_OUTPUT.items():
        if name in names:
            return role
    raise AssertionError(f"no known role in {names}")


class StubRetriever:
    """Returns ``k`` passages per query that no other query gets; records every batch."""

    def __init__(self, text: str = "text about {query}") -> None:
        self.text = text
        self.batches: list[tuple[list[str], int]] = []
        self._lock = threading.Lock()

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
