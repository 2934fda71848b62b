"""Methods compared at an equal cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from maps_rag.metrics.statistics import Matched, Setting, compute_matched, holm, truncated
from maps_rag.optimize.reporting.cells import Floats
from maps_rag.optimize.reporting.comparison import difference, pairs_of
from maps_rag.optimize.reporting.document import Section, Table, listed, number, percent, probability
from maps_rag.optimize.reporting.results import Results

_COSTS = (("tokens", "logical tokens"), ("calls", "LM calls"))
_RESAMPLES = (999, 9_999)
_DRAWS = 10_000_000
"""Questions drawn for one comparison, about: more questions are drawn less often, since their means vary less."""


@dataclass(frozen=True, slots=True)
class _Row:
    """Two methods on a set at one budget; ``how`` says whether both ran so or one was cut off."""

    dataset: str
    first: str
    second: str
    found: Matched
    how: str


def matched_section(results: Results, against: str | None, seed: int) -> Section | None:
    """Return how methods score at equal tokens and at equal calls; None where no two of them share a question.

    Directories that hold one method, model and index with other settings or prompts are settings of one method: its
    score is known wherever their costs reach. Where the costs of two methods do not meet, the dearer is cut off at a
    cap at which it spends what the other does; where it would have answered nothing by then, a line says so.

    :param against: as for :func:`~maps_rag.optimize.reporting.comparison.comparison_section`.
    """
    tables, apart = [], []
    for cost, label in _COSTS:
        rows, lines = _compare(results, against, cost, seed)
        if rows:
            tables.append(_table(rows, label))
        apart += [f"No equal cost in {label}: {line}" for line in lines]
    if not tables and not apart:
        return None
    text = (
        "What two methods score where each spends the same on average. A method that was cut off counts as wrong on "
        "every question that took more than the cap: it did not know the cap, and would do better with a real one "
        "(max_tokens, max_calls, max_rounds). Runs of a method with several settings, reported together, are compared "
        "without cutting. Failed questions, whose cost is not known, are left out."
    )
    return Section("Score at equal cost", (text, *apart), tuple(tables))


def _compare(results: Results, against: str | None, cost: str, seed: int) -> tuple[list[_Row], list[str]]:
    methods = _settings_by_method(results)
    named = {label: method for method, labels in methods.items() for label in labels}
    chosen: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs_of(results.methods, against):
        first, second = (named[label] for label in pair)
        if first != second:
            chosen.setdefault(frozenset((first, second)), (first, second))
    rows: list[_Row] = []
    apart: dict[tuple[str, str], list[str]] = {}
    for first, second in chosen.values():
        for dataset in results.sets:
            curves = _on_shared(results, dataset, (methods[first], methods[second]), cost)
            if curves is None:
                continue
            found, how = _matched(*curves, (first, second), seed)
            rows += [_Row(dataset, first, second, one, how) for one in found]
            if not found:
                dearer, cheaper = (first, second) if _mean(curves[0][0]) > _mean(curves[1][0]) else (second, first)
                apart.setdefault((dearer, cheaper), []).append(dataset)
    return rows, [
        f"on {listed(sets)}, {cheaper} takes less on average than any question took with {dearer}."
        for (dearer, cheaper), sets in apart.items()
    ]


def _settings_by_method(results: Results) -> dict[str, list[str]]:
    """Return the labels that are settings of one method on one model and index, by a name for it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for (place, method), label in results.labels.items():
        run = results.runs[place]
        labels = groups.setdefault((method, run.surroundings), [])
        if label in results.methods and label not in labels:
            labels.append(label)
    several: dict[str, int] = {}
    for method, _ in groups:
        several[method] = several.get(method, 0) + 1
    named: dict[str, list[str]] = {}
    for (method, _), labels in groups.items():
        if labels:
            name = labels[0] if len(labels) == 1 else method if several[method] == 1 else listed(labels)
            named[name] = labels
    return named


