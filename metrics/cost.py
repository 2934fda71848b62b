"""What a question cost: calls, requests, tokens, retrievals and seconds, by role and by round, and in money.

Everything is read from the trajectory, where the driver wrote down each request as it was made, retries and replies out
of a cache included; nothing comes from DSPy's own counters, which lose the usage of threads.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maps_rag.programs.errors import UserError

_SUMMED = (
    "requests",
    "retries",
    "cache_hits",
    "prompt_tokens",
    "completion_tokens",
    "cached_prompt_tokens",
    "billed_tokens",
)
_PER = 1_000_000


@dataclass(frozen=True, slots=True)
class Prices:
    """What a million tokens cost, in any one currency.

    :param prompt: tokens sent.
    :param completion: tokens written.
    :param cached_prompt: tokens sent that the server had in its prefix cache; None: as ``prompt``.
    :raises UserError: when a price is negative or no finite number.
    """

    prompt: float
    completion: float
    cached_prompt: float | None = None

    def __post_init__(self) -> None:
        for name in ("prompt", "completion", "cached_prompt"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise UserError(f"The price of {name} tokens must be 0 or more per million, but is {value!r}.")


def question_cost(trajectory: Mapping[str, Any]) -> dict[str, Any]:
    """Return what one question cost, in all, ``by_role`` and ``by_round``.

    Each has ``calls`` (LM calls as the program sees them), ``requests`` (those made for them, ``retries`` and replies
    out of DSPy's cache, ``cache_hits``, among them), ``prompt_tokens`` and ``completion_tokens`` (logical: replies out
    of the cache count), ``cached_prompt_tokens`` (read from the server's prefix cache), ``billed_tokens`` (prompt and
    completion without replies out of the cache) and ``seconds``. In all and by round there are ``retrievals`` too: a
    role searches nothing.

    ``seconds`` in all are those of the question on the clock; of a role or round they are the sum over its calls, so
    that calls side by side add up to more, and searches are not in them. Rounds are keyed "1", "2", ... as in JSON;
    the calls after the last retrieval (the last plan, the answer) stand under the number that would have been next.

    :param trajectory: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives it.
    """
    calls, rounds = trajectory["calls"], trajectory["rounds"]
    searches = {int(item["index"]): len(item["searches"]) for item in rounds}
    numbers = sorted(searches.keys() | {int(call["round"]) for call in calls})
    roles = dict.fromkeys(call["role"] for call in calls)
    return {
        **_sum(calls),
        "retrievals": sum(searches.values()),
        "seconds": trajectory["seconds"],
        "by_role": {role: _sum(call for call in calls if call["role"] == role) for role in roles},
        "by_round": {
            str(number): {
                **_sum(call for call in calls if call["round"] == number),
                "retrievals": searches.get(number, 0),
            }
            for number in numbers
        },
    }


def _sum(calls: Iterable[Mapping[str, Any]]) -> dict[str, int | float]:
    chosen = list(calls)
    counts: dict[str, int | float] = {"calls": len(chosen)}
    counts.update({name: sum(call[name] for call in chosen) for name in _SUMMED})
    counts["seconds"] = sum(call["seconds"] for call in chosen)
    return counts


def money(cost: Mapping[str, Any], prices: Prices, *, logical: bool = False) -> float:
    """Return what tokens cost, in the currency of the prices.

    Where only part of the tokens was billed, that part of the whole price is returned: how prompt and completion share
    in it is not known. It is exact where all or none was billed.

    :param cost: ``prompt_tokens`` and ``completion_tokens``; ``cached_prompt_tokens`` and ``billed_tokens`` where they
        are known, as in the results of :func:`question_cost`, their parts, and the usage of a prediction.
    :param logical: the price as if no reply had come out of DSPy's cache.
    """
    prompt, completion = cost["prompt_tokens"], cost["completion_tokens"]
    cached = min(cost.get("cached_prompt_tokens", 0), prompt)
    cached_price = prices.prompt if prices.cached_prompt is None else prices.cached_prompt
    whole = ((prompt - cached) * prices.prompt + cached * cached_price + completion * prices.completion) / _PER
    tokens = prompt + completion
    if logical or "billed_tokens" not in cost or not tokens:
        return float(whole)
    return float(whole * cost["billed_tokens"] / tokens)
