"""What was found on the way to an answer, and where the answer was lost.

Read from the trajectory of any method: one without rounds (an answer from memory, a search that was found needless) has
found nothing. Answers are looked for as :func:`~maps_rag.metrics.answers.cover_em` does, as a contiguous run of
normalised tokens, never as a string of characters.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from maps_rag.metrics.answers import cover_em
from maps_rag.metrics.normalize import canonical, normalize

SAME_TEXT = 0.5
"""The share of word pairs that two texts must have in common to be the same passage; ours. See GoldPassages."""

_YES_NO = frozenset({"yes", "no"})


class GoldPassages:
    """Tells which gold passages a retrieved passage is.

    A gold passage is an id of the corpus, or a mapping with ``title`` and ``text`` (and perhaps ``id``) where the
    questions come with texts of their own. By its text, a passage is the gold one where

    - the titles are equal after normalisation, if both have one; and
    - at least half of the word pairs (neighbours, after normalisation) of the shorter text stand in the other, if both
      have a text. Corpora cut articles at other places and from other dates, and programs cut long passages, so that
      equal texts are the exception; half is ours. Two titles but no two texts are enough.

    :param supporting: the gold passages; repeated ones count once.
    """

    def __init__(self, supporting: Iterable[Any]) -> None:
        golds: dict[Any, tuple[str | None, _Text | None]] = {}
        for item in supporting:
            name = item.get("id") if isinstance(item, Mapping) else item
            text = _Text(item) if isinstance(item, Mapping) else None
            key = (None if name is None else str(name), text and (text.title, text.body))
            golds.setdefault(key, (key[0], text))
        self._golds = list(golds.values())

    def __len__(self) -> int:
        return len(self._golds)

    def __contains__(self, passage: Mapping[str, Any]) -> bool:
        return bool(self.matches(passage))

    def matches(self, passage: Mapping[str, Any]) -> set[int]:
        """Return the positions of the gold passages that ``passage`` ({id, title, text}) is; mostly none."""
        name = str(passage.get("id"))
        text = _Text(passage) if any(gold is not None for _, gold in self._golds) else None
        return {
            place
            for place, (gold_id, gold) in enumerate(self._golds)
            if (gold_id is not None and gold_id == name) or (gold is not None and text is not None and gold.same(text))
        }


class _Text:
    """A title and a text, normalised; its word pairs are counted when first needed."""

    def __init__(self, passage: Mapping[str, Any]) -> None:
        self.title = normalize(str(passage.get("title") or ""))
        self.body = str(passage.get("text") or "")
        self._pairs: Counter[tuple[str, str]] | None = None

    @property
    def pairs(self) -> Counter[tuple[str, str]]:
        if self._pairs is None:
            words = normalize(self.body).split()
            # A lone word is a pair with nothing.
            self._pairs = Counter(pairwise(words)) or Counter((word, "") for word in words)
        return self._pairs

    def same(self, other: _Text) -> bool:
        titled = bool(self.title and other.title)
        if titled and self.title != other.title:
            return False
        shorter = min(self.pairs.total(), other.pairs.total())
        if not shorter:
            return titled
        return (self.pairs & other.pairs).total() >= SAME_TEXT * shorter


def evidence(trajectory: Mapping[str, Any], supporting: Sequence[Any], answers: Sequence[str]) -> dict[str, Any]:
    """Return what one question's search found, as plain data.

    - ``gold_share``: the share of its gold passages among the passages of all rounds; ``all_gold``: whether it is 1;
      ``gold_share_by_round``: the share by the end of each round. None without gold passages.
    - ``new_passages_per_direction``: passages per sub-query that no earlier sub-query, of its own round or one before,
      had found. None where nothing was searched.
    - ``duplicate_sub_queries``: how many sub-queries had been asked before in this question, the same but for case,
      punctuation and articles.
    - ``answer_in_passages``, ``answer_in_knowledge``, ``answer_in_state``: whether an accepted answer stands in a
      passage of any round, in the knowledge of any round, in the last round's reasoning state. None where that cannot
      be said: "yes" or "no" in a text is no answer, and a method may keep no knowledge or no state. A round that a
      budget cut short has neither passages nor a state.
    - ``answer_given``: whether the final answer covers an accepted one. None without accepted answers.

    :param trajectory: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives it.
    :param supporting: the gold passages; see :class:`GoldPassages`.
    :param answers: the accepted answers of an open question. The letters of multiple choice cannot be looked for.
    """
    rounds: Sequence[Mapping[str, Any]] = trajectory["rounds"]
    searches = [search for item in rounds for search in item["searches"]]
    found_ids = {str(name) for search in searches for name in search["ids"]}
    return {
        **_gold(rounds, GoldPassages(supporting)),
        "new_passages_per_direction": len(found_ids) / len(searches) if searches else None,
        "duplicate_sub_queries": len(searches) - len({_query_key(search["query"]) for search in searches}),
        **_where_answers_stand(trajectory, answers),
        "answer_given": bool(cover_em({"answers": list(answers)}, trajectory)) if answers else None,
    }


def _gold(rounds: Sequence[Mapping[str, Any]], gold: GoldPassages) -> dict[str, Any]:
    if not len(gold):
        return {"gold_share": None, "all_gold": None, "gold_share_by_round": None}
    found: set[int] = set()
    shares: list[float] = []
    for item in rounds:
        for passage in item["passages"]:
            found |= gold.matches(passage)
        shares.append(len(found) / len(gold))
    return {
        "gold_share": len(found) / len(gold),
        "all_gold": len(found) == len(gold),
        "gold_share_by_round": shares,
    }


def _query_key(query: str) -> str:
    return normalize(query) or canonical(query)


def _where_answers_stand(trajectory: Mapping[str, Any], answers: Sequence[str]) -> dict[str, bool | None]:
    rounds = trajectory["rounds"]
    stands = _finder(answers)
    if stands is None:
        return dict.fromkeys(("answer_in_passages", "answer_in_knowledge", "answer_in_state"))
    passages = {
        (passage["id"], passage["title"], passage["text"]): None for item in rounds for passage in item["passages"]
    }
    knowledge = [fact["text"] for item in rounds for fact in item["knowledge"]]
    states = [item["reasoning_state"] for item in rounds if item["complete"]]
    return {
        "answer_in_passages": any(stands(title) or stands(text) for _, title, text in passages),
        "answer_in_knowledge": any(map(stands, knowledge)) if knowledge or _refines(trajectory) else None,
        "answer_in_state": stands(states[-1]) if any(states) else None,
    }


def _refines(trajectory: Mapping[str, Any]) -> bool:
    """Return whether knowledge was asked for: where a refining role found nothing, none was kept, not none wanted."""
    return any(call["role"] == "refine" for call in trajectory["calls"])


def _finder(answers: Sequence[str]) -> Callable[[str], bool] | None:
    """Return a test for whether a text holds an answer; None where none of the answers can be told in a text."""
    # Tokens hold no space, so that a run of tokens is a string between spaces.
    wanted = [f" {tokens} " for tokens in map(normalize, answers) if tokens and tokens not in _YES_NO]
    if not wanted:
        return None

    def stands(text: str) -> bool:
        held = f" {normalize(text)} "
        return any(answer in held for answer in wanted)

    return stands
