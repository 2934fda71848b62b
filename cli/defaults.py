"""The knobs of a method where the user gives none."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

LOCAL_MODELS = ("local", "local-small")
# Ours: small models on few cores. Fewer passages and rounds keep a question within a minute or two, and one round is
# run even where the model claims to know enough. Selecting passages keeps it from making facts up and cites them; on 42
# real questions with local-small both kinds of refinement answered 7; selecting took 3,994 tokens a question of which
# the model wrote 205, distilling 4,244 and 289 (benchmarks/real_questions.py --skip 20 --n 14 --methods maps, --refine
# select and distil). Other models get the defaults of the Python interface.
LOCAL_KNOBS: dict[str, Any] = {"passages": 3, "max_rounds": 3, "min_rounds": 1, "refine": "select"}


def runs_here(lm: str, api_base: str | None = None) -> bool:
    """Return whether a model name means a model that runs in this process."""
    return api_base is None and (lm in LOCAL_MODELS or lm.endswith(".gguf"))


def choose_knobs(
    lm: str, api_base: str | None = None, has: Container[str] = tuple(LOCAL_KNOBS), **given: Any
) -> dict[str, Any]:
    """Return the knobs of a method for a model: what was given (not None) over the defaults for models of its kind.

    :param has: the knobs of the method (those of MAPS if not said); the defaults are limited to these, so that only
        what was given can be refused.
    """
    base = {name: value for name, value in LOCAL_KNOBS.items() if name in has} if runs_here(lm, api_base) else {}
    return base | {name: value for name, value in given.items() if value is not None}
