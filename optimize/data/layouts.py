"""From a row in one of the layouts that the field uses to a question: which fields mean what.

A layout is told by the fields of the first row. Each reader returns the fields of a question (``load`` names them), or
None for a row that is no question to be scored.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from maps_rag.optimize.data.fields import Row
from maps_rag.optimize.data.gold import facts_and_context, musique_gold
from maps_rag.programs.errors import UserError

Fields = dict[str, Any]
_MUSIQUE_ID = re.compile(r"((\d)hop\d*)__")


@dataclass(frozen=True)
class Layout:
    """A layout: the fields by which it is told, the reader of a row, and the set that alone is laid out so, if any."""

    name: str
    marks: tuple[str, ...]
    read: Callable[[Row, str | None], Fields | None]
    data_set: str | None = None


def detect(row: Row) -> Layout | None:
    """Return the layout that a row is in, None if its fields fit none."""
    return next((layout for layout in LAYOUTS if all(mark in row.values for mark in layout.marks)), None)


def layout_of(row: Row) -> Layout:
    """Return the layout of the first row.

    :raises UserError: no known layout has its fields.
    """
    found = detect(row)
    if found is None:
        known = "; ".join(f"{layout.name}: {', '.join(layout.marks)}" for layout in LAYOUTS)
        names = ", ".join(str(name)[:30] for name in row.values)[:200] or "none"
        raise UserError(f"{row.where}: its fields ({names}) fit no known layout; a layout needs ({known})")
    return found


def read(row: Row, layout: Layout, given: str | None) -> Fields | None:
    """Read one row in the layout of the first; ``given`` is the name of the set if the user named it.

    :raises UserError: a field is missing or broken, or the row is in another layout.
    """
    for mark in layout.marks:
        if mark not in row.values:
            row.fail(mark, f"is missing; the first row is in the layout {layout.name}, which has it")
    own = detect(row)
    if own is not layout and own is not None:
        extra = next(mark for mark in own.marks if mark not in layout.marks)
        row.fail(extra, f"is one of the layout {own.name}, but the first row lacks it")
    return layout.read(row, given)


def _ours(row: Row, given: str | None) -> Fields:
    name = given or row.optional_text("dataset")
    identifier = row.identifier("id")
    fields: Fields = {
        "id": identifier,
        "question": row.text("question"),
        "answers": row.texts("answers", "answer"),
        "dataset": row.optional_text("dataset"),
        "supporting": _supporting(row),
        "type": row.optional_text("type"),
        "hops": row.whole("hops"),
    }
    if row.has("choices"):
        fields |= _choices(row, fields["answers"])
    if name == "popqa":
        # The property stands on the subject's page, the first; the object's page need not be found.
        fields["supporting"] = fields["supporting"][:1]
    if name in ("hotpotqa", "2wikimultihopqa") and fields["hops"] is None:
        fields["hops"] = len(fields["supporting"]) or None
    if name == "musique":
        kind = _musique_kind(identifier)
        fields |= {key: value for key, value in kind.items() if fields[key] is None}
    return fields


def _supporting(row: Row) -> list[Any]:
    if not row.has("supporting"):
        return []
    items = row.parsed("supporting")
    if not isinstance(items, list | tuple):
        row.fail("supporting", "must be a list of passage ids or of objects with title and text")
    passages: list[Any] = []
    for item in items:
        whole = isinstance(item, Mapping) and all(isinstance(item.get(key), str) for key in ("title", "text"))
        if whole:
            passages.append({"title": item["title"], "text": item["text"]})
        elif isinstance(item, str) and item:
            passages.append(item)
        else:
            row.fail("supporting", "must be a list of passage ids or of objects with title and text")
    return passages


def _choices(row: Row, answers: list[str]) -> Fields:
    options = row.parsed("choices")
    if not isinstance(options, list | tuple) or not 2 <= len(options) <= len(string.ascii_uppercase):
        row.fail("choices", "must be a list of 2 to 26 texts")
    if not all(isinstance(option, str) and option.strip() for option in options):
        row.fail("choices", "must be a list of texts, none of them blank")
    options = [option.strip() for option in options]
    letters = string.ascii_uppercase[: len(options)]
    right = answers[0] if len(answers) == 1 else ""
    if right not in letters or len(right) != 1:
        if options.count(right) != 1:
            row.fail("answers", f"must hold one letter from A to {letters[-1]} or the text of one of the choices")
        right = letters[options.index(right)]
    return {"choices": options, "answers": [right]}


def _flashrag(row: Row, given: str | None) -> Fields | None:
    fields: Fields = {
        "id": row.identifier("id"),
        "question": row.text("question"),
        "answers": row.texts("golden_answers"),
    }
    if not row.has("metadata"):
        return fields
    inner = row.inner("metadata")
    if inner.has("supporting_facts"):
        return fields | _two_paragraphs(inner, given)
    if inner.has("question_decomposition"):
        if inner.values.get("answerable") is False:
            return None
        gold, hops = musique_gold(inner)
        return fields | {"dataset": "musique", "supporting": gold, "type": f"{hops}hop", "hops": hops}
    if inner.has("prop"):
        return fields | {"dataset": "popqa"} | _popqa_kind(inner)
    return fields


def _hotpot(row: Row, given: str | None) -> Fields:
    fields = {"id": row.identifier("_id", "id"), "question": row.text("question"), "answers": row.texts("answer")}
    return fields | _two_paragraphs(row, given)


def _two_paragraphs(row: Row, given: str | None) -> Fields:
    """Return what HotpotQA and 2WikiMultihopQA keep alike: sentences, of which some are the supporting facts."""
    # HotpotQA's sentences bring their space along, those of 2WikiMultihopQA do not.
    told = given in ("hotpotqa", "2wikimultihopqa")
    hotpot = given == "hotpotqa" if told else row.has("level") and not row.has("evidences")
    gold, missing = facts_and_context(row, "" if hotpot else " ")
    name = "hotpotqa" if hotpot else "2wikimultihopqa"
    hops = 2 if hotpot else len(gold) + len(missing)
    return {
        "dataset": name,
        "supporting": [] if missing else gold,
        "supporting_titles": missing,
        "type": row.optional_text("type"),
        "hops": hops or None,
    }


def _musique(row: Row, given: str | None) -> Fields | None:
    if row.values.get("answerable") is False:
        return None
    identifier = row.identifier("id")
    answers = [row.text("answer")]
    # Not every question has another spelling.
    if row.has("answer_aliases") and row.parsed("answer_aliases"):
        answers += row.texts("answer_aliases")
    gold, hops = musique_gold(row)
    kind = {"type": f"{hops}hop", "hops": hops} | _musique_kind(identifier)
    fields = {"id": identifier, "question": row.text("question"), "answers": list(dict.fromkeys(answers))}
    return fields | {"supporting": gold} | kind


def _musique_kind(identifier: str | None) -> Fields:
    """Return type and hops out of an id such as "3hop1__...": its shape of chain and its length."""
    found = _MUSIQUE_ID.match(identifier or "")
    return {"type": found[1], "hops": int(found[2])} if found else {}


def _popqa(row: Row, given: str | None) -> Fields:
    # The file holds the list as JSON in a string.
    answers = Row({"possible_answers": row.parsed("possible_answers")}, row.where).texts("possible_answers")
    return {"id": row.identifier("id"), "question": row.text("question"), "answers": answers} | _popqa_kind(row)


def _popqa_kind(row: Row) -> Fields:
    page = row.optional_text("s_wiki_title")
    return {"type": row.optional_text("prop"), "supporting_titles": [page] if page else []}


def _gpqa(row: Row, given: str | None) -> Fields:
    record = row.identifier("Record ID")
    if record is None:
        row.fail("Record ID", "is missing; the order of the options comes from it")
    right = row.text("Correct Answer")
    options = [right, *(row.text(f"Incorrect Answer {number}") for number in (1, 2, 3))]
    order = sorted(range(4), key=lambda at: hashlib.sha256(f"{record}\n{at}".encode()).digest())
    return {
        "id": record,
        "question": row.text("Question"),
        "answers": [string.ascii_uppercase[order.index(0)]],
        "choices": [options[at] for at in order],
        "type": row.optional_text("High-level domain"),
    }


def _capitals(row: Row, given: str | None) -> Fields:
    answers = row.texts("answer", "Answer")
    return {"id": row.identifier("id"), "question": row.text("Question"), "answers": answers}


# The first that fits is taken: those with more to go by come first.
LAYOUTS = (
    Layout("GPQA", ("Question", "Correct Answer", "Incorrect Answer 1"), _gpqa, "gpqa_diamond"),
    Layout("Search-o1", ("Question", "answer"), _capitals),
    Layout("Bamboogle", ("Question", "Answer"), _capitals),
    Layout("ours", ("question", "answers"), _ours),
    Layout("FlashRAG", ("question", "golden_answers"), _flashrag),
    Layout("PopQA", ("question", "possible_answers"), _popqa, "popqa"),
    Layout("MuSiQue", ("question", "answer", "paragraphs"), _musique, "musique"),
    Layout("HotpotQA and 2WikiMultihopQA", ("question", "answer", "supporting_facts"), _hotpot),
    Layout("NQ-open", ("question", "answer"), _ours),
)
