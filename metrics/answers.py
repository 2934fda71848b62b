"""Scores of a final answer: Cover-EM and what is reported beside it.

Every metric is called as DSPy calls one, ``metric(gold, pred, trace=None)``, or with GEPA's five arguments, and returns
a float. :mod:`maps_rag.metrics.fields` says which fields are read. A gold with ``choices`` is scored by its letter
(:func:`~maps_rag.metrics.choices.choice_accuracy`) whatever the metric, since "A" is an article to the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from maps_rag.metrics.choices import choice_letter
from maps_rag.metrics.fields import gold_answers, gold_choices, gold_letter, predicted_answer, predicted_response
from maps_rag.metrics.normalize import canonical, contains, tokens
from maps_rag.programs.errors import UserError

METRIC_VERSION = "cover-em/1"
"""Goes into the header of every result file; changes whenever a score could."""

CAP = 32
"""Answer tokens that the capped metric reads: the example of the definition, ours; no paper states one."""

_YES_NO = frozenset({"yes", "no"})


@dataclass(frozen=True, kw_only=True)
class CoverEM:
    """Cover-EM as a configured DSPy metric: does the prediction contain a gold answer?

    Both sides are normalised (:mod:`maps_rag.metrics.normalize`); a gold is covered where its tokens stand in the text
    as one contiguous run. Three kinds of gold are guarded:

    - "yes" and "no": the yes/no tokens of the answer must be exactly that one ("Yes and no" covers neither).
    - A gold that normalises to nothing ("A", "---") must equal the un-stripped text; a blank gold is never covered.
    - A gold with ``choices``: the letter that the answer declares must be the right one.

    The first guard is off with ``match="substring"``, as in the literature. Guards read the ``answer`` also with
    ``on="response"``, where the reasoning would trip them.

    :param on: Where to look: the final answer, or the whole visible response (``response``, else ``reasoning`` and
        ``answer``).
    :param match: "tokens" as above; "substring" compares characters, as FlashRAG and Search-R1 do ("us" is in
        "russian").
    :param max_tokens: Read only the first so many whitespace-separated words of the text; None reads all.
    :param strip_diacritics: See :func:`maps_rag.metrics.normalize.tokens`.
    :param punctuation_to_space: See :func:`maps_rag.metrics.normalize.tokens`.
    """

    on: Literal["answer", "response"] = "answer"
    match: Literal["tokens", "substring"] = "tokens"
    max_tokens: int | None = None
    strip_diacritics: bool = False
    punctuation_to_space: bool = False

    def __post_init__(self) -> None:
        if self.on not in ("answer", "response"):
            raise UserError(f"on must be 'answer' or 'response', but is {self.on!r}.")
        if self.match not in ("tokens", "substring"):
            raise UserError(f"match must be 'tokens' or 'substring', but is {self.match!r}.")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise UserError(f"max_tokens must be at least 1 or None, but is {self.max_tokens!r}.")

    @property
    def __name__(self) -> str:
        """The name that DSPy and result files show: "cover_em" and what differs from it."""
        parts = ["cover_em", *(part for part in (self.match, self.on) if part not in ("tokens", "answer"))]
        parts += [f"first_{self.max_tokens}"] if self.max_tokens is not None else []
        parts += [name for name in ("strip_diacritics", "punctuation_to_space") if getattr(self, name)]
        return "_".join(parts)

    def describe(self) -> dict[str, str | int | bool | None]:
        """Return name, version and options as plain data for the header of a result file."""
        return {
            "name": self.__name__,
            "version": METRIC_VERSION,
            "on": self.on,
            "match": self.match,
            "max_tokens": self.max_tokens,
            "strip_diacritics": self.strip_diacritics,
            "punctuation_to_space": self.punctuation_to_space,
        }

    def __call__(self, gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
        """Return 1.0 if the prediction covers a gold answer, else 0.0."""
        return _scored(gold, pred, self._covers, on=self.on, max_tokens=self.max_tokens)

    def _covers(self, gold: str, text: str, answer: str) -> float:
        wanted = self._tokens(gold)
        if not wanted:
            return _same_unstripped(gold, answer)
        # Cut once more: words of the text can part into several tokens.
        given = self._tokens(text)[: self.max_tokens]
        if self.match == "substring":
            return float(" ".join(wanted) in " ".join(given))
        if len(wanted) == 1 and wanted[0] in _YES_NO:
            return float(_YES_NO.intersection(self._tokens(answer)[: self.max_tokens]) == set(wanted))
        return float(contains(given, wanted))

    def _tokens(self, text: str) -> list[str]:
        return tokens(text, strip_diacritics=self.strip_diacritics, punctuation_to_space=self.punctuation_to_space)


_COVER_EM = CoverEM()
_SUBSTRING = CoverEM(match="substring")
_RESPONSE = CoverEM(on="response")
_CAPPED = CoverEM(max_tokens=CAP)


def cover_em(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return 1.0 if the final answer contains a gold answer as a contiguous run of tokens, else 0.0.

    The primary score; :class:`CoverEM` has the definition, its guards and its options.
    """
    return _COVER_EM(gold, pred)


