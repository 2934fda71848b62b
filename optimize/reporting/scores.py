"""The scores: the primary one with intervals, by set and by type of question, and its companions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from maps_rag.metrics.statistics import Interval, by_group, spread
from maps_rag.optimize.reporting.cells import COMPANIONS
from maps_rag.optimize.reporting.cost import mean_over_sets
from maps_rag.optimize.reporting.document import NONE, Section, Table, listed, number, percent
from maps_rag.optimize.reporting.results import Results
from maps_rag.optimize.reporting.uncertainty import Uncertainty

SMALL = 200
"""Below this many questions the reader is warned: at 50 %, an interval is then some 14 points wide or more."""

_LABELS = ("EM", "F1", "substring", "of the response", "first 32 words", "answer words")


def shown(value: Interval | None) -> str:
    """Return an interval of a share: "48.0 [28.0, 68.0]"."""
    return NONE if value is None else f"{percent(value.mean)} [{percent(value.low)}, {percent(value.high)}]"


def scores_section(results: Results, uncertain: Uncertainty) -> Section:
    """Return the table of primary scores, and what their intervals do not allow to say."""
    found = uncertain.cells
    sizes = {name: sorted({found[method, name].n for method in _on(results, name)}) for name in results.sets}
    header = [
        f"{name}{' (accuracy)' if results.is_choice(name) else ''}, n {_range(sizes[name])}" for name in results.sets
    ]
    several = len(results.sets) > 1
    rows = []
    for method in results.methods:
        cells = [shown(found.get((method, name))) for name in results.sets]
        macro = uncertain.macro(method) if several and method in results.complete() else None
        rows.append((method, *cells, *([shown(macro)] if several else []), _runs(results, method)))
    table = Table(
        "Cover-EM, % [95 % interval]",
        ("method", *header, *(["macro mean"] if several else []), "runs (spread)"),
        tuple(rows),
        (
            "Intervals are bootstrap intervals over questions, exact ones where all scores are 0 or all are 1; a "
            "question with several runs counts with its mean. Spread is the standard deviation between runs on the "
            "questions that all runs have, in points. Failed questions count as wrong."
            + (f" {NONE}: not run. The macro mean weighs all sets the same." if several else ""),
        ),
    )
    return Section("Scores", tuple(_warnings(results, found)), (table,))


def _on(results: Results, dataset: str) -> list[str]:
    return [method for method in results.methods if results.cell(method, dataset) is not None]


def _range(sizes: Sequence[int]) -> str:
    return f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"


def _runs(results: Results, method: str) -> str:
    """Return how many runs there are, and how much the mean score differs between them, averaged over sets."""
    cells = [cell for name in results.sets if (cell := results.cell(method, name)) is not None]
    runs = [cell.by_run() for cell in cells]
    deviations = [sd for scores in runs if scores.size and (sd := spread(scores).sd) is not None]
    most = max(map(len, runs))
    return f"{most} ({100 * sum(deviations) / len(deviations):.1f})" if deviations else str(most)


def _warnings(results: Results, found: dict[tuple[str, str], Interval]) -> list[str]:
    """Say where n is too small, where intervals overlap with that of the best, and where the questions differ."""
    lines, small = [], []
    for name in results.sets:
        here = {method: found[method, name] for method in _on(results, name)}
        least = min(value.n for value in here.values())
        if least < SMALL:
            widest = max(value.high - value.low for value in here.values())
            small.append(f"{name} (n {least}, intervals up to {100 * widest:.0f} points wide)")
        best = max(here, key=lambda method: here[method].mean)
        equal = [method for method in here if method != best and here[method].high >= here[best].low]
        if equal:
            lines.append(
                f"{name}: the highest score is that of {best}; its interval overlaps with that of {listed(equal)}, so "
                "that this table alone does not tell them apart."
            )
        asked = {tuple(results.cells[method, name].questions().ids) for method in here}
        if len(asked) > 1:
            lines.append(
                f"{name}: not all methods were given the same questions, so that the rows of this table cannot be "
                "compared; the paired comparison uses the shared ones."
            )
    if small:
        lines.insert(0, f"Few questions: {listed(small)}. Differences smaller than that say nothing about the methods.")
    return lines


def companions_section(results: Results) -> Section | None:
    """Return what is reported beside Cover-EM, over sets and by set; None for multiple choice, which has none of it."""
    sets = [name for name in results.sets if not results.is_choice(name)]
    whole = Results(results.runs, results.methods, sets, results.labels, results.cells)
    header = ("method", "Cover-EM", *_LABELS)
    tables = []
    if len(sets) > 1 and whole.complete():
        rows = [
            (method, *(_companion(name, mean_over_sets(whole, method, name)) for name in ("score", *COMPANIONS)))
            for method in whole.complete()
        ]
        tables.append(Table(f"Companions of Cover-EM, mean of {len(sets)} sets, %; answer length", header, tuple(rows)))
    for dataset in sets:
        rows = [
            (method, *(_companion(name, results.cells[method, dataset].mean(name)) for name in ("score", *COMPANIONS)))
            for method in _on(results, dataset)
        ]
        tables.append(Table(f"Companions of Cover-EM, {dataset}, %; answer length", header, tuple(rows)))
    text = (
        "Substring compares characters, as much of the literature does; of the response looks at the whole visible "
        "response; first 32 words reads no more of the answer, so that length cannot buy score."
    )
    return Section("Companions", (text,), tuple(tables)) if tables else None


def _companion(name: str, value: float | None) -> str:
    return number(value) if name == "answer_tokens" else percent(value)


_KINDS: tuple[tuple[Literal["type", "hops"], str], ...] = (("type", "type of question"), ("hops", "number of hops"))


def types_section(results: Results, uncertain: Uncertainty) -> Section | None:
    """Return scores by type of question and by number of hops, where a set names them."""
    tables = []
    for field, label in _KINDS:
        for name in results.sets:
            rows = []
            for method in _on(results, name):
                cell = results.cells[method, name]
                groups = by_group(cell.questions().scores, cell.groups(field), seed=uncertain.seed)
                rows += [(str(group), method, f"{found.n:,}", shown(found)) for group, found in groups.items()]
            if len({row[0] for row in rows}) > 1:
                rows.sort(key=lambda row: row[0])
                tables.append(
                    Table(
                        f"By {label}, {name}, % [95 % interval]", (field, "method", "n", "score"), tuple(rows), left=2
                    )
                )
    return Section("Scores by kind of question", (), tuple(tables)) if tables else None
