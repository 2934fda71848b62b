"""MAPS and one plain retrieve-then-answer call on real multi-hop questions, with a small local model.

    python benchmarks/real_questions.py                       # 20 questions a set, local-small
    python benchmarks/real_questions.py --lm local --n 6
    python benchmarks/real_questions.py --show                # the table of what was run so far

Every question is one line of a journal, flushed as it ends: stop it at any time, run it again to go on. A line is
reused only for the same model, method, settings and prompts. Bar: every question has ended, with an answer or a reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import dspy
from common import data_dir, read_jsonl, show_table
from maps_rag.metrics import cover_em
from maps_rag.optimize import mini
from maps_rag.programs import MAPS, E5Retriever, SearchProgram, VanillaRAG, build_index, language_model
from maps_rag.programs.cache import cache_dir
from maps_rag.programs.models import StructuredAdapter

SETS = ("hotpotqa_dev", "2wikimultihopqa_dev", "musique_dev")


def load_questions(data: Path | None, name: str, skip: int, n: int) -> list[dict[str, Any]]:
    """Return ``n`` questions of a set after the first ``skip``; gold passages are {title, text} or ids."""
    if data is None:
        rows: list[dict[str, Any]] = [dict(example) for example in mini.load_questions() if example.hops > 1]
    else:
        rows = list(read_jsonl(data / f"{name}.jsonl"))
    return rows[skip : skip + n]


def gold_ids(question: dict[str, Any], by_content: dict[tuple[str, str], str]) -> set[str]:
    """Return the corpus ids of a question's gold passages."""
    return {
        gold if isinstance(gold, str) else by_content[gold["title"], gold["text"]] for gold in question["supporting"]
    }


def open_index(data: Path | None, given: Path | None) -> E5Retriever:
    """Open the index over the corpus, building it in the cache on first use."""
    corpus = mini.passages_path() if data is None else data / "corpus_multihop.jsonl"
    digest = hashlib.sha256(corpus.read_bytes()).hexdigest()[:12]
    path = given or cache_dir() / "benchmarks" / f"index-{digest}"
    if not path.exists():
        print(f"Building the index of {corpus.name} once (some minutes on 2 cores)", file=sys.stderr)
        path.parent.mkdir(parents=True, exist_ok=True)
        build_index(corpus, path, "local")
    return E5Retriever(path)


def fingerprint(program: SearchProgram, lm: str, adapter: str) -> str:
    """Hash what a result depends on: model, method, settings, prompts and demos."""
    prompts = {name: str(predictor.signature.model_json_schema()) for name, predictor in program.named_predictors()}
    instructions = {name: predictor.signature.instructions for name, predictor in program.named_predictors()}
    parts = [lm, adapter, type(program).__name__, program.settings(), prompts, instructions, program.shipped_demos]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def answer(program: SearchProgram, question: dict[str, Any], gold: set[str]) -> dict[str, Any]:
    """Run one question and return its journal line."""
    start = time.perf_counter()
    try:
        prediction = program(question=question["question"])
    except Exception as error:  # recorded with its reason; a question must not end the run
        return {"error": f"{type(error).__name__}: {error}", "seconds": time.perf_counter() - start}
    found = {passage["id"] for round_ in prediction.trajectory["rounds"] for passage in round_["passages"]}
    used = {fact["passage_id"] for round_ in prediction.trajectory["rounds"] for fact in round_["knowledge"]}
    usage = prediction.usage
    return {
        "answer": prediction.answer,
        "gold_answers": question["answers"],
        "cover_em": float(cover_em(dspy.Example(answers=question["answers"]), prediction)),
        "gold_found": len(found & gold) / len(gold),
        "gold_used": len(used & gold) / len(gold),
        "rounds": prediction.rounds,
        "stop_reason": prediction.stop_reason,
        "calls": usage["calls"],
        "tokens": usage["prompt_tokens"] + usage["completion_tokens"],
        "completion_tokens": usage["completion_tokens"],
        "cached_prompt_tokens": usage["cached_prompt_tokens"],
        "seconds": usage["seconds"],
        "failures": prediction.failures,
        "trajectory": prediction.trajectory,
    }


def half_width(scores: Sequence[float]) -> float:
    """Half the width of a 95 % interval of a mean (normal approximation)."""
    mean = sum(scores) / len(scores)
    spread = sum((score - mean) ** 2 for score in scores) / max(len(scores) - 1, 1)
    return 1.96 * math.sqrt(spread / len(scores))


