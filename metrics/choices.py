"""Multiple choice: the letter that an answer declares, and accuracy."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from maps_rag.metrics.fields import gold_choices, gold_letter, letter_choices, predicted_answer
from maps_rag.metrics.normalize import canonical, find, visible

_DECORATION = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)\b|[*`$]|(?<!\w)_+|_+(?!\w)")
_BRACES = str.maketrans("{}", "()")
_EDGES = ".,;:!?\"'()[]{}"
# A point may open a number: ".5" is no "5".
_OPENING_EDGES = _EDGES.replace(".", "")
END_LENGTH = 4_000  # characters of a longer answer that are read at each of its ends


def choice_letter(answer: str | None, choices: Sequence[str] | Mapping[str, str]) -> str | None:
    """Return the upper-case letter that ``answer`` declares, or None if it declares none or more than one.

    In this order: the answer is a letter alone; it is the text of one option; it says which letter is the answer ("the
    answer is (B)", "B is correct"); it opens with a label ("B) ...", "Option B:") or ends in a line with a letter
    alone; it contains the text of exactly one option (punctuation inside words kept, since a sign can be all that tells
    two options apart); it ends in a letter in brackets. The first that applies decides, and two letters there give
    None: nothing is guessed. Of more than 8,000 characters only the first and the last 4,000 are read.

    :param answer: The answer field, not the reasoning: letters weighed there are no answer. None gives None.
    :param choices: The option texts in the order of their letters, or a mapping from letter to text.
    """
    options = letter_choices(choices)
    text = _ends(_plain(answer or ""))
    if not options or not text:
        return None
    alone = text.strip(" .,;:!?()[]").upper()
    if alone in options:
        return alone
    words = _words(text)
    same = {letter for letter, option in options.items() if words and _words(option) == words}
    if len(same) == 1:
        return same.pop()
    masked = _without_label_like(text, options)
    said, labels, bracket = _patterns("".join(sorted(options)))
    # Every bracketed letter of a text that ends in one: "either (A) or (B)" declares two.
    bracketed = _declared(bracket, text) if text.rstrip(".!")[-1] in ")]" else set()
    for found in (_declared(said, masked), _declared(labels, masked), _quoted(words, options), bracketed):
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def choice_accuracy(gold: Any, pred: Any, trace: Any = None, pred_name: Any = None, pred_trace: Any = None) -> float:
    """Return 1.0 if the answer's declared letter (:func:`choice_letter`) is the right one, else 0.0.

    An answer without one clear letter scores 0.0; count these apart with ``choice_letter(...) is None``. Raises
    UserError if ``gold`` has no ``choices`` or its right option is not one of them.
    """
    right = gold_letter(gold)
    return float(choice_letter(predicted_answer(pred), gold_choices(gold)) == right)


@lru_cache(maxsize=32)
def _patterns(letters: str) -> tuple[tuple[re.Pattern[str], ...], ...]:
    """Return three tiers of patterns whose group ``letters`` holds what is declared: said, label, in brackets."""
    # Repetitions have bounds: an answer that repeats itself for pages must not take quadratic time.
    bracketed = rf"[(\[]{{1,3}}[{letters}][)\]]"
    article = r"(?!(?<=[AI])\s+(?!(?:because|since|as|and|or|not|due|based|is)\b)(?-i:[a-z]))"
    upper = rf"(?-i:[{letters}])\b(?![-=+^']\w){article}"
    # A bare lower-case letter must end its clause: "the answer is a protein" declares nothing.
    lower = rf"(?-i:[{letters.lower()}])(?=\s*(?:[.,;:)]|$))"
    one = rf"(?:{bracketed}|{upper}|{lower})"
    # Possessive, so that a list of letters can be read in one way only: two ways an item are millions for 25.
    joint = r"\s*+(?:,\s*+(?:or|and)\b|[,/&]|\b(?:or|and)\b)\s*+(?:(?:maybe|perhaps|possibly)\s++)?(?:option\s++)?"
    several = rf"(?P<letters>{one}(?:{joint}{one}){{0,25}})"
    noun = r"(?:answer|option|choice)"
    between = r"(?:think|believe|say|agree|mean|clear|true|sure|likely|that|the|correct|right|is|a|an)"
    negated = rf"(?P<negated>(?:\bnot|n't|\bnever|\bcannot)\s+(?:{between}\s+){{0,5}})?"
    # A label that is taken back at once: "(A) is wrong".
    kept = r"(?!\W*(?:is|was|seems)\s+(?:not|wrong|incorrect|false)\b|\W*(?:isn't|wasn't|can't|cannot)\b)"
    verb = r"(?:is:?|was|would be|should be|must be|:|=|-)"
    said = (
        rf"{negated}\b{noun}\"?\s*(?:letter\s*)?{verb}\s*\"?(?:{noun}\s+)?{several}",
        rf"{negated}\b(?:choose|pick|select|go with)\s+(?:{noun}\s+)?{several}",
        rf"{negated}\b(?:it is|it's|it must be)\s+(?:{noun}\s+)?{several}(?=\s*[.,;]|\s*$)",
        rf"(?<![\w-]){several}\s+is\s+(?:the\s+)?(?:most\s+)?(?:correct|right|best|likely)\b",
    )
    labels = (
        rf"^(?:{noun}\s+)?{several}(?=\s*[.:)\]](?!\w)|\s+-+\s|\s*--|\s*$|\s*\n|\s*,?\s+(?:because|since)\b){kept}",
        rf"^(?P<letters>{bracketed}){kept}",
        rf"\n[(\[]?(?P<letters>[{letters}])[)\]]?\.?$",
    )
    bracket = (rf"(?<!not )(?P<letters>{bracketed})",)
    return tuple(tuple(re.compile(pattern, re.IGNORECASE) for pattern in tier) for tier in (said, labels, bracket))


def _declared(patterns: Sequence[re.Pattern[str]], text: str) -> set[str]:
    matches = (match for pattern in patterns for match in pattern.finditer(text))
    said = (match["letters"] for match in matches if not match.groupdict().get("negated"))
    return {letter.upper() for declaration in said for letter in re.findall(r"\b[A-Za-z]\b", declaration)}


def _without_label_like(text: str, options: Mapping[str, str]) -> str:
    """Return ``text`` without option texts that open like a label: "C. elegans" declares no C."""
    for option in options.values():
        words = _words(option)
        if len(words) > 1 and words[0].upper() in options:
            text = re.sub(rf"(?<!\w){re.escape(_plain(option))}(?!\w)", "", text, flags=re.IGNORECASE)
    return text


def _quoted(words: Sequence[str], options: Mapping[str, str]) -> set[str]:
    """Return the letters of the options whose text stands in ``words`` outside the text of a longer option."""
    left, found = list(words), set()
    lettered = sorted(((letter, _words(option)) for letter, option in options.items()), key=lambda item: -len(item[1]))
    for wanted in dict.fromkeys(tuple(option) for _, option in lettered):
        start = find(left, wanted)
        if start >= 0:
            found |= {letter for letter, option in lettered if tuple(option) == wanted}
        while start >= 0:
            # Empty words keep the neighbours of what was taken out apart.
            left[start : start + len(wanted)] = [""] * len(wanted)
            start = find(left, wanted, start + len(wanted))
    return found


def _ends(text: str) -> str:
    """Cut out the middle of a text too long for an answer: the patterns' time grows with the square of the length."""
    if len(text) <= 2 * END_LENGTH:
        return text
    return f"{text[:END_LENGTH].rpartition(' ')[0]}\n{text[-END_LENGTH:].partition(' ')[2]}"


def _plain(answer: str) -> str:
    """Return the visible text without emphasis or LaTeX wrapping, one space between words, blank lines dropped."""
    lines = _DECORATION.sub("", visible(answer)).translate(_BRACES).splitlines()
    return "\n".join(joined for line in lines if (joined := " ".join(line.split())))


def _words(text: str) -> list[str]:
    """Return the words of ``text`` with punctuation kept inside them and taken off their edges."""
    return [word for raw in canonical(_plain(text)).split() if (word := raw.rstrip(_EDGES).lstrip(_OPENING_EDGES))]
