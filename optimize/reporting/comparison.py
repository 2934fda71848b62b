"""Methods compared in pairs on the same questions, and the ablations of MAPS."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from maps_rag.metrics.statistics import PairedTest, holm
from maps_rag.optimize.reporting.document import NONE, Section, Table, percent, points, probability
from maps_rag.optimize.reporting.results import Results
from maps_rag.optimize.reporting.uncertainty import Uncertainty
from maps_rag.programs.errors import UserError

BASE = "maps"
ABLATIONS = {
    "maps-no-directions": "no direction listing",
    "maps-no-parallelism": "no parallelism",
    "maps-no-disentanglement": "no disentanglement",
}
SIGNIFICANT = 0.05


def comparison_section(results: Results, against: str | None, found: Uncertainty) -> Section | None:
    """Return the paired comparisons, their p-values adjusted over the whole table; None with a single method.

    :raises UserError: when ``against`` is neither a method of these runs nor "all".
    """
    if against not in (None, "all", *results.methods):
        raise UserError(f"There is no method {against!r} in these runs. There are: all, {', '.join(results.methods)}.")
    pairs = [
        pair
        for first, second in pairs_of(results.methods, against)
        for name in results.sets
        if (pair := found.pair(name, first, second)) is not None
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


def pairs_of(methods: Sequence[str], against: str | None) -> list[tuple[str, str]]:
    """Return which methods are compared with which."""
    if against == "all":
        return list(combinations(methods, 2))
    base = against or (BASE if BASE in methods else methods[0])
    return [(base, other) for other in methods if other != base]


def difference(test: PairedTest) -> str:
    """Return a difference in points with its interval: "+4.0 [-2.0, +10.0]"."""
    return f"{points(test.difference)} [{points(test.low)}, {points(test.high)}]"


def ablation_section(results: Results, found: Uncertainty) -> Section | None:
    """Return the ablations of MAPS, each against the full method; None where MAPS or all ablations are missing."""
    ablated = [method for method in ABLATIONS if method in results.methods]
    if BASE not in results.methods or not ablated:
        return None
    several = len(results.sets) > 1
    rows = []
    for method in (BASE, *ablated):
        cells = [_ablated(found, name, method) for name in results.sets]
        mean = percent(found.macro(method).mean if method in results.complete() else None)
        rows.append((ABLATIONS.get(method, "MAPS"), *cells, *([mean] if several else [])))
    table = Table(
        "Ablation: Cover-EM, %, and its difference to MAPS in points [95 % interval] on shared questions",
        ("variant", *results.sets, *(["macro mean"] if several else [])),
        tuple(rows),
        ("The paired comparison has the p-values where it compares with maps.",),
    )
    return Section("Ablation", (), (table,))


def _ablated(found: Uncertainty, dataset: str, method: str) -> str:
    cell = found.results.cell(method, dataset)
    if cell is None:
        return NONE
    score = percent(cell.mean("score"))
    pair = found.pair(dataset, method, BASE) if method != BASE else None
    return f"{score}, {difference(pair.test)}" if pair else score
