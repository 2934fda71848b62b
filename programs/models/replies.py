"""How a reply ended, which DSPy does not hand to its adapters."""

from __future__ import annotations

from typing import Any

LOOK_BACK = 64


def finish_reasons(lm: Any, outputs: list[Any]) -> list[str] | None:
    """Return how each output of the call that gave ``outputs`` ended, or None where the history does not say.

    The history entry is found by the identity of its outputs, so calls of other threads cannot be mistaken for it.

    :param lm: The language model that was called.
    :param outputs: The very list the call returned.
    """
    for entry in reversed(lm.history[-LOOK_BACK:]):
        if entry.get("outputs") is outputs:
            return _reasons(entry.get("response"), len(outputs))
    return None


def _reasons(response: Any, count: int) -> list[str] | None:
    if isinstance(response, (list, tuple)):
        found = [getattr(item, "finish_reason", None) for item in response]
    elif hasattr(response, "finish_reason"):
        found = [response.finish_reason]
    else:
        choices = getattr(response, "choices", None) or []
        found = [getattr(choice, "finish_reason", None) for choice in choices]
    return [str(reason) for reason in found] if len(found) == count and all(found) else None


def is_cut(text: str, reason: str | None) -> bool:
    """Return whether a JSON reply breaks off: by its finish reason, or by its brackets where that is not known.

    :param text: The reply without its thinking.
    :param reason: The finish reason, None where it is not known.
    """
    if reason is not None and reason != "length":
        return False
    start = text.find("{")
    if start < 0:
        return reason == "length"
    return _is_open(text[start:])


def _is_open(text: str) -> bool:
    """Return whether the object that ``text`` begins with is never closed."""
    depth, quoted, escaped = 0, False, False
    for character in text:
        if quoted:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                quoted = False
        elif character == '"':
            quoted = True
        elif character in "{[":
            depth += 1
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return False
    return True
