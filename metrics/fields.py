"""How the metrics read a gold example and a prediction: which fields, which types, and what is an error.

Gold (a ``dspy.Example`` or a mapping):

- ``answers``: a list of accepted answers; or, where it is missing or None, ``answer``: one string or a list.
- ``choices``: for multiple choice, the option texts as a list (lettered A, B, ... in order) or as a mapping from
  letter to text. The right one is ``choice`` or, without it, ``answer``: a letter or the text of one option. A missing,
  None or empty ``choices`` means an open question.

Prediction (a ``dspy.Prediction`` or a mapping): ``answer``; ``reasoning`` and ``response`` where a metric says so. An
empty prediction (a failed question) and an answer of None count as "", so they score 0.
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from typing import Any

from maps_rag.metrics.normalize import canonical, visible
from maps_rag.programs.errors import UserError


def gold_answers(gold: Any) -> list[str]:
    """Return the accepted answers of ``gold``, at least one.

    Raises UserError, naming the fields present, if there is none or one is not a string.
    """
    given, name = _get(gold, "answers"), "answers"
    if given is None:
        given, name = _get(gold, "answer"), "answer"
        given = [given] if isinstance(given, str) else given
    if given is None:
        raise UserError(f"A gold example needs 'answers' (a list of strings) or 'answer'; {_fields(gold)}.")
    if not isinstance(given, list | tuple) or not all(isinstance(answer, str) for answer in given):
        raise UserError(f"Gold '{name}' must be a list of strings, but is {given!r}; {_fields(gold)}.")
    if not given:
        raise UserError(f"Gold '{name}' is an empty list: give at least one answer; {_fields(gold)}.")
    return list(given)


def gold_choices(gold: Any) -> dict[str, str]:
    """Return the options of a multiple-choice gold by upper-case letter; empty for an open question.

    Raises UserError if ``choices`` is neither a list of strings nor a mapping from single letters to strings.
    """
    return letter_choices(_get(gold, "choices"))


def letter_choices(choices: Any) -> dict[str, str]:
    """Return ``choices`` (a list of texts, a mapping from letter to text, or None) by upper-case letter."""
    if choices is None:
        return {}
    if isinstance(choices, Mapping):
        lettered = {str(letter).strip().upper(): text for letter, text in choices.items()}
        valid = len(lettered) == len(choices)
    else:
        valid = isinstance(choices, list | tuple) and len(choices) <= len(string.ascii_uppercase)
        lettered = dict(zip(string.ascii_uppercase, choices, strict=False)) if valid else {}
    if not valid or not all(
        len(letter) == 1 and letter in string.ascii_uppercase and isinstance(text, str)
        for letter, text in lettered.items()
    ):
        raise UserError(
            f"Gold 'choices' must be a list of at most 26 strings or map single letters to strings, but is {choices!r}."
        )
    return lettered


def gold_letter(gold: Any) -> str:
    """Return the letter of the right option of a multiple-choice ``gold``.

    Raises UserError if there are no ``choices``, or if ``choice`` (else ``answer``) names none or several of them.
    """
    choices = gold_choices(gold)
    if not choices:
        raise UserError(f"A multiple-choice gold needs 'choices' (a list of option texts); {_fields(gold)}.")
    named = _get(gold, "choice")
    given = gold_answers(gold) if named is None else [named]
    letters = {letter for answer in given for letter in _matching(answer, choices)}
    if len(letters) != 1:
        raise UserError(
            f"The right option {given!r} must be one letter among {', '.join(choices)} or the text of exactly one "
            f"option; {_fields(gold)}."
        )
    return letters.pop()


def predicted_answer(pred: Any) -> str:
    """Return the visible answer of ``pred`` (think blocks removed); "" if it is None or the prediction is empty.

    Numbers become their text and booleans "yes" or "no", for programs whose answer field is typed. Raises UserError,
    naming the fields present, if a prediction with other fields has no ``answer``, or one of another type.
    """
    if pred is None or (not _has(pred, "answer") and not _names(pred) and _readable(pred)):
        return ""
    if not _has(pred, "answer"):
        raise UserError(f"A prediction needs 'answer'; {_fields(pred)}.")
    return _text(pred, "answer")


def predicted_response(pred: Any) -> str:
    """Return the whole visible response of ``pred``: ``response`` if it is there, else ``reasoning`` and ``answer``."""
    if pred is not None and _get(pred, "response") is not None:
        return _text(pred, "response")
    answer = predicted_answer(pred)
    reasoning = "" if pred is None or _get(pred, "reasoning") is None else _text(pred, "reasoning")
    return f"{reasoning}\n{answer}".strip()


def _matching(answer: Any, choices: Mapping[str, str]) -> list[str]:
    if not isinstance(answer, str):
        return []
    letter = answer.strip().strip("().").upper()
    if letter in choices:
        return [letter]
    return [letter for letter, text in choices.items() if canonical(text) == canonical(answer)]


def _text(pred: Any, name: str) -> str:
    value = _get(pred, name)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return visible(str(value))
    raise UserError(f"Predicted '{name}' must be text or a number, but is a {type(value).__name__}; {_fields(pred)}.")


def _readable(record: Any) -> bool:
    # dspy.Example and dspy.Prediction have keys() and get() but are no Mapping.
    return hasattr(record, "keys") and hasattr(record, "get")


def _names(record: Any) -> list[str]:
    return [str(name) for name in record.keys()] if _readable(record) else []  # noqa: SIM118


def _has(record: Any, name: str) -> bool:
    return name in _names(record)


def _get(record: Any, name: str) -> Any:
    return record.get(name) if _has(record, name) else None


def _fields(record: Any) -> str:
    if not _readable(record):
        return f"given was a {type(record).__name__}, not an example or a mapping"
    return f"its fields are: {', '.join(_names(record)) or 'none'}"
