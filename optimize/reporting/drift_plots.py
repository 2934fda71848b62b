"""The figures of the paper on drift, as files, drawn with matplotlib (extra ``plots``).

Methods differ by colour (Okabe and Ito's, which colour-blind readers tell apart), marker and dashes, or hatching, so
that a figure can be read in grey.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from maps_rag.metrics.drift import PUBLISHED_STOPPING, Estimate
from maps_rag.optimize.reporting.drift_cells import CellDrift
from maps_rag.programs.errors import UserError

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#000000", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES = ("-", "--", "-.", ":")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++")
FORMS = ("svg", "pdf", "png")

Curve = Sequence[Estimate | None]


def save_plots(cells: Sequence[CellDrift], folder: str | Path, *, form: str = "svg") -> list[Path]:
    """Draw the figures of each set and return the files.

    Similarity to question and gold by round, S_t and its excess over the nulls, cumulative offset, stopping steps.
    Error bars are the 95 % intervals.

    :param folder: where they go; it is made where it is missing.
    :param form: "svg", "pdf" or "png".
    :raises UserError: when matplotlib is not installed, the form is another or the folder cannot be written.
    """
    if form not in FORMS:
        raise UserError(f"The form of a plot must be {', '.join(FORMS)}, but is {form!r}.")
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UserError("Plots need matplotlib: install it with pip install 'maps-rag[plots]'.") from None
    target = Path(folder)
    written = []
    try:
        target.mkdir(parents=True, exist_ok=True)
        for dataset in dict.fromkeys(cell.dataset for cell in cells):
            mine = [cell for cell in cells if cell.dataset == dataset]
            for name, draw in _DRAWINGS.items():
                figure = Figure(figsize=(11, 4), layout="constrained")
                if draw(figure, mine):
                    figure.suptitle(dataset)
                    _legend(figure)
                    path = target / f"{name}-{re.sub(r'[^A-Za-z0-9_-]+', '-', dataset)}.{form}"
                    figure.savefig(path, dpi=200)
                    written.append(path)
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error.strerror}): name another folder.") from None
    return written


def draw_similarity(figure: Any, cells: Sequence[CellDrift]) -> bool:
    """Draw the cosine of the sub-queries with the question, with gold and with random passages, by round."""
    question, gold, random = figure.subplots(1, 3)
    gold.sharey(random)
    drawn = False
    for cell, style in zip(cells, _styles(), strict=False):
        found = cell.similarity
        drawn |= _curve(question, found.question.mean, cell.method, style)
        _curve(gold, found.gold.mean, cell.method, style)
        _curve(random, found.random.mean, cell.method, style)
    _axes(question, "round", "cosine with the question")
    _axes(gold, "round", "cosine with gold passages")
    _axes(random, "round", "cosine with random passages")
    return drawn


def draw_momentum(figure: Any, cells: Sequence[CellDrift]) -> bool:
    """Draw S_t with the closed form of a random walk, and the excess over each null."""
    score, shuffled, memoryless = figure.subplots(1, 3)
    longest: Sequence[float] = ()
    for cell, style in zip(cells, _styles(), strict=False):
        if (found := cell.momentum.get("mean")) is not None:
            _curve(score, found.all.score, cell.method, style)
            _curve(shuffled, found.all.nulls["shuffled"].excess, cell.method, style)
            _curve(memoryless, found.all.nulls["memoryless"].excess, cell.method, style)
            longest = max(longest, found.random_walk, key=len)
    score.plot(range(1, len(longest) + 1), longest, color="0.4", linewidth=0.8, label="random walk, closed form")
    _axes(score, "t", "S, of the mean sub-query")
    for axes, null in ((shuffled, "shuffled rounds"), (memoryless, "random steps")):
        axes.axhline(0, color="0.4", linewidth=0.8)
        _axes(axes, "t", f"excess of S over {null}")
    return bool(longest)


def draw_offset(figure: Any, cells: Sequence[CellDrift]) -> bool:
    """Draw the changes of the cosine of momentum and question, added up, signed and absolute."""
    signed, absolute = figure.subplots(1, 2)
    drawn = False
    for cell, style in zip(cells, _styles(), strict=False):
        if cell.offset is not None:
            drawn |= _curve(signed, cell.offset.all.signed, cell.method, style)
            _curve(absolute, cell.offset.all.absolute, cell.method, style)
    _axes(signed, "t", "cumulative offset, signed")
    _axes(absolute, "t", "cumulative offset, absolute")
    return drawn


def draw_stopping(figure: Any, cells: Sequence[CellDrift]) -> bool:
    """Draw the shares that stop at each step, beside the bars of the paper, which are drawn without a fill."""
    axes = figure.subplots()
    groups = [(cell.method, cell.stopping.bars) for cell in cells]
    groups += [(f"paper: {name}", bars) for name, bars in PUBLISHED_STOPPING.items()]
    width = 0.85 / len(groups)
    looks = zip(cycle(COLOURS), cycle(HATCHES), strict=False)
    for place, ((label, bars), (colour, hatch)) in enumerate(zip(groups, looks, strict=False)):
        shares = (bars.step_1, bars.step_2, bars.steps_3_and_4, bars.step_5_or_later)
        at = [step + (place - (len(groups) - 1) / 2) * width for step in range(len(shares))]
        face = colour if place < len(cells) else "white"
        tall = [100 * share for share in shares]
        axes.bar(at, tall, width, label=label, facecolor=face, edgecolor="black", linewidth=0.8, hatch=hatch)
    axes.set_xticks(range(4), ["1", "2", "3 and 4", "5 or later"])
    axes.set_xlabel("step: a retrieval round, and the answer one more")
    axes.set_ylabel("questions that stop, %")
    return True


_DRAWINGS: dict[str, Callable[[Any, Sequence[CellDrift]], bool]] = {
    "similarity": draw_similarity,
    "momentum": draw_momentum,
    "offset": draw_offset,
    "stopping": draw_stopping,
}


def _styles() -> Iterator[dict[str, str]]:
    """Yield a look for each method, the same in all figures of a set."""
    looks = zip(cycle(COLOURS), cycle(MARKERS), cycle(DASHES), strict=False)
    return ({"color": colour, "marker": marker, "linestyle": dash} for colour, marker, dash in looks)


def _curve(axes: Any, values: Curve, label: str, style: dict[str, str]) -> bool:
    """Draw means with their intervals, and say whether there were any; points without a value are left out."""
    points = [(place, value) for place, value in enumerate(values, 1) if value is not None]
    if not points:
        return False
    errors = [
        [0.0 if value.low is None else value.mean - value.low for _, value in points],
        [0.0 if value.high is None else value.high - value.mean for _, value in points],
    ]
    means = [value.mean for _, value in points]
    axes.errorbar([place for place, _ in points], means, yerr=errors, label=label, capsize=2, **style)
    return True


def _axes(axes: Any, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.xaxis.get_major_locator().set_params(integer=True)


def _legend(figure: Any) -> None:
    """Put one legend under all panels, each name once, where it hides nothing."""
    named: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=4, fontsize="small")