def report(lines: list[dict[str, Any]]) -> None:
    """Print one table: a row per model, method and set."""
    header = ("model / method / set", "n", "failed", "Cover-EM", "+-", "gold found", "rounds", "calls", "tokens", "s")
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for line in lines:
        for name in (line["set"], "all"):
            groups.setdefault((line["lm"], line["method"], name), []).append(line)
    rows = []
    for (lm, method, name), group in sorted(groups.items()):
        done = [line for line in group if "error" not in line]
        if not done:
            rows.append((f"{lm} / {method} / {name}", len(group), len(group), *["-"] * 7))
            continue
        mean = {
            key: sum(line[key] for line in done) / len(done)
            for key in ("cover_em", "gold_found", "rounds", "calls", "tokens", "seconds")
        }
        rows.append(
            (
                f"{lm} / {method} / {name}",
                len(group),
                len(group) - len(done),
                mean["cover_em"],
                half_width([line["cover_em"] for line in done]),
                *(mean[key] for key in ("gold_found", "rounds", "calls")),
                round(mean["tokens"]),
                mean["seconds"],
            )
        )
    show_table("Per question: Cover-EM, share of gold passages retrieved, cost", header, rows)


def main() -> int:
    """Run what is not yet in the journal, then print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lm", default="local-small")
    parser.add_argument("--api-base")
    parser.add_argument("--label", help="name of the model in the table, with --api-base")
    parser.add_argument("--n", type=int, default=20, help="questions a set")
    parser.add_argument("--skip", type=int, default=0, help="questions a set to leave out first (to tune on others)")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default="maps,vanilla")
    parser.add_argument("--directions", type=int, default=3)
    parser.add_argument("--passages", type=int, default=3, help="K of MAPS; the plain call always reads 5")
    parser.add_argument("--max-rounds", type=int, default=3)
    parser.add_argument("--min-rounds", type=int, default=1)
    parser.add_argument("--refine", default="select")
    parser.add_argument("--threads", type=int, default=2, help="questions at once")
    parser.add_argument("--index", type=Path)
    parser.add_argument("--journal", type=Path, default=cache_dir() / "benchmarks" / "real_questions.jsonl")
    parser.add_argument("--show", action="store_true", help="only print the table")
    options = parser.parse_args()
    lines = list(read_jsonl(options.journal)) if options.journal.exists() else []
    if options.show:
        report(lines)
        return 0

    data = data_dir()
    retriever = open_index(data, options.index)
    by_content = {}
    if data is not None:
        by_content = {(row["title"], row["text"]): row["id"] for row in read_jsonl(data / "corpus_multihop.jsonl")}
    lm = language_model(options.lm, api_base=options.api_base)
    dspy.configure(lm=lm, trace=None)
    label = options.label or options.lm
    maps = MAPS(
        retriever,
        directions=options.directions,
        passages=options.passages,
        max_rounds=options.max_rounds,
        min_rounds=options.min_rounds,
        refine=options.refine,
        demos=True,
    )
    programs: dict[str, SearchProgram] = {"maps": maps, "vanilla": VanillaRAG(retriever, passages=5, demos=True)}
    done = {(line["fingerprint"], line["set"], line["id"]) for line in lines if "error" not in line}
    names = ["mini"] if data is None else options.sets.split(",")
    questions = {name: load_questions(data, name, options.skip, options.n) for name in names}
    work = [
        (method, fingerprint(programs[method], label, StructuredAdapter.__name__), name, questions[name][place])
        for place in range(options.n)  # set by set in turn, so that a run cut short is balanced
        for name in names
        if place < len(questions[name])
        for method in options.methods.split(",")
    ]
    current = {(mark, name, question["id"]) for _, mark, name, question in work}
    work = [item for item in work if (item[1], item[2], item[3]["id"]) not in done]
    options.journal.parent.mkdir(parents=True, exist_ok=True)
    with options.journal.open("a", encoding="utf-8") as journal, ThreadPoolExecutor(options.threads) as pool:
        futures = {
            pool.submit(answer, programs[method], question, gold_ids(question, by_content)): (
                method,
                mark,
                name,
                question,
            )
            for method, mark, name, question in work
        }
        for count, future in enumerate(as_completed(futures), 1):
            method, mark, name, question = futures[future]
            head = {"lm": label, "method": method, "fingerprint": mark, "set": name, "id": question["id"]}
            line = {**head, "question": question["question"], **future.result()}
            journal.write(json.dumps(line, ensure_ascii=False) + "\n")
            journal.flush()
            lines.append(line)
            what = line.get("error") or f"{line['cover_em']:.0f} {line['answer']!r}"
            print(f"{count}/{len(work)} {method} {name} {line['seconds']:.0f} s {what}", file=sys.stderr)
    ended = {(line["fingerprint"], line["set"], line["id"]): line for line in lines}
    report([ended[key] for key in current if key in ended])
    missing = len(current - set(ended))
    print(f"Bar: every question ended with an answer or a reason: {'met' if not missing else f'{missing} missing'}.")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
