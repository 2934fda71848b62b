"""The diagnostics of drift as tables, with what they do and do not show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from maps_rag.metrics.drift import PUBLISHED_STOPPING, Estimate, Momentum, MomentumScores, StoppingBars
from maps_rag.metrics.statistics import Interval
from maps_rag.optimize.reporting.document import NONE, Section, Table, listed, number, percent
from maps_rag.optimize.reporting.drift_cells import CellDrift

_STEPS = ("step 1", "step 2", "steps 3 and 4", "step 5 or later")
_WORDS = {"mean": "mean of the round", "each": "each on its own"}


def drift_section(cells: Sequence[CellDrift]) -> Section:
    """Return all tables of drift as one section of a report."""
    missing = listed([f"{cell.method} on {cell.dataset}" for cell in cells if not cell.momentum])
    return Section(
        "Drift",
        (
            "What to watch are the similarities and the gold found by round. S_t, the search momentum of the paper of "
            "MAPS, measures how smooth a path is: it rises with t, and with the number of sub-queries that are "
            "averaged, without any memory. It is shown only beside two nulls without memory; what is left is the "
            "excess, and an excess is memory, not necessarily drift.",
            "Intervals are 95 %, over questions; several runs of a question count once.",
            *([f"Too few questions are long enough to fit a momentum: {missing}."] if missing else []),
        ),
        tuple(
            table
            for table in (
                similarity_table(cells),
                monitors_table(cells),
                flags_table(cells),
                momentum_table(cells, "all"),
                momentum_table(cells, "fixed"),
                offset_table(cells),
                stopping_table(cells),
            )
            if table.rows
        ),
    )


def similarity_table(cells: Sequence[CellDrift]) -> Table:
    """Return the similarities by round."""
    rows = []
    for cell in cells:
        found = cell.similarity
        columns = [part for kind in (found.question, found.gold, found.random) for part in (kind.mean, kind.best)]
        for place in range(len(found.question.mean)):
            shown = [column[place] if place < len(column) else None for column in columns]
            counts = (_count(shown[0]), *map(cosine, shown[:2]), _count(shown[2]), *map(cosine, shown[2:]))
            rows.append((cell.dataset, cell.method, f"{place + 1}", *counts))
    return Table(
        "Cosine of the sub-queries with the question, its gold passages and random passages, by round",
        (
            *("set", "method", "round", "n", "question", "question, best"),
            *("n with gold", "gold", "gold, best", "random", "random, best"),
        ),
        tuple(rows),
        (
            "Mean over all pairs within a question, then over questions; best: for each passage the nearest sub-query "
            "of the round. Random passages are gold for other questions. Later rounds are those of the questions that "
            "went on, which are others than all.",
        ),
        left=2,
    )


def monitors_table(cells: Sequence[CellDrift]) -> Table:
    """Return the direct monitors by round."""
    rows = []
    for cell in cells:
        columns = [getattr(cell.monitors, item.name) for item in fields(cell.monitors)]
        for place in range(max(map(len, columns), default=0)):
            new, gold, repeated, within, earlier, *leaked = (column[place] for column in columns)
            shown = (_plain(new), _percent(gold), _percent(repeated), _plain(within), _plain(earlier))
            rows.append((cell.dataset, cell.method, f"{place + 1}", *shown, *map(_percent, leaked)))
    return Table(
        "What each round brought, by round",
        (
            *("set", "method", "round", "new gold passages", "gold so far, %", "repeated passages, %"),
            *("cosine within the round", "cosine with the nearest earlier sub-query"),
            *("sub-queries in the state, %", "their longest run, %"),
            *("directions in the state, %", "their longest run, %"),
        ),
        tuple(rows),
        (
            "In the state: texts of at least four words, of this and earlier rounds, that stand in the reasoning state "
            "word for word; the longest run is the share of a text that stands there in one piece.",
        ),
        left=2,
    )


def flags_table(cells: Sequence[CellDrift]) -> Table:
    """Return how many questions are flagged, and what the flag is worth."""
    rows = tuple(
        (
            *(cell.dataset, cell.method, _count(cell.flags.flagged)),
            *map(_share, (cell.flags.flagged, cell.flags.precision, cell.flags.base_rate, cell.flags.recall)),
        )
        for cell in cells
        if cell.flags.flagged is not None
    )
    margin = cells[0].flags.margin if cells else 0.0
    return Table(
        "Questions flagged as drifted, %",
        ("set", "method", "n", "flagged", "precision", "without the flag", "recall"),
        rows,
        (
            "Flagged: the best sub-query of the last round is less similar to the question than that of the first, by "
            f"more than {margin:g}. Precision: of those, the share whose last round found no gold passage; it means "
            "something only where it exceeds the share among all, which is given as without the flag.",
        ),
        left=2,
    )


def momentum_table(cells: Sequence[CellDrift], population: str) -> Table:
    """Return S_t beside its nulls, over "all" questions that reach a step or the "fixed" ones that reach the last."""
    rows = []
    for cell in cells:
        for vectors, found in cell.momentum.items():
            scores: MomentumScores = getattr(found, population)
            for place in range(found.steps):
                rows.append((cell.dataset, cell.method, _WORDS[vectors], *_step(found, scores, place)))
    who = "all questions that reach t" if population == "all" else "the questions that reach the last t, at every t"
    return Table(
        f"Search momentum, over {who}",
        (
            *("set", "method", "sub-queries", "t", "n", "beta", "S"),
            *("excess over shuffled", "over random steps", "random walk"),
        ),
        tuple(rows),
        (
            "Beta is fitted on half of the questions and S_t scored on the other; beta 1 is 0 by convention, since it "
            "cannot be identified. Excess: over the same rounds in a shuffled order, and over random steps of the same "
            "lengths. An interval that holds 0 shows no memory. Random walk: the closed form, for orientation.",
        ),
        left=3,
    )


def _step(found: Momentum, scores: MomentumScores, place: int) -> tuple[str, ...]:
    excess = [scores.nulls[name].excess[place] for name in ("shuffled", "memoryless")]
    return (
        f"{place + 1}",
        _count(scores.score[place]),
        f"{scores.beta[place]:.2f}",
        cosine(scores.score[place]),
        *(cosine(item, "+.3f") for item in excess),
        f"{found.random_walk[place]:.3f}",
    )


def offset_table(cells: Sequence[CellDrift]) -> Table:
    """Return the cosine of momentum and question, and its changes added up."""
    rows = []
    for cell in cells:
        if cell.offset is None:
            continue
        curves = cell.offset.all
        for place, values in enumerate(zip(curves.cosine, curves.signed, curves.absolute, strict=True)):
            if values[0] is not None:
                start = (cell.dataset, cell.method, cell.offset_by, f"{place + 1}", _count(values[0]))
                rows.append((*start, *map(cosine, values)))
    return Table(
        "Cumulative offset: cosine of momentum and question",
        ("set", "method", "beta of", "t", "n", "cosine", "changes added up, signed", "absolute"),
        tuple(rows),
        (
            "The signed sum is the cosine less the first one. The paper does not say which sum its figure shows. "
            "Questions that reach t.",
        ),
        left=3,
    )


def stopping_table(cells: Sequence[CellDrift]) -> Table:
    """Return when the methods stopped, and the paper's figure."""
    rows = [(cell.dataset, cell.method, f"{cell.stopping.n:,}", *_bars(cell.stopping.bars)) for cell in cells]
    rows += [("paper", name, NONE, *_bars(bars)) for name, bars in PUBLISHED_STOPPING.items()]
    return Table(
        "Questions that stop at a step, %; a step is a retrieval round, and the answer one more",
        ("set", "method", "n", *_STEPS, "mean steps"),
        tuple(rows) if cells else (),
        ("The paper's rows are other models, all sets together; its steps 3 and 4 are what its other bars leave.",),
        left=2,
    )


def _bars(bars: StoppingBars) -> tuple[str, ...]:
    shares = (bars.step_1, bars.step_2, bars.steps_3_and_4, bars.step_5_or_later)
    return (*map(percent, shares), number(bars.mean_steps))


def cosine(value: Estimate | None, form: str = ".3f") -> str:
    """Return a mean of cosines with its interval: "0.405 [0.398, 0.412]"."""
    if value is None:
        return NONE
    if value.low is None or value.high is None:
        return f"{value.mean:{form}}"
    return f"{value.mean:{form}} [{value.low:{form}}, {value.high:{form}}]"


def _plain(value: Estimate | None) -> str:
    return NONE if value is None else f"{value.mean:.3f}"


def _percent(value: Estimate | None) -> str:
    return NONE if value is None else percent(value.mean)


def _share(value: Interval | None) -> str:
    return NONE if value is None else f"{percent(value.mean)} [{percent(value.low)}, {percent(value.high)}]"


def _count(value: Estimate | Interval | None) -> str:
    return NONE if value is None else f"{value.n:,}"
