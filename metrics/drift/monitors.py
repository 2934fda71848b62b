"""What can be watched directly, round by round, without a fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from maps_rag.metrics.drift.by_round import ByRound, Values, mean_by_round, mean_or_none, unit
from maps_rag.metrics.drift.encoding import QueryEncoder, QueryPath, has_text, query_paths, retrieval_rounds
from maps_rag.metrics.drift.leaks import Leak, leaks
from maps_rag.metrics.evidence import GoldPassages
from maps_rag.programs.errors import UserError


@dataclass(frozen=True, slots=True)
class Monitors:
    """Means over the questions that reach a round and have the value.

    :param new_gold: gold passages that no earlier round had found, per question.
    :param gold_share: the share of the gold passages found by the end of the round. A question that has ended is no
        longer counted.
    :param repeated_passages: the share of the round's distinct passages that an earlier round had found.
    :param within_round: the mean cosine between two sub-queries of the round.
    :param to_earlier: for each sub-query the cosine with the nearest one of all earlier rounds; the mean.
    :param sub_queries_in_state: the share of the sub-queries so far that stand word for word in the state; see
        :func:`~maps_rag.metrics.drift.leaks.leaks`.
    :param sub_query_runs_in_state: the longest run of a sub-query that stands in the state, as a share of it.
    :param directions_in_state: as for sub-queries.
    :param direction_runs_in_state: as for sub-queries.
    """

    new_gold: ByRound
    gold_share: ByRound
    repeated_passages: ByRound
    within_round: ByRound
    to_earlier: ByRound
    sub_queries_in_state: ByRound
    sub_query_runs_in_state: ByRound
    directions_in_state: ByRound
    direction_runs_in_state: ByRound


def monitors(
    trajectories: Iterable[Mapping[str, Any]], encoder: QueryEncoder, supporting: Iterable[Sequence[Any]]
) -> Monitors:
    """Return the monitors of one method, by round. Trajectories without text or without a round are left out.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them.
    :param encoder: the retriever's encoder, or a :class:`~maps_rag.metrics.drift.encoding.CachedEncoder` of it.
    :param supporting: the gold passages of each trajectory; see :class:`~maps_rag.metrics.evidence.GoldPassages`.
    :raises UserError: when the lengths differ, or a vector is not finite.
    """
    given, golds = list(trajectories), list(supporting)
    if len(golds) != len(given):
        raise UserError(f"There are {len(given)} trajectories and {len(golds)} lists of gold passages: give one each.")
    pairs = [pair for pair in zip(given, golds, strict=True) if retrieval_rounds(pair[0]) and has_text(pair[0])]
    kept = [trajectory for trajectory, _ in pairs]
    paths = query_paths(kept, encoder)
    questions = [trajectory["question"] for trajectory in kept]
    gold = [gold_by_round(*pair) for pair in pairs]
    leaked = [leaks(trajectory) for trajectory in kept]

    def leak(of: str, part: Callable[[Leak], float]) -> ByRound:
        found = [[getattr(item, of) for item in rounds] for rounds in leaked]
        return mean_by_round([[item and part(item) for item in rounds] for rounds in found], questions)

    return Monitors(
        mean_by_round([new for new, _ in gold], questions),
        mean_by_round([share for _, share in gold], questions),
        mean_by_round([repeated_passages(trajectory) for trajectory in kept], questions),
        mean_by_round([within_rounds(path) for path in paths], questions),
        mean_by_round([to_earlier_rounds(path) for path in paths], questions),
        leak("sub_queries", lambda item: item.whole),
        leak("sub_queries", lambda item: item.longest_run),
        leak("directions", lambda item: item.whole),
        leak("directions", lambda item: item.longest_run),
    )


def gold_by_round(trajectory: Mapping[str, Any], supporting: Sequence[Any]) -> tuple[Values, Values]:
    """Return the gold passages that each round was the first to find, and the share found by its end."""
    gold, rounds = GoldPassages(supporting), retrieval_rounds(trajectory)
    if not len(gold):
        return [None] * len(rounds), [None] * len(rounds)
    new: list[float | None] = []
    share: list[float | None] = []
    found: set[int] = set()
    for item in rounds:
        here = set[int]().union(*(gold.matches(passage) for passage in item["passages"]))
        new.append(len(here - found))
        found |= here
        share.append(len(found) / len(gold))
    return new, share


def repeated_passages(trajectory: Mapping[str, Any]) -> Values:
    """Return the share of each round's distinct passages that an earlier round had found; None in the first."""
    seen: set[str] = set()
    shares: list[float | None] = []
    for place, item in enumerate(retrieval_rounds(trajectory)):
        here = {str(name) for search in item["searches"] for name in search["ids"]}
        shares.append(len(here & seen) / len(here) if place and here else None)
        seen |= here
    return shares


def within_rounds(path: QueryPath) -> Values:
    """Return the mean cosine between two sub-queries of each round; None where it has only one."""
    rounds = [unit(rows) for rows in path.rounds]
    return [mean_or_none((rows @ rows.T)[np.triu_indices(len(rows), 1)]) for rows in rounds]


def to_earlier_rounds(path: QueryPath) -> Values:
    """Return the mean over each round's sub-queries of the cosine with the nearest earlier one; None in the first."""
    found: list[float | None] = [None]
    earlier = unit(path.rounds[0])
    for given in path.rounds[1:]:
        rows = unit(given)
        cosines = rows @ earlier.T
        nearest = np.where(np.isnan(cosines), -np.inf, cosines).max(axis=1)
        found.append(mean_or_none(np.where(np.isinf(nearest), np.nan, nearest)))
        earlier = np.concatenate([earlier, rows])
    return found
