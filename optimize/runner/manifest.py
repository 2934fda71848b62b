"""What a run directory says about itself: ``manifest.json``, and what may differ when a run goes on (nothing)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dspy
from maps_rag.metrics import METRIC_VERSION
from maps_rag.optimize.data import data_hash
from maps_rag.programs import METHODS, SearchProgram, UserError
from maps_rag.programs.lm_call import inner_predict, language_model_of
from maps_rag.programs.models import adapter_for

MANIFEST = "manifest.json"
FORMAT = 1
_NEW = ".manifest.json"
_SECRET = re.compile(r"key|token(?!s)|secret|password|auth|header|cred")
# A server that moved is still the same model; the rollout belongs to a run.
_PLACE = ("api_base", "base_url", "rollout_id")
_SHOWN = 3


def manifest_of(
    methods: Mapping[str, SearchProgram], questions: Sequence[dspy.Example], runs: int, name: str, seed: int | None
) -> dict[str, Any]:
    """Return the manifest of a run, as JSON-able data.

    Call it where the language model of the run is set: prompts depend on it.

    :param name: the name of the data set where a question has none.
    :param seed: the seed that the questions were drawn with.
    :raises UserError: when a method has no language model, or two search different indexes.
    """
    models = [language_model_of(predictor) for program in methods.values() for predictor in program.predictors()]
    shared = describe_lm(dspy.settings.lm or models[0])
    sets = _datasets(questions, name, seed)
    return {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in ("maps-rag", "dspy")},
        "lm": shared,
        "index": _index_of(methods),
        "dataset": sets[0] if len(sets) == 1 else sets,
        "methods": {method: _method(method, program, shared) for method, program in methods.items()},
        "runs": runs,
        "metric_version": METRIC_VERSION,
    }


def describe_lm(lm: dspy.LM) -> dict[str, Any]:
    """Return a language model's name, adapter and sampling parameters; neither secrets nor addresses."""
    kept = {
        key: value
        for key, value in sorted(lm.kwargs.items())
        if value is not None and key not in _PLACE and not _SECRET.search(key)
    }
    adapter = dspy.settings.adapter or adapter_for(lm) or dspy.ChatAdapter()
    return _plain({"model": lm.model, "adapter": type(adapter).__name__} | kept)


def prompts_of(program: SearchProgram) -> dict[str, Any]:
    """Return instructions, fields and demos of every role, those that ship with the package included where used."""
    prompts = {}
    for role, predictor in program.named_predictors():
        # The predictor as the program holds it: a ChainOfThought has one inside.
        held = getattr(program, role.partition(".")[0], predictor)
        shipped = program.demos_for(held if inner_predict(held) is predictor else predictor)
        prompts[role] = {
            **predictor.signature.dump_state(),
            "types": {name: str(field.annotation) for name, field in predictor.signature.fields.items()},
            "demos": [dict(demo.items()) for demo in predictor.demos or shipped],
        }
    return prompts


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest, whole or not at all."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / _NEW).write_bytes(text.encode("utf-8", errors="backslashreplace"))
    (folder / _NEW).replace(folder / MANIFEST)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a run directory.

    :raises UserError: when it is not JSON, or of another format.
    """
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UserError(f"{path} is damaged ({error}): name a new directory.") from None
    found = manifest.get("format") if isinstance(manifest, dict) else None
    if found != FORMAT:
        raise UserError(f"{path} is of format {found!r}, this release writes {FORMAT}: name a new directory.")
    return dict(manifest)


def check_same(folder: Path, made: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise a UserError that names what differs, with both values, unless two manifests say the same of a run."""
    plain = json.loads(json.dumps(now))
    differing = [entry for entry in _differences(made, plain) if entry[0] != "created"]
    if not differing:
        return
    shown = differing[:_SHOWN]
    said = "; ".join(f"{field} was {_short(before)} and is now {_short(after)}" for field, before, after in shown)
    more = f"; {len(differing) - _SHOWN} more differ" if len(differing) > _SHOWN else ""
    raise UserError(
        f"{folder} holds another run: {said}{more}. Give the same settings to go on, or name a new directory."
    )


def _differences(was: Any, now: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for name in [*was, *(name for name in now if name not in was)]:
            yield from _differences(was.get(name), now.get(name), f"{path}.{name}" if path else name)
    elif was != now:
        yield path, was, now


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _method(name: str, program: SearchProgram, shared: Mapping[str, Any]) -> dict[str, Any]:
    known = METHODS.get(name)
    entry: dict[str, Any] = {
        "program": type(program).__name__,
        "settings": _plain(program.settings()),
        "prompts": _digest(prompts_of(program)),
        "trained": known is not None and known.trained and isinstance(program, known.cls),
    }
    own = {role: describe_lm(language_model_of(predictor)) for role, predictor in program.named_predictors()}
    if different := {role: lm for role, lm in own.items() if lm != shared}:
        entry["models"] = different
    return entry


def _index_of(methods: Mapping[str, SearchProgram]) -> dict[str, Any] | None:
    found: dict[str, Any] = {}
    for name, program in methods.items():
        retriever = program.retriever
        if (fingerprint := getattr(retriever, "fingerprint", None)) is None:
            continue
        about = retriever.index.manifest if hasattr(retriever, "index") else None
        entry = {"fingerprint": str(fingerprint)}
        if about is not None:
            entry |= {"encoder": about.encoder, "count": about.count, "corpus": about.corpus}
        found[name] = entry
    if len({entry["fingerprint"] for entry in found.values()}) > 1:
        raise UserError(
            f"The methods {', '.join(found)} search different indexes: compare them on one, or run them into "
            "directories of their own."
        )
    return next(iter(found.values()), None)


def _datasets(questions: Sequence[dspy.Example], name: str, seed: int | None) -> list[dict[str, Any]]:
    sets: dict[str, list[dspy.Example]] = {}
    for question in questions:
        sets.setdefault(str(question.get("dataset") or name), []).append(question)
    return [
        {
            "name": dataset,
            "hash": data_hash(asked),
            "n": len(asked),
            "seed": seed,
            "ids": [question.id for question in asked],
        }
        for dataset, asked in sets.items()
    ]


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return content as JSON data; of an object the class, since its text may change from process to process."""
    plain: dict[str, Any] = json.loads(json.dumps(content, default=lambda value: type(value).__name__))
    return plain


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
