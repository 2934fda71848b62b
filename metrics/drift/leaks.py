"""Text of sub-queries and directions that comes back in the reasoning state, which the next round reads.

The structure of MAPS hides earlier sub-queries from every role; what a model copies into its own text is not hidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

from maps_rag.metrics.drift.encoding import retrieval_rounds, sub_queries
from maps_rag.metrics.normalize import contains, tokens

FEWEST_WORDS = 4
"""Shorter texts are names as a rule ("Olivier Dahan"), which a state must be free to state; ours."""


@dataclass(frozen=True, slots=True)
class Leak:
    """What of some texts stands in a reasoning state.

    :param whole: the share of the texts that stand in it word for word, as one run of normalised words.
    :param longest_run: the longest run of a text's words that stands in it, as a share of the text; the mean.
    """

    whole: float
    longest_run: float


@dataclass(frozen=True, slots=True)
class RoundLeaks:
    """Leaks into the state at the end of a round, of its own and all earlier rounds' texts; None without a state."""

    sub_queries: Leak | None
    directions: Leak | None


def leaks(trajectory: Mapping[str, Any]) -> list[RoundLeaks]:
    """Return the leaks of each retrieval round.

    Left out are texts of fewer than ``FEWEST_WORDS`` normalised words, and those that stand in the question, which
    every role reads anyway. None where nothing is left, or the method keeps no state.

    :param trajectory: as :meth:`~maps_rag.programs.trajectory.Trajectory.as_dict` gives it.
    """
    question = tokens(str(trajectory.get("question") or ""))
    queries: dict[tuple[str, ...], None] = {}
    directions: dict[tuple[str, ...], None] = {}
    found = []
    for item in retrieval_rounds(trajectory):
        for seen, texts in ((queries, sub_queries(item)), (directions, item.get("directions") or ())):
            words = (tuple(tokens(text)) for text in texts)
            seen.update((text, None) for text in words if len(text) >= FEWEST_WORDS and not contains(question, text))
        state = tokens(str(item.get("reasoning_state") or ""))
        found.append(RoundLeaks(_leak(queries, state), _leak(directions, state)))
    return found


def _leak(texts: Mapping[tuple[str, ...], None], state: list[str]) -> Leak | None:
    if not texts or not state:
        return None
    # Its table of the second sequence is kept while the first changes.
    matcher: SequenceMatcher[str] = SequenceMatcher(None, [], state, autojunk=False)
    runs = []
    for text in texts:
        matcher.set_seq1(text)
        runs.append(matcher.find_longest_match().size / len(text))
    return Leak(sum(run == 1 for run in runs) / len(runs), sum(runs) / len(runs))
