"""A flag for questions whose search has drifted, which needs no gold, and how often it is right where there is gold.

Defined by us: a question has drifted where even the best sub-query of its last round is less similar to the question
than the best one of its first round, by more than a margin. A search that must leave the question to follow a chain of
facts does the same; that is why the flag is only as good as its precision, which stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from maps_rag.metrics.drift.by_round import unit
from maps_rag.metrics.drift.encoding import QueryEncoder, QueryPath, has_text, query_paths, retrieval_rounds
from maps_rag.metrics.evidence import GoldPassages
from maps_rag.metrics.statistics import Interval, proportion_interval
from maps_rag.programs.errors import UserError

MARGIN = 0.02
"""A difference of cosines: the smallest gap between two curves that is taken to mean something in the paper's figure,
which is drawn with E5. Cosines of other encoders spread otherwise."""


@dataclass(frozen=True, slots=True)
class DriftFlags:
    """Who drifted, and what the flag is worth on these questions: shares with Wilson's interval.

    :param flags: for each trajectory; None where it has no text or fewer than two rounds, or no direction.
    :param margin: the margin used.
    :param flagged: the share of those with a flag that is up.
    :param precision: of those flagged that have gold passages, the share whose last round found none of them.
    :param base_rate: the same share among all that have a flag and gold passages: what a precision must beat.
    :param recall: of those whose last round found no gold, the share that is flagged.
    """

    flags: tuple[bool | None, ...]
    margin: float
    flagged: Interval | None
    precision: Interval | None
    base_rate: Interval | None
    recall: Interval | None


def drift_flags(
    trajectories: Iterable[Mapping[str, Any]],
    encoder: QueryEncoder,
    supporting: Iterable[Sequence[Any]],
    *,
    margin: float = MARGIN,
) -> DriftFlags:
    """Flag the questions that drifted, and compare the flag with "the last round found no gold passage".

    Trajectories are counted, not questions: several runs of one question are several flags.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them.
    :param encoder: the retriever's encoder, or a :class:`~maps_rag.metrics.drift.encoding.CachedEncoder` of it.
    :param supporting: the gold passages of each trajectory; empty where there are none.
    :param margin: by how much the cosine with the question must have fallen, from 0 to 2.
    :raises UserError: when the lengths differ, the margin is out of range or a vector is not finite.
    """
    if not 0 <= margin <= 2:
        raise UserError(f"margin must be a difference of cosines, from 0 to 2, but is {margin!r}.")
    given, golds = list(trajectories), list(supporting)
    if len(golds) != len(given):
        raise UserError(f"There are {len(given)} trajectories and {len(golds)} lists of gold passages: give one each.")
    usable = [place for place, item in enumerate(given) if retrieval_rounds(item) and has_text(item)]
    paths = query_paths([given[place] for place in usable], encoder)
    flags: list[bool | None] = [None] * len(given)
    for place, path in zip(usable, paths, strict=True):
        flags[place] = has_drifted(path, margin)
    judged = [
        (flag, last_round_missed(item, gold))
        for flag, item, gold in zip(flags, given, golds, strict=True)
        if flag is not None and len(gold)
    ]
    return DriftFlags(
        tuple(flags),
        margin,
        _share([flag for flag in flags if flag is not None]),
        _share([missed for flag, missed in judged if flag]),
        _share([missed for _, missed in judged]),
        _share([flag for flag, missed in judged if missed]),
    )


def has_drifted(path: QueryPath, margin: float = MARGIN) -> bool | None:
    """Return whether the best sub-query of the last round is further from the question than that of the first.

    None where there are fewer than two rounds, or a vector of length 0 leaves nothing to compare.
    """
    if len(path.rounds) < 2:
        return None
    start = unit(path.start[None])[0]
    first, last = (unit(rows) @ start for rows in (path.rounds[0], path.rounds[-1]))
    if np.isnan(first).all() or np.isnan(last).all():
        return None
    return bool(np.nanmax(last) < np.nanmax(first) - margin)


def last_round_missed(trajectory: Mapping[str, Any], supporting: Sequence[Any]) -> bool:
    """Return whether the last retrieval round found no gold passage, not even one that was found before."""
    gold, rounds = GoldPassages(supporting), retrieval_rounds(trajectory)
    return not any(passage in gold for passage in rounds[-1]["passages"]) if rounds else True


def _share(hits: Sequence[bool]) -> Interval | None:
    return proportion_interval([float(hit) for hit in hits]) if hits else None
