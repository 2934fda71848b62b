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


MANIFEST_KEY = "maps_rag"
_ROLE_KEYS = {"traces", "train", "demos", "signature", "lm"}


def check_state(program: SearchProgram, state: Any) -> None:
    """Raise a UserError unless a saved state is whole and belongs to ``program``; DSPy would apply half of another."""
    check_manifest(program, state.get(MANIFEST_KEY) if isinstance(state, dict) else None)
    for role, predictor in program.named_predictors():
        problem = _problem(state.get(role), len(predictor.signature.fields))
        if problem:
            raise UserError(f"This state is damaged ({role}: {problem}): save the program anew.")


def _problem(saved: Any, fields: int) -> str:
    """Say what is wrong with the saved state of one role, or nothing."""
    if not isinstance(saved, dict) or not {"demos", "signature"} <= set(saved):
        return "it is no state of a predictor"
    if unknown := sorted(set(saved) - _ROLE_KEYS):
        return f"unknown {', '.join(map(str, unknown))}"
    demos = saved["demos"]
    if not isinstance(demos, list) or not all(isinstance(demo, dict | dspy.Example) for demo in demos):
        return "demos must be a list of objects"
    signature = saved["signature"]
    if not isinstance(signature, dict) or not isinstance(signature.get("instructions"), str):
        return "the signature has no instructions"
    kept = signature.get("fields")
    if not isinstance(kept, list) or len(kept) != fields or not all(isinstance(field, dict) for field in kept):
        return f"the signature must have {fields} fields"
    return "" if isinstance(saved.get("lm"), dict | None) else "lm must be an object or null"


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
