"""Writes run directories as the runner does, from a few numbers."""

import json


def line(method="maps", dataset="hotpotqa", name="q1", run=0, right=True, rounds=1, tokens=1000, **more):
    """A finished line of the journal."""
    score = float(right)
    scores = {
        **{"cover_em": score, "exact_match": 0.0, "f1": score / 2, "cover_em_substring": score},
        **{"cover_em_response": score, "cover_em_capped": score, "answer_tokens": 4.0},
    }
    calls = 3 * rounds + 2
    usage = {
        **{"calls": calls, "requests": calls + 1, "retries": 1, "cache_hits": 0, "prompt_tokens": tokens - 100},
        **{"completion_tokens": 100, "cached_prompt_tokens": 0, "billed_tokens": tokens, "retrievals": 3 * rounds},
        "seconds": 2.5,
    }
    roles = {
        "propose": {"calls": rounds + 1, "prompt_tokens": tokens - 300, "completion_tokens": 50, "seconds": 1.0},
        "answer": {"calls": 1, "prompt_tokens": 200, "completion_tokens": 50, "seconds": 1.5},
    }
    return {
        **{"method": method, "dataset": dataset, "id": name, "run": run, "answer": "Ada", "gold": ["Ada"]},
        **{"scores": scores, "rounds": rounds, "steps": rounds + 1, "stop_reason": "sufficient", "usage": usage},
        **{"cost": {"by_role": roles, "by_round": {}}, "evidence": None, "failures": {}, "seconds": 2.5},
        **more,
    }


def failed(method="maps", dataset="hotpotqa", name="q1", run=0, error="LMError: no reply"):
    """The line of a question that failed."""
    return {"method": method, "dataset": dataset, "id": name, "run": run, "error": error, "seconds": 1.0}


def choice(method="maps", name="c1", right=True, **more):
    """A finished line of a multiple-choice set."""
    content = line(method, "gpqa_diamond", name, right=right, **more)
    return content | {
        "scores": {"cover_em": float(right), "choice_accuracy": float(right)},
        "answer": "B",
        "gold": ["B"],
    }


def trajectory(content, question="Who was first?", supporting=(), rounds=None):
    """The line of the trajectories that belongs to a line of the journal."""
    text = {
        **{"index": 1, "known": [], "missing": "the year", "directions": ["the first one"], "complete": True},
        "searches": [{"query": "first programmer", "ids": ["p1", "p2"], "scores": [0.9, 0.8]}],
        "passages": [
            {"id": "p1", "title": "Ada Lovelace", "text": "Ada wrote the first programme.", "score": 0.9},
            {"id": "p2", "title": "Charles Babbage", "text": "Babbage built engines.", "score": 0.8},
        ],
        "knowledge": [{"text": "Ada was first.", "passage_id": "p1"}],
        "reasoning_state": "Ada it is.",
    }
    key = {name: content[name] for name in ("method", "dataset", "id", "run")}
    record = {"question": question, "supporting": list(supporting)}
    return {**key, **record, "trajectory": {"rounds": [text] if rounds is None else rounds}}


def manifest(lines, model="local-small", **more):
    """A manifest that fits the lines of a journal."""
    what = {"program": "MAPS", "settings": {"passages": 3}, "prompts": "0a", "trained": False}
    methods = {entry["method"]: what for entry in lines}
    ids = {}
    for entry in lines:
        ids.setdefault(entry["dataset"], {})[entry["id"]] = None
    sets = [{"name": name, "hash": "1b", "n": len(found), "seed": 0, "ids": list(found)} for name, found in ids.items()]
    return {
        **{"format": 1, "created": "2026-12-01T00:00:00Z", "versions": {"maps_rag": "0.1.0"}},
        **{"lm": {"model": model, "temperature": 0.0}, "index": {"encoder": "local", "count": 12}},
        **{"dataset": sets[0] if len(sets) == 1 else sets, "methods": methods},
        **{"runs": len({entry["run"] for entry in lines}) or 1, "metric_version": "cover-em/1", **more},
    }


def write_run(path, lines, trajectories=(), **more):
    """Write a run directory and return its path."""
    path.mkdir(parents=True)
    (path / "manifest.json").write_text(json.dumps(manifest(lines, **more)))
    write_lines(path / "journal.jsonl", lines)
    write_lines(path / "trajectories.jsonl", trajectories)
    return path


def write_lines(path, lines):
    """Write one JSON object a line."""
    path.write_text("".join(json.dumps(entry) + "\n" for entry in lines))
