"""Intervals and tests, as the tables use them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from maps_rag.metrics.statistics import Interval, PairedTest, bootstrap_interval, mcnemar, paired_bootstrap
from maps_rag.optimize.reporting.cells import Floats
from maps_rag.optimize.reporting.results import Results
from scipy.stats import bootstrap

RESAMPLES = 9_999
_DRAWS = 1_000_000


def interval(scores: Floats, seed: int) -> Interval:
    """Return the mean of scores by question, with its interval."""
    return bootstrap_interval(scores, seed=seed)


def macro_interval(results: Results, method: str, seed: int) -> Interval:
    """Return the mean over all sets of a method, each weighing the same, with its percentile bootstrap interval.

    Questions are drawn within their set: the sets are given, the questions are samples of them.
    """
    samples = [results.cells[method, name].questions().scores for name in results.sets]
    if len(samples) == 1:
        return interval(samples[0], seed)
    mean, n = float(np.mean([sample.mean() for sample in samples])), sum(map(len, samples))

    def macro(*drawn: Floats, axis: int) -> Any:
        return np.mean([sample.mean(axis=axis) for sample in drawn], axis=0)

    found = bootstrap(
        [np.repeat(sample, 2) if len(sample) == 1 else sample for sample in samples],  # scipy refuses one alone
        macro,
        n_resamples=RESAMPLES,
        batch=max(1, _DRAWS // n),
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return Interval(mean, float(found.low), float(found.high), n)


def compare(first: Floats, second: Floats, seed: int) -> tuple[PairedTest, bool]:
    """Compare scores of the same questions, and say whether the p-value is that of McNemar's exact test.

    It is where all scores are 0 or 1: with several runs, a score is a share.
    """
    test = paired_bootstrap(first, second, seed=seed)
    if np.isin(first, (0.0, 1.0)).all() and np.isin(second, (0.0, 1.0)).all():
        return replace(test, p_value=mcnemar(first, second).p_value), True
    return test, False
