"""What a saved state says of the program it belongs to. DSPy zips fields by position: a state of other switches must
be refused before it is applied."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import dspy
from maps_rag.programs.errors import UserError

if TYPE_CHECKING:
    from maps_rag.programs.base import SearchProgram


def manifest_of(program: SearchProgram) -> dict[str, Any]:
    """Return the method, its knobs and the fields of every role, as JSON-able data."""
    return {
        "program": type(program).__name__,
        "settings": program.settings(),
        "fields": {name: list(predictor.signature.fields) for name, predictor in program.named_predictors()},
        "versions": {"maps-rag": version("maps-rag"), "dspy": dspy.__version__},
    }


def check_manifest(program: SearchProgram, saved: Any) -> None:
    """Raise a UserError unless a saved manifest has the method and the roles and fields of ``program``.

    Counts (directions, passages, rounds) may differ: the prompts hold for any of them.
    """
    name = type(program).__name__
    if not isinstance(saved, dict):
        raise UserError(
            f"This state was not saved by a maps_rag program: load it into the program that saved it, not {name}."
        )
    if saved.get("program") != name:
        raise UserError(
            f"This state belongs to {saved.get('program')}, not to {name}: construct {saved.get('program')}."
        )
    own = manifest_of(program)
    if saved.get("fields") == own["fields"]:
        return
    given = saved.get("settings") or {}
    other = [
        f"{knob}={given[knob]!r} (here {value!r})"
        for knob, value in own["settings"].items()
        if isinstance(value, bool | str) and knob in given and given[knob] != value
    ]
    hint = f"it was saved with {', '.join(other)}" if other else "its roles have other fields"
    raise UserError(f"This state does not fit {name}: {hint}. Construct {name} with the settings it was saved with.")
