"""Shows what an evaluation will take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maps_rag.cli.console import Screen
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from maps_rag.metrics.cost import Prices
    from maps_rag.optimize.runner import Forecast

HEADER = ("method", "questions left", "model calls", "searches", "prompt tokens", "written tokens", "cost", "from")


def show_forecasts(forecasts: Sequence[Forecast], prices: Prices | None, screen: Screen) -> None:
    """Show a table of forecasts with their sum."""
    from maps_rag.optimize.runner.forecasts import total

    rows = [_cells(item, prices) for item in [*forecasts, *([total(forecasts)] if len(forecasts) > 1 else [])]]
    shown = [number for number, name in enumerate(HEADER) if prices is not None or name != "cost"]
    if screen.text.is_terminal:
        table = Table()
        for number in shown:
            table.add_column(HEADER[number], justify="right" if 0 < number < len(HEADER) - 1 else "left")
        for row in rows:
            table.add_row(*(Text(row[number]) for number in shown))
        screen.text.print(table)
    else:
        screen.columns([[line[number] for number in shown] for line in (HEADER, *rows)])
    screen.say()
    if any(not item.measured for item in forecasts):
        screen.say(
            "Where nothing was measured: from the fewest to the most rounds by the formulas of maps-rag methods, and a "
            "rough guess of the tokens. Once some questions have been answered, a forecast goes by what they took."
        )


def _cells(item: Forecast, prices: Prices | None) -> tuple[str, ...]:
    cost = None if prices is None else item.cost(prices)
    return (
        item.method,
        f"{item.questions:,}",
        _span(item.calls),
        _span(item.retrievals),
        _span(item.prompt_tokens),
        _span(item.completion_tokens),
        _span(cost, decimals=2),
        f"{item.measured:,} answered" if item.measured else "formulas",
    )


def _span(span: tuple[float, float] | None, decimals: int = 0) -> str:
    if span is None:
        return "unknown"
    low, high = (f"{value:,.{decimals}f}" for value in span)
    return low if low == high else f"{low} to {high}"
