"""Whether the momentum score can be trusted: its nulls, its intervals, its fit, and how long it takes.

- The nulls: 600 synthetic trajectories of 5 rounds in 768 dimensions, sub-queries that forget each other around a
  shared shift (S_1 = .405; N = 1, 3, 5 averaged) and a random walk, fitted jointly, must give the S_t and beta_t that
  an independent simulation gave, within 0.012 and 0.025: its rounding and the sampling error of both.
- Coverage: for 100 seeds of data without memory, the interval of every step's excess over their own null, and that of
  the mean, must hold 0 in at least 90.
- The fit: a known beta recovered to 0.03 on 2,000 trajectories; the objective within 1e-3 of a grid search's.
- Time: 3,000 trajectories of 10 rounds with 3 sub-queries, mean and each, fit and nulls of 9 steps, in under 60 s of
  processor time, all threads added up.

Run it from the root of the checkout: ``python benchmarks/drift.py``. It exits with 1 where a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from maps_rag.metrics.drift import CachedEncoder, fit_momentum, query_paths, with_first_beta
from maps_rag.metrics.drift.momentum import alignment, fit_beta
from maps_rag.metrics.drift.scores import momentum_of
from maps_rag.metrics.drift.walks import Walks, walks_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.common import show_table
from tests.metrics.drift_paths import random_walks, shared_shift, with_momentum

SHARE = 0.405
SCORE_BAR, BETA_BAR = 0.012, 0.025
COVERED_BAR = 0.9
RECOVERY_BAR, GRID_BAR = 0.03, 1e-3
SECONDS_BAR = 60.0

# name: width, beta_1 that the independent simulation ended with, its beta_2 .. beta_4, its S_1 .. S_4
NULLS: dict[str, tuple[int, float, tuple[float, ...], tuple[float, ...]]] = {
    "shared shift, N = 1": (1, 0.04, (0.62, 0.82, 0.92), (0.41, 0.48, 0.52, 0.54)),
    "shared shift, N = 3": (3, 0.04, (0.63, 0.82, 0.92), (0.67, 0.73, 0.76, 0.77)),
    "shared shift, N = 5": (5, 0.04, (0.62, 0.82, 0.92), (0.77, 0.82, 0.84, 0.85)),
    "random walk": (0, 0.33, (0.60, 0.72, 0.78), (0.71, 0.82, 0.87, 0.89)),
}

Row = tuple[str, str, str, str, str]


def row(name: str, measured: str, expected: str, bar: str, met: bool) -> Row:
    """Return a row of the table."""
    return name, measured, expected, bar, "met" if met else "MISSED"


def null_rows(count: int) -> list[Row]:
    """Fit the nulls and compare them with the independent simulation."""
    rows = []
    for name, (width, first, betas, scores) in NULLS.items():
        walks = walks_of(
            shared_shift(count, 5, 768, SHARE, seed=0, width=width)
            if width
            else random_walks(count, 5, 768, seed=0, lengths=(1, 1))
        )
        beta = fit_beta(walks, 4, "joint")
        found = np.nanmean(alignment(walks, beta), axis=0)
        shown = with_first_beta(beta, first)[1:]
        for what, got, wanted, bar in (("S_t", found, scores, SCORE_BAR), ("beta_t", shown, betas, BETA_BAR)):
            off = float(np.abs(np.subtract(got, wanted)).max())
            rows.append(row(f"{name}: {what}", numbers(got), numbers(wanted), f"off <= {bar}", off <= bar))
    return rows


def coverage_rows(seeds: int, count: int) -> list[Row]:
    """Count how often the intervals of the excess of data without memory hold 0."""
    rows = []
    for name, null, made in (
        ("shift, N = 1, over shuffled", "shuffled", lambda seed: shared_shift(count, 5, 64, 0.4, seed)),
        ("shift, N = 3, over shuffled", "shuffled", lambda seed: shared_shift(count, 5, 64, 0.4, seed, 3)),
        ("random walk over memoryless", "memoryless", lambda seed: random_walks(count, 5, 64, seed)),
    ):
        held = np.zeros(5)
        for seed in range(seeds):
            found = momentum_of(walks_of(made(seed)), seed=seed).all.nulls[null]
            held += [item.low <= 0 <= item.high for item in (*found.excess, found.mean_excess)]
        measured = " ".join(f"{int(value)}" for value in held)
        met = bool((held >= COVERED_BAR * seeds).all())
        rows.append(
            row(f"{name}: S_1-S_4, mean", measured, f"{0.95 * seeds:.0f}", f">= {COVERED_BAR * seeds:.0f}", met)
        )
    return rows


def fit_rows() -> list[Row]:
    """Recover a known beta, and compare the fit with a grid search."""
    beta = (0.0, 0.6, 0.35, 0.8)
    walks = walks_of(with_momentum(2000, 12, beta, seed=3))
    rows = []
    for mode in ("step", "joint"):
        found = fit_beta(walks, 4, mode)
        off = float(np.abs(np.subtract(found, beta)).max())
        rows.append(
            row(f"known beta, {mode}", numbers(found), numbers(beta), f"off <= {RECOVERY_BAR}", off <= RECOVERY_BAR)
        )
    walks = walks_of(shared_shift(200, 4, 8, 0.3, seed=2))
    fitted = objective(walks, fit_beta(walks, 3, "joint"))
    grid = np.linspace(0, 0.99, 100)
    best = max(objective(walks, (0.0, one, two)) for one in grid for two in grid)
    rows.append(
        row("grid search, joint", f"{fitted:.5f}", f"{best:.5f}", f"off <= {GRID_BAR}", abs(fitted - best) <= GRID_BAR)
    )
    return rows


def objective(walks: Walks, beta: tuple[float, ...]) -> float:
    """Return the sum of the mean S_t."""
    return float(np.nanmean(alignment(walks, beta), axis=0).sum())


class DrawnEncoder:
    """An encoder without a model: a random vector for each text."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.rng = np.random.default_rng(0)

    def encode_queries(self, texts: list[str]) -> Any:
        return self.rng.standard_normal((len(texts), self.dimension)).astype(np.float32)


