"""What an evaluation will take, before it is run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
from maps_rag.metrics.cost import Prices, money
from maps_rag.optimize.runner.journal import check_folder, read_journal
from maps_rag.optimize.runner.manifest import prompts_of
from maps_rag.optimize.runner.plan import Plan
from maps_rag.optimize.runner.tally import Row, Tally
from maps_rag.programs import METHODS, SearchProgram, UserError

Span = tuple[float, float]
"""The least and the most of something."""

# Ours, for methods of which nothing has been measured. English text has about four characters a token; a passage of
# 100 words with its title, as the corpora of this field are cut, has about 140 tokens.
CHARS_PER_TOKEN = 4
PASSAGE_TOKENS = 140
REPLY_TOKENS = 120

_LETTERS = {"R": ("max_rounds",), "N": ("directions", "queries", "rewrites"), "K": ("passages",)}
_FORMULA = re.compile(r"([\dRNK+* ]+)(?:\(([\dRNK+* ]+?)\s+([a-z][^()]*)\))?")


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the questions that a method has left will take, as the least and the most.

    :param method: its name.
    :param questions: questions left, over all runs.
    :param calls: calls of the language model, without those repeated after a failure; None where neither a formula
        nor a measurement is known.
    :param retrievals: queries searched.
    :param prompt_tokens: tokens sent.
    :param completion_tokens: tokens written.
    :param measured: finished questions whose mean the numbers are; 0 where they come from the method's formulas and,
        for tokens, from the length of its prompts and our guess of a passage and a reply.
    """

    method: str
    questions: int
    calls: Span | None
    retrievals: Span | None
    prompt_tokens: Span | None
    completion_tokens: Span | None
    measured: int

    def cost(self, prices: Prices) -> Span | None:
        """Return what the tokens cost."""
        if self.prompt_tokens is None or self.completion_tokens is None:
            return None
        low, high = (
            float(money({"prompt_tokens": prompt, "completion_tokens": completion}, prices))
            for prompt, completion in zip(self.prompt_tokens, self.completion_tokens, strict=True)
        )
        return low, high


def forecast(plan: Plan, out: str | Path) -> list[Forecast]:
    """Return a forecast for each method of a plan; nothing is asked or written.

    Where the directory has answers of this run, the mean of a method's finished questions stands for those left; else
    the least number of rounds (``min_rounds``, 0 where there is no such knob) and the most (``max_rounds``) are put in
    the formulas that ``maps-rag methods`` shows.

    :param plan: from :func:`maps_rag.optimize.runner.plan.plan_evaluation`.
    :param out: the run directory.
    :raises UserError: when the directory belongs to another run.
    """
    folder = Path(out)
    check_folder(folder, plan.manifest)
    tally = Tally.read(read_journal(folder), plan.totals())
    with dspy.context(**({} if plan.lm is None else {"lm": plan.lm})):
        return [_forecast(name, program, tally.rows[name]) for name, program in plan.methods.items()]


def total(forecasts: Sequence[Forecast]) -> Forecast:
    """Return the sum of forecasts; unknown where one of them is."""

    def add(name: str) -> Span | None:
        spans = [getattr(item, name) for item in forecasts]
        return None if None in spans else (sum(low for low, _ in spans), sum(high for _, high in spans))

    fields = ("calls", "retrievals", "prompt_tokens", "completion_tokens")
    return Forecast(
        "all",
        sum(item.questions for item in forecasts),
        **{name: add(name) for name in fields},
        measured=sum(item.measured for item in forecasts),
    )


def _forecast(name: str, program: SearchProgram, row: Row) -> Forecast:
    left = row.total - row.finished
    if row.finished:

        def mean(counted: str) -> Span:
            expected = left * row.usage[counted] / row.finished
            return expected, expected

        spans = {what: mean(what) for what in ("calls", "retrievals", "prompt_tokens", "completion_tokens")}
        return Forecast(name, left, **spans, measured=row.finished)
    method = METHODS.get(name)
    if method is None or not isinstance(program, method.cls):
        return Forecast(name, left, None, None, None, None, measured=0)
    settings = program.settings()
    try:
        calls = span(method.calls, settings, settings.get("max_calls"))
        retrievals = span(method.retrievals, settings)
    except UserError:
        return Forecast(name, left, None, None, None, None, measured=0)
    roles = prompts_of(program)
    fixed = sum(len(json.dumps(role, default=str)) for role in roles.values()) / len(roles) / CHARS_PER_TOKEN
    found = settings.get("passages", 0) * PASSAGE_TOKENS
    return Forecast(
        name,
        left,
        calls=(left * calls[0], left * calls[1]),
        retrievals=(left * retrievals[0], left * retrievals[1]),
        prompt_tokens=(
            left * (calls[0] * fixed + retrievals[0] * found),
            left * (calls[1] * fixed + retrievals[1] * found),
        ),
        completion_tokens=(left * calls[0] * REPLY_TOKENS, left * calls[1] * REPLY_TOKENS),
        measured=0,
    )


def span(formula: str, settings: Mapping[str, Any], limit: int | None = None) -> Span:
    """Return the least and the most that a formula of the registry comes to.

    A formula is a sum of products of numbers and of R, N and K, perhaps with another in brackets and when it holds:
    "3R + 2 (3R + 1 at the cap)".

    :param settings: the knobs of the program.
    :param limit: the most that a budget allows.
    :raises UserError: when the formula has another form, or a letter that the program has no knob for.
    """
    match = _FORMULA.fullmatch(formula.strip())
    if match is None:
        raise UserError(f"{formula!r} is no formula in R, N and K.")
    usual, other, when = match.groups()
    least = _letters(settings) | {"R": settings.get("min_rounds", 0)}
    most = _letters(settings)
    low, high = [_value(usual, least)], [_value(usual, most)]
    if other is not None:
        if "cap" in when:
            high = [_value(other, most)]
        else:
            low.append(_value(other, least))
            high.append(_value(other, most))
    ceiling = float("inf") if limit is None else float(limit)
    return min(*low, ceiling), min(max(high), ceiling)


def _letters(settings: Mapping[str, Any]) -> dict[str, int]:
    return {
        letter: settings[name] for letter, names in _LETTERS.items() for name in names if settings.get(name) is not None
    }


def _value(expression: str, letters: Mapping[str, int]) -> float:
    value = 0.0
    for term in expression.split("+"):
        product = 1.0
        for factor in re.findall(r"\d+|[RNK]", term):
            if factor.isdigit():
                product *= int(factor)
            elif factor in letters:
                product *= letters[factor]
            else:
                raise UserError(f"{expression.strip()!r} needs {factor}, for which the program has no knob.")
        value += product
    return value
