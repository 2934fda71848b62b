"""Methods compared in pairs on the same questions, and the ablations of MAPS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from maps_rag.metrics.statistics import PairedTest, holm
from maps_rag.optimize.reporting.cost import mean_over_sets
from maps_rag.optimize.reporting.document import NONE, Section, Table, percent, points, probability
from maps_rag.optimize.reporting.results import Results
from maps_rag.optimize.reporting.uncertainty import compare
from maps_rag.programs.errors import UserError

BASE = "maps"
ABLATIONS = {
    "maps-no-directions": "no direction listing",
    "maps-no-parallelism": "no parallelism",
    "maps-no-disentanglement": "no disentanglement",
}
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Pair:
    """Two methods on the questions of one set that both were given."""

    dataset: str
    first: str
    second: str
    test: PairedTest
    exact: bool


def comparison_section(results: Results, against: str | None, seed: int) -> Section | None:
    """Return the paired comparisons, their p-values adjusted over the whole table; None with a single method.

    :raises UserError: when ``against`` is neither a method of these runs nor "all".
    """
    if against not in (None, "all", *results.methods):
        raise UserError(f"There is no method {against!r} in these runs. There are: all, {', '.join(results.methods)}.")
    pairs = [
        pair
        for first, second in _pairs(results.methods, against)
        for name in results.sets
        if (pair := compare_on(results, name, first, second, seed)) is not None
    ]
    if not pairs:
        return None
    adjusted = holm([pair.test.p_value for pair in pairs])
    rows = tuple(
        (
            pair.dataset,
            f"{pair.first} vs {pair.second}",
            f"{pair.test.n:,}",
            difference(pair.test),
            probability(pair.test.p_value),
            probability(float(p_value)),
            "yes" if p_value < SIGNIFICANT else "no",
        )
        for pair, p_value in zip(pairs, adjusted, strict=True)
    )
    apart = sum(row[-1] == "yes" for row in rows)
    kinds = {pair.exact for pair in pairs}
    tests = " or ".join(
        [
            *(["McNemar's exact test"] if True in kinds else []),
            *(["the paired bootstrap (several runs)"] if False in kinds else []),
        ]
    )
    table = Table(
        "Differences of Cover-EM, first less second, in points [95 % interval], on the questions that both were given",
        ("set", "methods", "n", "difference", "p", "p (Holm)", "differs"),
        rows,
        (
            f"Intervals: paired bootstrap. p: {tests}; Holm adjusts it over the {len(rows)} comparisons of this table. "
            f"Differs: adjusted p below {SIGNIFICANT}. “no” means not shown, not equal.",
        ),
        left=2,
    )
    text = f"{apart} of {len(rows)} differences are larger than chance explains."
    return Section("Paired comparison", (text,), (table,))


def _pairs(methods: Sequence[str], against: str | None) -> list[tuple[str, str]]:
    if against == "all":
        return list(combinations(methods, 2))
    base = against or (BASE if BASE in methods else methods[0])
    return [(base, other) for other in methods if other != base]


def compare_on(results: Results, dataset: str, first: str, second: str, seed: int) -> Pair | None:
    """Compare two methods on a set; None where they share no question of it."""
    cells = results.cell(first, dataset), results.cell(second, dataset)
    if cells[0] is None or cells[1] is None:
        return None
    one, two = cells[0].questions(), cells[1].questions()
    shared, left, right = np.intersect1d(one.ids, two.ids, assume_unique=True, return_indices=True)
    if not len(shared):
        return None
    test, exact = compare(one.scores[left], two.scores[right], seed)
    return Pair(dataset, first, second, test, exact)


def difference(test: PairedTest) -> str:
    """Return a difference in points with its interval: "+4.0 [-2.0, +10.0]"."""
    return f"{points(test.difference)} [{points(test.low)}, {points(test.high)}]"


def ablation_section(results: Results, seed: int) -> Section | None:
    """Return the ablations of MAPS, each against the full method; None where MAPS or all ablations are missing."""
    ablated = [method for method in ABLATIONS if method in results.methods]
    if BASE not in results.methods or not ablated:
        return None
    several = len(results.sets) > 1
    rows = []
    for method in (BASE, *ablated):
        cells = [_ablated(results, name, method, seed) for name in results.sets]
        mean = percent(mean_over_sets(results, method, lambda cell: cell.mean("score")))
        rows.append((ABLATIONS.get(method, "MAPS"), *cells, *([mean] if several else [])))
    table = Table(
        "Ablation: Cover-EM, %, and its difference to MAPS in points [95 % interval] on shared questions",
        ("variant", *results.sets, *(["macro mean"] if several else [])),
        tuple(rows),
        ("The paired comparison has the p-values where it compares with maps.",),
    )
    return Section("Ablation", (), (table,))


def _ablated(results: Results, dataset: str, method: str, seed: int) -> str:
    cell = results.cell(method, dataset)
    if cell is None:
        return NONE
    score = percent(cell.mean("score"))
    pair = compare_on(results, dataset, method, BASE, seed) if method != BASE else None
    return f"{score}, {difference(pair.test)}" if pair else score
