"""How near the sub-queries stay to the question and to the gold passages, round by round."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from maps_rag.metrics.drift.by_round import ByRound, Values, mean_by_round, mean_or_none, unit
from maps_rag.metrics.drift.encoding import QueryEncoder, QueryPath, cached, has_text, query_paths, retrieval_rounds
from maps_rag.metrics.drift.estimate import Floats
from maps_rag.programs.errors import UserError

RANDOM_PASSAGES = 10
"""Passages of other questions that each question is compared with; ours."""


@dataclass(frozen=True, slots=True)
class RoundSimilarity:
    """Cosines by round, averaged within a question and then over questions.

    :param mean: over all pairs of a sub-query of the round and a text (the paper's).
    :param best: for each text the nearest sub-query of the round, averaged over the texts (ours): a round that covers
        several hops at once is not held against its sub-queries.
    """

    mean: ByRound
    best: ByRound


@dataclass(frozen=True, slots=True)
class Similarity:
    """What :func:`similarity_by_round` found.

    :param question: to the question.
    :param gold: to the question's gold passages; over the questions that have some with a text.
    :param random: to passages that are gold for other questions, over the same questions: what no relation looks like,
        since cosines of many encoders lie in a narrow band.
    :param without_gold: questions without a gold passage whose text is known; they count only for ``question``.
    """

    question: RoundSimilarity
    gold: RoundSimilarity
    random: RoundSimilarity
    without_gold: int


def similarity_by_round(
    trajectories: Iterable[Mapping[str, Any]],
    encoder: QueryEncoder,
    supporting: Iterable[Sequence[Any]],
    *,
    texts: Mapping[str, Mapping[str, Any]] | None = None,
    random_passages: int = RANDOM_PASSAGES,
    seed: int = 0,
) -> Similarity:
    """Return the similarity of the sub-queries to the question, to its gold passages and to random ones.

    :param trajectories: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives them, of one method.
    :param encoder: the retriever's encoder, with ``encode_passages`` where there is gold.
    :param supporting: the gold passages of each trajectory: ids, or mappings with ``title`` and ``text``.
    :param texts: passages ({title, text}) by id, for gold that is named by id. An id without a text is left out: taking
        its text from what was found would count only gold that was found.
    :param random_passages: how many passages of other questions each question is compared with.
    :param seed: of their choice.
    :raises UserError: when the lengths differ, a vector is not finite or the encoder encodes no passages.
    """
    given = list(trajectories)
    golds = [_texts_of(items, texts or {}) for items in supporting]
    if len(golds) != len(given):
        raise UserError(f"There are {len(given)} trajectories and {len(golds)} lists of gold passages: give one each.")
    kept = [place for place, item in enumerate(given) if retrieval_rounds(item) and has_text(item)]
    golds = [golds[place] for place in kept]
    encoder = cached(encoder)
    paths = query_paths([given[place] for place in kept], encoder)
    pool = list(dict.fromkeys(text for gold in golds for text in gold))
    encoder.keep(passages=pool)
    others = _others(paths, golds, pool, random_passages, seed)
    to_question = [_cosines(path, unit(path.start[None])) for path in paths]
    to_gold = [_cosines(path, unit(encoder.encode_passages(gold))) for path, gold in zip(paths, golds, strict=True)]
    to_others = [
        _cosines(path, unit(encoder.encode_passages(other))) for path, other in zip(paths, others, strict=True)
    ]
    with_gold = {path.question for path, gold in zip(paths, golds, strict=True) if gold}
    return Similarity(
        _summary(to_question, paths),
        _summary(to_gold, paths),
        _summary(to_others, paths),
        len({path.question for path in paths} - with_gold),
    )


def _texts_of(supporting: Sequence[Any], texts: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the gold passages as an encoder reads them: the title, a line break, the text."""
    found = [item if isinstance(item, Mapping) else texts.get(str(item)) for item in supporting]
    shown = [(str(item.get("title") or ""), str(item.get("text") or "")) for item in found if item is not None]
    return list(dict.fromkeys(f"{title}\n{text}" if title else text for title, text in shown if text.strip()))


def _others(
    paths: Sequence[QueryPath], golds: Sequence[list[str]], pool: Sequence[str], count: int, seed: int
) -> list[list[str]]:
    """Draw passages that are not gold for each question that has gold."""
    rng = np.random.default_rng(seed)
    own: dict[str, set[str]] = {}
    for path, gold in zip(paths, golds, strict=True):
        own.setdefault(path.question, set()).update(gold)
    drawn: dict[str, list[str]] = {question: [] for question in own}
    for question, gold_texts in own.items():
        if gold_texts:
            # Enough that as many are left when the question's own are taken out.
            places = rng.choice(len(pool), min(len(pool), count + len(gold_texts)), replace=False)
            drawn[question] = [pool[place] for place in places if pool[place] not in gold_texts][:count]
    return [drawn[path.question] for path in paths]


def _cosines(path: QueryPath, targets: Floats) -> tuple[Values, Values]:
    """Return the mean and the best cosine of each round's sub-queries with unit targets; None where there are none."""
    if not targets.size:
        return [None] * len(path.rounds), [None] * len(path.rounds)
    rounds = [unit(rows) @ targets.T for rows in path.rounds]
    return [mean_or_none(found) for found in rounds], [mean_or_none(_best(found)) for found in rounds]


def _best(found: Floats) -> Floats:
    """Return the largest of each column; NaN where it has nothing else."""
    there = ~np.isnan(found)
    largest = np.where(there, found, -np.inf).max(axis=0)
    return np.where(there.any(axis=0), largest, np.nan)


def _summary(found: Sequence[tuple[Values, Values]], paths: Sequence[QueryPath]) -> RoundSimilarity:
    questions = [path.question for path in paths]
    return RoundSimilarity(
        mean_by_round([mean for mean, _ in found], questions), mean_by_round([best for _, best in found], questions)
    )
