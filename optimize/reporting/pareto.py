"""Accuracy against cost: which methods no other beats at both, and how they score at an equal cost."""

from __future__ import annotations

from collections.abc import Sequence

from maps_rag.metrics.statistics import Interval
from maps_rag.optimize.reporting.cost import mean_over_sets
from maps_rag.optimize.reporting.document import Figure, Section, Table, number, percent
from maps_rag.optimize.reporting.figures import Point, scatter
from maps_rag.optimize.reporting.results import Results
from maps_rag.optimize.reporting.uncertainty import Uncertainty

_COSTS = (("tokens", "logical tokens per question"), ("calls", "LM calls per question"))


def pareto_section(results: Results, uncertain: Uncertainty) -> Section | None:
    """Return accuracy against tokens and calls, over all sets or on the only one; None where no cost is known.

    With several sets, only methods that have all of them are placed, each set weighing the same; where no method has
    all, every set is placed by itself.
    """
    whole = results.complete()
    wholes = [("", whole)] if whole else []
    singles = [(name, [m for m in results.methods if results.cell(m, name) is not None]) for name in results.sets]
    tables, figures = [], []
    for dataset, methods in wholes or singles:
        where = dataset or (results.sets[0] if len(results.sets) == 1 else f"mean of {len(results.sets)} sets")
        for cost, label in _COSTS:
            points = _points(uncertain, dataset, methods, cost)
            if points:
                tables.append(_table(points, f"Accuracy against {label}, {where}", label))
                figures.append(
                    Figure(f"Accuracy against {label}, {where}. {_READING}", scatter(points, label, "score, %"))
                )
    text = (
        "A method is on the front where no other scores higher at no more cost, or as high at less. Whether a step "
        "along the front is more than chance, the intervals and the paired comparison say."
    )
    return Section("Accuracy against cost", (text,), tuple(tables), tuple(figures)) if tables else None


_READING = "Filled marks on the line: the front. Hollow marks: others are better at no more cost. Bars: 95 % intervals."


def _points(uncertain: Uncertainty, dataset: str, methods: list[str], cost: str) -> list[Point]:
    found = []
    for method in methods:
        if dataset:
            key = (method, dataset)
            spent, score = uncertain.results.cells[key].mean(cost), uncertain.cells[key]
        else:
            mean = mean_over_sets(uncertain.results, method, cost)
            spent, score = (mean if mean is not None else float("nan")), uncertain.macro(method)
        if spent == spent:
            found.append((method, spent, score))
    return [
        Point(
            method, spent, score.mean, score.low, score.high, on_front(spent, score.mean, [item[1:] for item in found])
        )
        for method, spent, score in found
    ]


def on_front(spent: float, score: float, others: Sequence[tuple[float, Interval]]) -> bool:
    """Return whether no other has a score as high for less, or a higher one for no more."""
    return not any(
        (cost <= spent and other.mean > score) or (cost < spent and other.mean >= score) for cost, other in others
    )


def _table(points: Sequence[Point], caption: str, label: str) -> Table:
    rows = [
        (
            point.label,
            f"{percent(point.y)} [{percent(point.low)}, {percent(point.high)}]",
            number(point.x),
            "yes" if point.front else "no",
        )
        for point in sorted(points, key=lambda point: point.x)
    ]
    return Table(caption, ("method", "score, % [95 % interval]", label, "on the front"), tuple(rows))
