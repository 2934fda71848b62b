"""When the methods stopped, and why: rounds, and steps as the paper's figure counts them."""

from __future__ import annotations

from collections import Counter

import numpy as np
from maps_rag.optimize.reporting.document import NONE, Figure, Section, Table, number, percent
from maps_rag.optimize.reporting.figures import bars
from maps_rag.optimize.reporting.paper import is_in_paper, stopping_table
from maps_rag.optimize.reporting.results import Results

LAST = 5
"""Steps from here on are one column, as in what is known of the paper's figure."""


def stopping_section(results: Results) -> Section:
    """Return how many retrieval rounds the questions took and what ended them, over all sets together."""
    shares: dict[str, list[float]] = {}
    rows, reasons = [], []
    stops: dict[str, Counter[str]] = {}
    for method in results.methods:
        cells = [cell for name in results.sets if (cell := results.cell(method, name)) is not None and cell.answered]
        if not cells:
            continue
        rounds, steps = (np.concatenate([cell.column(name) for cell in cells]) for name in ("rounds", "steps"))
        rounds, steps = rounds[~np.isnan(rounds)], steps[~np.isnan(steps)]
        if not steps.size:
            continue
        counts = np.bincount(np.minimum(steps.astype(int), LAST), minlength=LAST + 1)[1:]
        shares[method] = [float(share) for share in counts / steps.size]
        means = (number(float(rounds.mean())), number(float(steps.mean())))
        rows.append((method, f"{steps.size:,}", *map(percent, shares[method]), *means))
        stops[method] = sum((cell.stops for cell in cells), Counter[str]())
    kinds = sorted({kind for counter in stops.values() for kind in counter})
    for method, counter in stops.items():
        total = sum(counter.values())
        reasons.append((method, *(percent(counter[kind] / total) if counter[kind] else NONE for kind in kinds)))
    header = [f"{step - 1} rounds (step {step})" for step in range(1, LAST)]
    header[1] = "1 round (step 2)"
    tables = [
        Table(
            "Questions that stop after so many retrieval rounds, %",
            ("method", "answered", *header, f"{LAST - 1} or more (step {LAST} or later)", "mean rounds", "mean steps"),
            tuple(rows),
        ),
        Table(
            "What ended the search, % of the answered questions",
            ("method", *(k or "not said" for k in kinds)),
            tuple(reasons),
        ),
    ]
    if any(map(is_in_paper, results.sets)):
        tables.insert(1, stopping_table())
    labels = [*(f"step {step}" for step in range(1, LAST)), f"step {LAST}+"]
    figure = Figure(
        "Share of the answered questions that stop at each step, %. Step 1 is an answer without retrieval.",
        bars(shares, labels),
    )
    return Section(
        "Stopping rounds",
        ("Rounds are the retrieval rounds run; steps, as the paper counts them, are one more: the answer is a step.",),
        tuple(tables),
        (figure,) if shares else (),
    )
