"""Drawings as SVG. Nothing is told by colour alone: marks are filled or hollow, and every one has its text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

INK, BLUE, GREY = "#111", "#0b4f8a", "#767676"
_FONT = 'font-family="system-ui, sans-serif" font-size="13"'


@dataclass(frozen=True, slots=True)
class Point:
    """A method in a scatter plot: its cost, its score and the interval of the score; whether none is better at it."""

    label: str
    x: float
    y: float
    low: float
    high: float
    front: bool


def scatter(points: Sequence[Point], x_label: str, y_label: str) -> Markup:
    """Draw scores in [0, 1] against costs above 0, with the Pareto front as a line.

    The axis of costs is logarithmic where they differ by more than a factor of ten.
    """
    labels = [f"{point.label} {100 * point.y:.1f}{' (front)' if point.front else ''}" for point in points]
    left, right, top, bottom = 60, _room(labels), 20, 55
    width, height = 570 + right, 440
    costs = [point.x for point in points]
    log = min(costs) > 0 and max(costs) > 10 * min(costs)
    scale = math.log10 if log else float
    start, end = (scale(min(costs)), scale(max(costs))) if log else (0.0, max(costs) * 1.05 or 1.0)
    if log:
        start, end = start - 0.05 * (end - start), end + 0.05 * (end - start)
    floor = max(0.0, math.floor(10 * min(point.low for point in points)) / 10)
    roof = min(1.0, math.ceil(10 * max(point.high for point in points)) / 10)
    roof = roof if roof > floor else floor + 0.1

    def across(x: float) -> float:
        return left + (scale(x) - start) / (end - start) * (width - left - right)

    def up(y: float) -> float:
        return top + (roof - y) / (roof - floor) * (height - top - bottom)

    parts = [_frame(width, height, f"{y_label} against {x_label}")]
    steps = round(10 * (roof - floor))
    for step in range(steps + 1):
        y = floor + step / 10
        parts.append(_line(left, up(y), width - right, up(y), "#ddd"))
        parts.append(_text(left - 8, up(y) + 4, f"{100 * y:.0f}", "end"))
    for x in _ticks(min(costs), max(costs), log):
        parts.append(_line(across(x), height - bottom, across(x), height - bottom + 5, INK))
        parts.append(_text(across(x), height - bottom + 20, f"{x:,.0f}" if x >= 1 else f"{x:g}", "middle"))
    parts.append(_line(left, height - bottom, width - right, height - bottom, INK))
    parts.append(_text((left + width - right) / 2, height - 12, x_label + (" (log scale)" if log else ""), "middle"))
    parts.append(_text(left, 13, y_label, "start"))
    front = sorted((point for point in points if point.front), key=lambda point: point.x)
    path = " ".join(f"{across(point.x):.1f},{up(point.y):.1f}" for point in front)
    parts.append(Markup('<polyline points="{}" fill="none" stroke="{}" stroke-width="2"/>').format(path, BLUE))
    places = _spread([up(point.y) + 4 for point in points], 15, top + 10, height - bottom)
    for point, place, label in zip(points, places, labels, strict=True):
        x, y = across(point.x), up(point.y)
        parts.append(_line(x, up(point.low), x, up(point.high), GREY))
        parts.append(_line(x + 6, y, width - right + 6, place - 4, "#ccc"))
        fill = BLUE if point.front else "#fff"
        circle = '<circle cx="{:.1f}" cy="{:.1f}" r="5" fill="{}" stroke="{}" stroke-width="2"/>'
        parts.append(Markup(circle).format(x, y, fill, INK))
        parts.append(_text(width - right + 10, place, label, "start"))
    return Markup("\n").join([*parts, Markup("</svg>")])


def bars(shares: Mapping[str, Sequence[float]], labels: Sequence[str]) -> Markup:
    """Draw one row of bars for each name: shares in [0, 1], with their per cent above them."""
    left, column, row = _room(shares), 80, 95
    width, height = left + column * len(labels) + 10, row * len(shares) + 30
    parts = [_frame(width, height, "shares by step")]
    for number, (name, values) in enumerate(shares.items()):
        base = row * (number + 1)
        parts.append(_text(left - 12, base, name, "end"))
        parts.append(_line(left, base + 4, width - 10, base + 4, INK))
        for place, share in enumerate(values):
            tall = share * (row - 25)
            x = left + column * place + 10
            bar = '<rect x="{}" y="{:.1f}" width="{}" height="{:.1f}" fill="{}"/>'
            parts.append(Markup(bar).format(x, base + 4 - tall, column - 20, tall, BLUE))
            parts.append(_text(x + (column - 20) / 2, base - tall, f"{100 * share:.1f}", "middle"))
    for place, label in enumerate(labels):
        parts.append(_text(left + column * (place + 0.5), height - 8, label, "middle"))
    return Markup("\n").join([*parts, Markup("</svg>")])


def _room(labels: Iterable[str]) -> int:
    """Return a width that holds any of these texts, up to a limit: characters are 8 units wide at most, nearly all."""
    return min(600, 20 + 8 * max(map(len, labels)))


def _frame(width: int, height: int, title: str) -> Markup:
    start = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {0} {1}" width="{0}" height="{1}" role="img" ' + _FONT
    return Markup(start + "><title>{2}</title>").format(width, height, title)


def _line(x1: float, y1: float, x2: float, y2: float, color: str) -> Markup:
    line = '<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" stroke="{}"/>'
    return Markup(line).format(x1, y1, x2, y2, color)


def _text(x: float, y: float, text: str, anchor: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}" fill="{}">{}</text>').format(x, y, anchor, INK, text)


def _ticks(low: float, high: float, log: bool) -> list[float]:
    """Return round numbers for an axis: from 0 to ``high``, or 1, 2 and 5 times powers of ten between the two."""
    if log:
        powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [digit * 10.0**power for power in powers for digit in (1, 2, 5)]
        return [tick for tick in ticks if low <= tick <= high]
    if high <= 0:
        return [0.0]
    power = 10.0 ** math.floor(math.log10(high))
    step = next(size * power for size in (0.1, 0.2, 0.5, 1.0, 2.0) if high / (size * power) <= 6)
    return [step * place for place in range(int(high / step) + 1)]


def _spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move heights apart to at least ``gap``, in their order, keeping within ``low`` and ``high`` where they fit."""
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    placed: list[float] = []
    for place in order:
        placed.append(max(wanted[place], placed[-1] + gap if placed else low))
    limit = high
    for number in range(len(placed) - 1, -1, -1):
        placed[number] = min(placed[number], limit)
        limit = placed[number] - gap
    return [placed[order.index(place)] for place in range(len(wanted))]
