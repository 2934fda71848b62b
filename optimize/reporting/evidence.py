"""What was found and where the answer was lost; which questions failed."""

from __future__ import annotations

from collections import Counter

from maps_rag.optimize.reporting.cells import LOST, Cell, EvidenceSums
from maps_rag.optimize.reporting.document import NONE, Section, Table, number, percent
from maps_rag.optimize.reporting.results import Results

_SHARES = (
    ("gold_share", "gold passages"),
    ("all_gold", "all gold"),
    ("answer_in_passages", "answer in passages"),
    ("answer_in_knowledge", "in knowledge"),
    ("answer_in_state", "in state"),
    ("answer_given", "given"),
)
_COUNTS = (
    ("new_passages_per_direction", "new passages a direction"),
    ("duplicate_sub_queries", "repeated sub-queries"),
)


def evidence_section(results: Results) -> Section | None:
    """Return what was retrieved, by method and set, and where the answer was lost; None where no run looked."""
    cells = [
        (method, name, cell.evidence)
        for name in results.sets
        for method in results.methods
        if (cell := results.cell(method, name)) is not None and cell.evidence.count
    ]
    if not cells:
        return None
    found = Table(
        "Evidence, % of the questions or mean per question",
        ("set", "method", *(label for _, label in _SHARES), *(label for _, label in _COUNTS)),
        tuple(
            (
                dataset,
                method,
                *(percent(sums.mean(name)) for name, _ in _SHARES),
                *(number(sums.mean(name)) for name, _ in _COUNTS),
            )
            for method, dataset, sums in cells
        ),
        (
            "Gold passages: mean share of a question's gold passages that were retrieved. All gold: questions for "
            f"which every one was. {NONE}: the set has no gold passages, or the method keeps no such text.",
        ),
        left=2,
    )
    lost = Table(
        "Where the answer was lost, % of the questions",
        ("set", "method", *LOST),
        tuple((dataset, method, *_lost(sums)) for method, dataset, sums in cells if sums.lost),
        (
            "Retrieved: an accepted answer stands in a passage that was found. Kept: it stands in the knowledge or the "
            "reasoning state, from which the answer is written; a method without these answers from its passages. "
            "An answer that is given counts as given, wherever it came from.",
        ),
        left=2,
    )
    tables = [found, lost, *_by_round([(method, name, sums) for method, name, sums in cells if sums.by_round])]
    return Section("Evidence", (), tuple(table for table in tables if table.rows))


def _lost(sums: EvidenceSums) -> list[str]:
    total = sum(sums.lost.values())
    return [percent(sums.lost[place] / total) for place in LOST]


def _by_round(cells: list[tuple[str, str, EvidenceSums]]) -> list[Table]:
    if not cells:
        return []
    shares = [(dataset, method, sums.gold_by_round()) for method, dataset, sums in cells]
    longest = max(len(values) for *_, values in shares)
    return [
        Table(
            "Gold passages retrieved by the end of each round, %",
            ("set", "method", *(f"round {number_ + 1}" for number_ in range(longest))),
            tuple(
                (dataset, method, *map(percent, values), *[NONE] * (longest - len(values)))
                for dataset, method, values in shares
            ),
            ("A question that ended earlier keeps its last share.",),
            left=2,
        )
    ]


def failures_section(results: Results) -> Section:
    """Return the questions that ended in an error, and what had to be worked around in the others."""
    failed, counts = [], []
    for name in results.sets:
        for method in results.methods:
            cell = results.cell(method, name)
            if cell is None:
                continue
            failed += [
                (name, method, item.id, str(item.run), _error(item.error, results, name)) for item in cell.errors
            ]
            counts.append((name, method, cell))
    total = sum(cell.failed for *_, cell in counts)
    tables = [
        Table(
            f"Failed questions, {total:,} in all",
            ("set", "method", "question", "run", "error"),
            tuple(failed),
            (f"{total - len(failed):,} more are in the journals.",) if total > len(failed) else (),
            left=5,
        ),
        _mended(counts),
    ]
    text = (
        "A failed question ended in an error. It counts as wrong in the scores and is left out of the costs; running "
        "the evaluation again into the same directory tries it again."
        if total
        else "No question failed."
    )
    return Section("Failed questions", (text,), tuple(table for table in tables if table.rows))


def _error(error: str, results: Results, dataset: str) -> str:
    """Return an error for show; of a multiple-choice set only its type, since the rest may quote the question."""
    return error.partition(":")[0] if results.is_choice(dataset) else error[:300]


def _mended(counts: list[tuple[str, str, Cell]]) -> Table:
    kinds: Counter[str] = sum((cell.failures for *_, cell in counts), Counter[str]())
    rows = tuple(
        (name, method, *(number(100 * cell.failures[kind] / cell.answered) for kind in sorted(kinds)))
        for name, method, cell in counts
        if cell.answered and cell.failures
    )
    return Table(
        "Replies that could not be used as they came, per 100 answered questions",
        ("set", "method", *sorted(kinds)),
        rows,
        ("The question was answered all the same, with the fallback of that role.",) if rows else (),
        left=2,
    )
