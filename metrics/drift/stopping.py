"""When the search stopped, in rounds and in the paper's steps, beside the paper's figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from maps_rag.metrics.drift.estimate import Estimate, estimate


@dataclass(frozen=True, slots=True)
class StoppingBars:
    """Shares of the questions that stop at a step, and the mean step."""

    step_1: float
    step_2: float
    steps_3_and_4: float
    step_5_or_later: float
    mean_steps: float


PUBLISHED_STOPPING: Mapping[str, StoppingBars] = {
    "MAPS": StoppingBars(0.018, 0.627, 0.206, 0.149, 2.7),
    "Search-o1": StoppingBars(0.102, 0.504, 0.269, 0.125, 2.6),
    "ParallelSearch": StoppingBars(0.133, 0.585, 0.231, 0.051, 2.3),
}
"""What is known of the paper's figure of stopping steps. Steps 3 and 4 are what its other bars leave.

One account of the paper calls step 2 round 1: one retrieval round, and the answer as the second step.
"""


@dataclass(frozen=True, slots=True)
class Stopping:
    """Where the trajectories of one method stopped.

    :param n: trajectories.
    :param rounds: how many stopped after so many retrieval rounds.
    :param bars: the same in the paper's steps: a step is a retrieval round, and the answer one more.
    :param mean_rounds: the mean number of rounds.
    """

    n: int
    rounds: dict[int, int]
    bars: StoppingBars
    mean_rounds: Estimate

    @property
    def steps(self) -> dict[int, int]:
        """How many stopped at each step: rounds + 1."""
        return {rounds + 1: count for rounds, count in self.rounds.items()}


def stopping(trajectories: Iterable[Mapping[str, Any]]) -> Stopping | None:
    """Return when the trajectories of a method stopped; None where there are none.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them; they need no text.
    """
    rounds = [len(item["rounds"]) for item in trajectories]
    mean = estimate(rounds)
    if mean is None:
        return None
    counts = Counter(rounds)

    def share(*steps: int) -> float:
        return sum(counts[step - 1] for step in steps) / len(rounds)

    early = share(1), share(2), share(3, 4)
    later = sum(count for item, count in counts.items() if item >= 4) / len(rounds)
    return Stopping(len(rounds), dict(sorted(counts.items())), StoppingBars(*early, later, mean.mean + 1), mean)
