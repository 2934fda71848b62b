"""What the paper of MAPS prints, for the tables beside ours. Every number is theirs, in per cent."""

from __future__ import annotations

import re
from collections.abc import Collection

from maps_rag.optimize.reporting.document import Section, Table

SETS = ("NQ", "PopQA", "2Wiki", "HotpotQA", "MuSiQue", "GPQA")
N = "n = 1,000 a set, GPQA Diamond 198"

# (model, method, Cover-EM by set, mean as printed)
MAIN = (
    ("Qwen3-32B", "Vanilla RAG", (49.0, 52.1, 30.0, 38.3, 9.9, 44.2), 37.2),
    ("Qwen3-32B", "Search-o1", (53.1, 56.5, 43.7, 40.0, 23.7, 46.4), 43.9),
    ("Qwen3-32B", "S3", (59.5, 60.6, 37.2, 38.3, 19.4, 60.7), 45.9),
    ("Qwen3-32B", "ParallelSearch", (57.2, 60.4, 53.6, 43.5, 30.9, 49.8), 49.2),
    ("Qwen3-32B", "MAPS", (63.4, 64.8, 59.4, 48.8, 37.6, 62.1), 56.0),
    ("Qwen3.6-35B-A3B", "Vanilla RAG", (55.6, 61.4, 49.1, 45.5, 26.8, 75.7), 52.3),
    ("Qwen3.6-35B-A3B", "Search-o1", (53.0, 62.0, 56.3, 44.0, 34.1, 76.3), 54.3),
    ("Qwen3.6-35B-A3B", "ParallelSearch", (58.4, 56.8, 55.9, 53.7, 41.5, 77.5), 57.3),
    ("Qwen3.6-35B-A3B", "MAPS", (64.1, 69.3, 65.8, 55.1, 45.2, 79.2), 63.1),
)
ABLATION_SETS = ("2Wiki", "MuSiQue", "GPQA")
ABLATION = (
    ("MAPS", (59.4, 37.6, 62.3), 56.1),
    ("no direction listing", (55.8, 35.6, 46.0), 51.9),
    ("no parallelism", (54.1, 33.1, 45.3), 49.8),
    ("no disentanglement", (53.1, 34.3, 45.1), 50.1),
)
# (method, share that stops at step 1, at step 2, at 5 or more, mean steps)
STOPPING = (
    ("MAPS", 1.8, 62.7, 14.9, 2.7),
    ("Search-o1", 10.2, 50.4, 12.5, 2.6),
    ("ParallelSearch", 13.3, 58.5, 5.1, 2.3),
)

_ALIASES = {"naturalquestions": "nq", "2wikimultihopqa": "2wiki", "2wikiqa": "2wiki", "gpqadiamond": "gpqa"}
_NAMES = {name.lower() for name in SETS}


def is_in_paper(dataset: str) -> bool:
    """Return whether the paper reports a set that we call by this name."""
    plain = re.sub(r"[^a-z0-9]", "", dataset.lower())
    return _ALIASES.get(plain, plain) in _NAMES


def paper_section(sets: Collection[str], ablated: bool) -> Section | None:
    """Return the paper's main table, and its ablation where ours is shown; None where no set of ours is in it."""
    if not any(map(is_in_paper, sets)):
        return None
    return Section(
        "The paper's numbers",
        (
            "As the paper of MAPS prints them, and not in one table with ours: other models, other questions, and a "
            "metric that it describes as the gold answer being in the response, which is nearest to our column "
            "Cover-EM of the response. It gives no intervals and does not say over how many runs it averages.",
        ),
        (main_table(), *([ablation_table()] if ablated else [])),
    )


def main_table() -> Table:
    """Return the paper's main table."""
    return Table(
        f"Paper: Cover-EM, %, {N}",
        ("method", "model", *SETS, "mean"),
        tuple(
            (method, model, *(f"{score:.1f}" for score in scores), f"{mean:.1f}")
            for model, method, scores, mean in MAIN
        ),
        left=2,
    )


def ablation_table() -> Table:
    """Return the paper's ablation of MAPS."""
    return Table(
        f"Paper: ablation, Cover-EM, %, Qwen3-32B, {N}",
        ("variant", *ABLATION_SETS, "mean of six sets"),
        tuple((name, *(f"{score:.1f}" for score in scores), f"{mean:.1f}") for name, scores, mean in ABLATION),
        ("Its MAPS row differs from the main table on GPQA (62.3, 62.1) and in the mean (56.1, 56.0).",),
    )


def stopping_table() -> Table:
    """Return what is known of the paper's figure of stopping steps."""
    return Table(
        "Paper: questions that stop at a step, %, and mean steps; model and n of the figure are not known to us",
        ("method", "step 1", "step 2", "steps 3 and 4", "step 5 or later", "mean steps"),
        tuple(
            (name, f"{one:.1f}", f"{two:.1f}", f"{100 - one - two - five:.1f}", f"{five:.1f}", f"{mean:.1f}")
            for name, one, two, five, mean in STOPPING
        ),
        (
            "Steps 3 and 4 are what the others leave. One account of the paper calls step 2 round 1: one retrieval "
            "round, then the answer. Ours are counted both ways.",
        ),
    )