def _on_shared(
    results: Results, dataset: str, sides: tuple[Sequence[str], Sequence[str]], cost: str
) -> tuple[list[Setting], list[Setting]] | None:
    """Return the settings of two methods on the questions that all of them answered, cheapest first."""
    sets = [[label for label in labels if results.cell(label, dataset) is not None] for labels in sides]
    if not all(sets):
        return None
    known: dict[str, dict[str, tuple[float, float]]] = {}
    for label in (*sets[0], *sets[1]):
        cell = results.cells[label, dataset]
        asked, costs = cell.questions(), cell.by_question(cost)
        known[label] = {
            name: (float(score), float(spent))
            for name, score, spent in zip(asked.ids, asked.scores, costs, strict=True)
            if spent == spent
        }
    shared = sorted(set.intersection(*(set(answered) for answered in known.values())))
    if not shared:
        return None
    one, two = (sorted((_setting(known[label], shared) for label in labels), key=_mean) for labels in sets)
    return one, two


def _setting(known: dict[str, tuple[float, float]], ids: Sequence[str]) -> Setting:
    scores, costs = np.array([known[name] for name in ids]).T
    return Setting(scores, costs)


def _mean(setting: Setting) -> float:
    return float(np.asarray(setting.costs, dtype=np.float64).mean())


def _matched(
    one: list[Setting], two: list[Setting], names: tuple[str, str], seed: int
) -> tuple[tuple[Matched, ...], str]:
    """Compare at every cost of a setting that both reach, or cut the dearer off; nothing where that leaves no answer.

    :param one: the settings of a method, cheapest first; ``two`` likewise.
    """
    size = np.size(one[0].scores)
    resamples = int(np.clip(_DRAWS // size, *_RESAMPLES))
    low, high = max(_mean(one[0]), _mean(two[0])), min(_mean(one[-1]), _mean(two[-1]))
    if low <= high:
        budgets = sorted({spent for spent in map(_mean, (*one, *two)) if low <= spent <= high})
        return compute_matched(one, two, budgets, resamples=resamples, seed=seed), "as run"
    dearer, cheaper, name = (one, two, names[0]) if _mean(one[0]) > _mean(two[0]) else (two, one, names[1])
    budget = _mean(cheaper[-1])
    costs = np.asarray(dearer[0].costs, dtype=np.float64)
    if budget < costs.min():
        return (), ""
    cap = cap_for(costs, budget)
    (cut,) = truncated(dearer[0], [cap])
    sides = ([cut, *one], two) if dearer is one else (one, [cut, *two])
    found = compute_matched(*sides, [max(budget, _mean(cut))], resamples=resamples, seed=seed)
    return found, f"{name} cut off at {number(cap)}"


def cap_for(costs: Floats, budget: float) -> float:
    """Return the cap at which questions, each costing no more than it, cost ``budget`` on average.

    :param costs: what each question takes without a cap.
    :param budget: from the least of them to their mean.
    """
    ordered = np.sort(costs)
    left = np.arange(len(ordered), 0, -1)
    # With the k cheapest below the cap, the others share what those leave of the budget.
    caps = (budget * len(ordered) - np.concatenate([[0.0], np.cumsum(ordered)[:-1]])) / left
    place = int(np.flatnonzero(caps <= ordered * (1 + 1e-12))[0])
    near = bool(np.isclose(caps[place], ordered[place], rtol=1e-12, atol=0.0))
    return float(ordered[place] if near else caps[place])


def _table(rows: Sequence[_Row], label: str) -> Table:
    adjusted = holm([row.found.test.p_value for row in rows])
    return Table(
        f"Score at equal {label} per question, %; difference, first less second, in points [95 % interval]",
        ("set", "methods", "how", "n", label, "first", "second", "difference", "p", "p (Holm)"),
        tuple(
            (
                row.dataset,
                f"{row.first} vs {row.second}",
                row.how,
                f"{row.found.test.n:,}",
                number(row.found.budget),
                percent(row.found.first),
                percent(row.found.second),
                difference(row.found.test),
                probability(row.found.test.p_value),
                probability(p_value),
            )
            for row, p_value in zip(rows, adjusted, strict=True)
        ),
        (f"Intervals and p: bootstrap over questions; Holm adjusts over the {len(rows)} comparisons of this table.",),
        left=3,
    )