def time_row(count: int) -> Row:
    """Time fit and nulls over all steps, for the mean of each round and for each sub-query, after encoding."""
    rounds = [[f"sub-query {place} of round {index}" for place in range(3)] for index in range(10)]
    trajectories = [
        {
            "question": f"question {number}",
            "rounds": [
                {"searches": [{"query": f"{text} {number}", "ids": [], "scores": []} for text in texts]}
                for texts in rounds
            ],
        }
        for number in range(count)
    ]
    encoder = CachedEncoder(DrawnEncoder(384))
    query_paths(trajectories, encoder)
    start = time.process_time()
    for vectors in ("mean", "each"):
        fit_momentum(trajectories, encoder, steps=9, vectors=vectors)
    seconds = time.process_time() - start
    name = f"{count:,} x 10 rounds x 3, mean and each, fit and nulls"
    return row(name, f"{seconds:.1f} s", "", f"< {SECONDS_BAR:.0f} s", seconds < SECONDS_BAR)


def numbers(values: Any) -> str:
    """Return numbers with three decimals."""
    return " ".join(f"{value:.3f}" for value in values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trajectories", type=int, default=600, help="of each null")
    parser.add_argument("--seeds", type=int, default=100, help="of the coverage")
    parser.add_argument("--questions", type=int, default=200, help="a seed")
    parser.add_argument("--timed", type=int, default=3000, help="trajectories that are timed")
    options = parser.parse_args()
    rows = [
        *null_rows(options.trajectories),
        *fit_rows(),
        *coverage_rows(options.seeds, options.questions),
        time_row(options.timed),
    ]
    show_table("Momentum and its nulls", ("what", "measured", "expected", "bar", ""), rows)
    return 1 if any(result == "MISSED" for *_, result in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