def cover_em_substring(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return 1.0 if the final answer contains a gold answer as a string of characters, else 0.0.

    Comparable with the literature (FlashRAG, Search-R1, Search-o1), and as lax: gold "no" is in "I do not know".
    """
    return _SUBSTRING(gold, pred)


def cover_em_response(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return Cover-EM of the whole visible response: ``response``, else ``reasoning`` and ``answer``.

    The nearest to the wording of MAPS. A long response covers more by chance: read it beside :func:`answer_tokens`.
    """
    return _RESPONSE(gold, pred)


def cover_em_capped(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return Cover-EM of the first 32 answer tokens: the score to optimise, since length cannot buy it."""
    return _CAPPED(gold, pred)


def exact_match(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return 1.0 if the final answer equals a gold answer after normalisation, else 0.0.

    A gold that normalises to nothing is compared un-stripped.
    """
    return _scored(gold, pred, lambda wanted, _, answer: _equal(wanted, answer))


def f1(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return the best token F1 in [0, 1] of the final answer against a gold answer.

    As HotpotQA's script has it: where either side is just "yes" or "no" the two must be equal. A gold that normalises
    to nothing is compared un-stripped. To BootstrapFewShot any score above 0 is a success: pass ``metric_threshold``.
    """
    return _scored(gold, pred, lambda wanted, _, answer: _f1(wanted, answer))


def answer_tokens(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return the number of whitespace-separated words of the visible final answer; ``gold`` is not read."""
    return float(len(predicted_answer(pred).split()))


def _scored(
    gold: Any,
    pred: Any,
    score: Callable[[str, str, str], float],
    *,
    on: Literal["answer", "response"] = "answer",
    max_tokens: int | None = None,
) -> float:
    """Return the best ``score(gold answer, text looked at, final answer)``, or the choice accuracy of a choice gold."""
    choices = gold_choices(gold)
    if on == "answer" or choices:
        text = answer = _first(predicted_answer(pred), max_tokens)
    else:
        text = _first(predicted_response(pred), max_tokens)
        # A prediction that is one response has no other answer than that.
        only_response = pred is not None and "response" in pred and "answer" not in pred
        answer = text if only_response else _first(predicted_answer(pred), max_tokens)
    if choices:
        return float(choice_letter(answer, choices) == gold_letter(gold))
    return max(score(wanted, text, answer) for wanted in gold_answers(gold))


def _first(text: str, max_tokens: int | None) -> str:
    return text if max_tokens is None else " ".join(text.split()[:max_tokens])


def _same_unstripped(gold: str, answer: str) -> float:
    return float(canonical(gold) != "" and canonical(gold) == canonical(answer))


def _equal(gold: str, answer: str) -> float:
    wanted = tokens(gold)
    return float(wanted == tokens(answer)) if wanted else _same_unstripped(gold, answer)


def _f1(gold: str, answer: str) -> float:
    wanted, given = tokens(gold), tokens(answer)
    if not wanted:
        return _same_unstripped(gold, answer)
    if wanted != given and any(len(side) == 1 and side[0] in _YES_NO for side in (wanted, given)):
        return 0.0
    shared = sum((Counter(wanted) & Counter(given)).values())
    return 2 * shared / (len(wanted) + len(given))
