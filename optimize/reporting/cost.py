"""What a question cost, by method and by role."""

from __future__ import annotations

from maps_rag.optimize.reporting.document import Section, Table, listed, number
from maps_rag.optimize.reporting.results import Results

_COLUMNS = (
    ("calls", "calls"),
    ("requests", "requests"),
    ("retries", "retries"),
    ("prompt_tokens", "prompt tokens"),
    ("completion_tokens", "completion tokens"),
    ("billed_tokens", "billed tokens"),
    ("cached_prompt_tokens", "server-cached"),
    ("retrievals", "retrievals"),
    ("seconds", "seconds"),
)
_ROLE_COLUMNS = _COLUMNS[:5] + _COLUMNS[8:]


def mean_over_sets(results: Results, method: str, column: str) -> float | None:
    """Return the mean of a column over all sets, each weighing the same; None where the method lacks a set."""
    cells = [results.cell(method, name) for name in results.sets]
    values = [cell.mean(column) for cell in cells if cell is not None]
    return sum(values) / len(values) if len(values) == len(results.sets) else None


def cost_section(results: Results) -> Section:
    """Return the tables of cost: means over sets, each set alone, and by role."""
    tables = []
    if len(results.sets) > 1 and results.complete():
        tables.append(_over_sets(results))
    tables += [_on_set(results, name) for name in results.sets]
    tables.append(_by_role(results))
    return Section(
        "Cost per question",
        (
            "Means per answered question and run. Prompt and completion tokens are logical: replies out of a cache "
            "count too; billed tokens are without them. Server-cached tokens are the part of the prompt that the "
            "server says it had read before. Retries are among the requests.",
        ),
        tuple(table for table in tables if table.rows),
    )


def _over_sets(results: Results) -> Table:
    left_out = [method for method in results.methods if method not in results.complete()]
    return Table(
        f"Cost per question, mean over {len(results.sets)} sets",
        ("method", *(label for _, label in _COLUMNS)),
        tuple(
            (method, *(number(mean_over_sets(results, method, name)) for name, _ in _COLUMNS))
            for method in results.complete()
        ),
        (f"Not every set was run with {listed(left_out)}.",) if left_out else (),
    )


def _on_set(results: Results, dataset: str) -> Table:
    rows = []
    for method in results.methods:
        cell = results.cell(method, dataset)
        if cell is not None and cell.answered:
            rows.append((method, f"{cell.answered:,}", *(number(cell.mean(name)) for name, _ in _COLUMNS)))
    return Table(
        f"Cost per question, {dataset}", ("method", "answered", *(label for _, label in _COLUMNS)), tuple(rows)
    )


def _by_role(results: Results) -> Table:
    rows = []
    for method in results.methods:
        cells = [cell for name in results.sets if (cell := results.cell(method, name)) is not None]
        answered = sum(cell.answered for cell in cells)
        for role in dict.fromkeys(role for cell in cells for role in cell.roles):
            spent = {
                name: sum(cell.roles[role][name] for cell in cells if role in cell.roles) for name, _ in _ROLE_COLUMNS
            }
            rows.append((method, role, *(number(spent[name] / answered) for name, _ in _ROLE_COLUMNS)))
    return Table(
        "Cost per question by role, all questions together",
        ("method", "role", *(label for _, label in _ROLE_COLUMNS)),
        tuple(rows),
        left=2,
    )
