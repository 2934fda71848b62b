"""Intervals and tests, each worked out once however many tables show it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from maps_rag.metrics.statistics import (
    Interval,
    PairedTest,
    bootstrap_interval,
    macro_interval,
    mcnemar,
    paired_bootstrap,
)
from maps_rag.optimize.reporting.results import Results


@dataclass(frozen=True, slots=True)
class Pair:
    """Two methods on the questions of one set that both were given.

    :param test: the difference of the first less the second, its interval and its p-value.
    :param exact: whether the p-value is that of McNemar's exact test, not that of the paired bootstrap.
    """

    dataset: str
    first: str
    second: str
    test: PairedTest
    exact: bool


class Uncertainty:
    """The intervals and tests of a report."""

    def __init__(self, results: Results, seed: int) -> None:
        self.results = results
        self.seed = seed
        self._macros: dict[str, Interval] = {}
        self._pairs: dict[tuple[str, str, str], Pair | None] = {}

    @cached_property
    def cells(self) -> dict[tuple[str, str], Interval]:
        """The mean score of each (method, set), with its interval."""
        return {
            key: bootstrap_interval(cell.questions().scores, seed=self.seed) for key, cell in self.results.cells.items()
        }

    def macro(self, method: str) -> Interval:
        """Return the mean over all sets of a method that has them all, each weighing the same, with its interval."""
        if method not in self._macros:
            samples = [self.results.cells[method, name].questions().scores for name in self.results.sets]
            self._macros[method] = macro_interval(samples, seed=self.seed)
        return self._macros[method]

    def pair(self, dataset: str, first: str, second: str) -> Pair | None:
        """Compare two methods on a set; None where they share no question of it.

        McNemar's exact test is used where all scores are 0 or 1; with several runs, a score is a share.
        """
        key = (dataset, first, second)
        if key not in self._pairs:
            self._pairs[key] = self._compare(*key)
        return self._pairs[key]

    def _compare(self, dataset: str, first: str, second: str) -> Pair | None:
        cells = self.results.cell(first, dataset), self.results.cell(second, dataset)
        if cells[0] is None or cells[1] is None:
            return None
        one, two = cells[0].questions(), cells[1].questions()
        places = {name: place for place, name in enumerate(two.ids)}
        shared = [(place, places[name]) for place, name in enumerate(one.ids) if name in places]
        if not shared:
            return None
        left, right = zip(*shared, strict=True)
        scores = one.scores[list(left)], two.scores[list(right)]
        test = paired_bootstrap(*scores, seed=self.seed)
        exact = all(bool(np.isin(values, (0.0, 1.0)).all()) for values in scores)
        if exact:
            test = replace(test, p_value=mcnemar(*scores).p_value)
        return Pair(dataset, first, second, test, exact)
