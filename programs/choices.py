"""Multiple choice: options become part of the question, and the letter of one is the answer."""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from maps_rag.programs.errors import UserError

INSTRUCTION = "Answer with the letter of one option."


def with_choices(question: str, choices: Any) -> str:
    """Return a question with its options, one a line as "A. text", and the wish for a letter.

    :param choices: the texts of the options in the order of their letters, or a mapping from letter to text; None or
        an empty one leaves the question open, as it does in the metrics.
    :raises UserError: when the options are fewer than two, more than 26, empty or no text, or a letter is none.
    """
    if choices is None or (isinstance(choices, list | tuple | Mapping) and not choices):
        return question
    if isinstance(choices, Mapping):
        options = {str(letter).strip().upper(): text for letter, text in choices.items()}
        valid = len(options) == len(choices)
    else:
        valid = isinstance(choices, list | tuple) and len(choices) <= len(string.ascii_uppercase)
        options = dict(zip(string.ascii_uppercase, choices, strict=False)) if valid else {}
    if not valid or len(options) < 2 or not all(_usable(letter, text) for letter, text in options.items()):
        raise UserError(
            f"choices must be a list of 2 to 26 texts, or map letters to at least two texts, but got {choices!r}."
        )
    lines = [f"{letter}. {' '.join(text.split())}" for letter, text in options.items()]
    return "\n".join([question, *lines, INSTRUCTION])


def _usable(letter: str, text: Any) -> bool:
    return len(letter) == 1 and letter in string.ascii_uppercase and isinstance(text, str) and bool(text.strip())
