"""What was run: models, sets, methods, versions, and what is not at its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maps_rag.optimize.reporting.document import NONE, Section, Table
from maps_rag.optimize.reporting.results import Results, expected_questions


def setting_section(results: Results) -> Section:
    """Return what the manifests say, so that every number can be traced to its run."""
    runs = Table(
        "Runs",
        ("directory", "begun", "model", "model settings", "index", "questions", "runs", "metric", "versions"),
        tuple(
            (
                run.path.name,
                str(run.manifest.get("created", NONE)),
                run.model,
                _settings({k: v for k, v in (run.manifest.get("lm") or {}).items() if k != "model"}),
                _settings(run.manifest.get("index") or {}),
                "; ".join(_dataset(record) for record in run.datasets) or NONE,
                str(run.manifest.get("runs", 1)),
                str(run.manifest.get("metric_version", NONE)),
                _settings(run.manifest.get("versions") or {}),
            )
            for run in results.runs
        ),
        left=9,
    )
    methods: dict[str, tuple[str, ...]] = {}
    for number, run in enumerate(results.runs):
        for name, method in run.methods.items():
            label = results.labels[number, name]
            if label in results.methods:
                methods[label] = (label, *_method(method))
    table = Table("Methods", ("method", "program", "settings", "prompts", "kind"), tuple(methods.values()), left=5)
    open_cells = [
        f"{label} on {name}: {found:,} of {size:,} questions"
        for label, name, found, size in expected_questions(results)
    ]
    text = [f"Not at its end: {'; '.join(open_cells)}."] if open_cells else []
    return Section("What was run", tuple(text), tuple(table for table in (runs, table) if table.rows))


def _method(method: Mapping[str, Any]) -> tuple[str, ...]:
    """Return program, settings, hash of the prompts and kind of a method; roles with models of their own name them."""
    models = {f"model of {role}": lm.get("model") for role, lm in (method.get("models") or {}).items()}
    return (
        str(method.get("program", NONE)),
        _settings({**(method.get("settings") or {}), **models}),
        str(method.get("prompts", NONE))[:12],
        "re-implemented by prompts; the original is trained" if method.get("trained") else "prompted",
    )


def _dataset(record: Mapping[str, Any]) -> str:
    size = len(record.get("ids") or ()) or record.get("n", NONE)
    seed = "not drawn by a seed" if record.get("seed") is None else f"seed {record['seed']}"
    return f"{record.get('name')} (n {size}, {seed}, hash {str(record.get('hash', NONE))[:12]})"


def _settings(values: Mapping[str, Any] | None) -> str:
    """Return settings as "name=value", with long values cut."""
    shown = []
    for name, value in (values or {}).items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown.append(f"{name}={text if len(text) <= 60 else text[:57] + '...'}")
    return ", ".join(shown) or NONE
