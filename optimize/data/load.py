"""Questions of one data set, whole or sampled, as examples."""

from __future__ import annotations

import contextlib
import hashlib
import heapq
import json
import logging
from collections.abc import Iterable, Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import dspy
from maps_rag.optimize import mini
from maps_rag.optimize.data.fields import Row
from maps_rag.optimize.data.files import read_rows
from maps_rag.optimize.data.hub import hub_rows
from maps_rag.optimize.data.layouts import Fields, layout_of, read
from maps_rag.optimize.data.registry import DATA_SETS, DataSet, find_data_set, guess_name
from maps_rag.programs.errors import UserError

_log = logging.getLogger(__name__)


def load_questions(
    dataset: str | PathLike[str], *, split: str | None = None, n: int | None = None, seed: int = 0
) -> list[dspy.Example]:
    """Load the questions of a data set, or ``n`` of them drawn by ``seed``.

    Each example has ``id``, ``question``, ``answers``, ``dataset`` and ``supporting``: the gold passages, as ids or as
    {"title", "text"}, empty where the set has none. Where the set says it, it has ``type`` (such as "bridge") and
    ``hops``. A multiple-choice question has ``choices``, and the one answer is a letter. The inputs are ``question``
    and ``choices``. Where a set names gold passages but does not carry the text of them all, ``supporting`` is empty,
    for a share of some of them would mislead, and ``supporting_titles`` has the titles without a text.

    A row without an id gets one made from its question. The sample is drawn by the hash of ``seed`` and id: it does not
    depend on the order of the rows, and the first m of n drawn are the sample of m. It comes in the order drawn, the
    whole set in the order of its file.

    :param dataset: a name in ``DATA_SETS`` (or its hub id), which is fetched from the hub; a file in the official
        layout of a set, in FlashRAG's, in Search-o1's or in our JSON lines (``id``, ``question``, ``answers``), told
        apart by its fields; or ``name=file``, to say which set the file holds. GPQA's options are put in an order that
        comes from the record id, the same in every run.
    :param split: the split on the hub; by default the one that evaluations use. A file is one split.
    :param n: how many to draw; None or more than there are gives all.
    :raises UserError: there is no such set, file or split, the hub cannot be reached, or a row is broken: then the
        message names file, line and field.
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, int) or n < 1):
        raise UserError(f"n must be a whole number from 1, but got {n!r}; leave it out for the whole set")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UserError(f"seed must be a whole number, but got {seed!r}")
    name, file = _source(dataset)
    if file is not None:
        if split is not None:
            raise UserError(f"split {split!r} was given with the file {file}, which is one split: leave split out")
        questions = _questions(read_rows(file), name.name if name else None, guess_name(file), str(file))
    else:
        assert name is not None
        wanted = name.named_split(split)
        rows = hub_rows(name, wanted) if name.hub else read_rows(mini.questions_path())
        questions = _questions(rows, name.name, name.name, name.name)
    chosen = list(questions) if n is None else _sample(questions, n, seed)
    if not chosen:
        raise UserError(f"{dataset} holds no question that can be scored")
    if n is not None and len(chosen) < n:
        _log.warning("%s has %d questions, fewer than the %d asked for: all are used", dataset, len(chosen), n)
    return chosen


def data_hash(examples: Iterable[dspy.Example]) -> str:
    """Return a hash (SHA-256, hexadecimal) of all fields of the examples, whatever their order.

    :raises UserError: a field is not plain data.
    """
    digests = []
    for example in examples:
        try:
            text = json.dumps(example.toDict(), sort_keys=True)
        except (TypeError, ValueError) as error:
            raise UserError(f"the question {example.get('id')!r} cannot be hashed: {error}") from None
        digests.append(hashlib.sha256(text.encode()).digest())
    return hashlib.sha256(b"".join(sorted(digests))).hexdigest()


def _source(dataset: str | PathLike[str]) -> tuple[DataSet | None, Path | None]:
    """Return the set, if it is named, and the file, if one is given."""
    if not isinstance(dataset, str):
        return None, _file(str(dataset), str(dataset))
    known = find_data_set(dataset)
    if known:
        return known, None
    before, sign, after = dataset.partition("=")
    named = find_data_set(before) if sign else None
    if named:
        return named, _file(after, dataset)
    return None, _file(dataset, dataset)


def _file(name: str, given: str) -> Path:
    problem = "no data set and no file"
    # A name can be too long for a file, or begin with "~" and name no user.
    with contextlib.suppress(OSError, RuntimeError):
        path = Path(name).expanduser()
        if path.is_file():
            return path
        if path.is_dir():
            problem = "a folder; name one of its files"
    names = ", ".join(DATA_SETS)
    raise UserError(f"{given!r} is {problem}; data sets are {names}; or give FILE or, to say what it holds, NAME=FILE")


def _questions(rows: Iterable[tuple[str, Any]], given: str | None, guess: str, source: str) -> Iterator[dspy.Example]:
    layout = None
    places: dict[str, str] = {}
    left_out = 0
    lacking: list[str] = []
    for where, values in rows:
        row = Row(values, where)
        layout = layout or layout_of(row)
        fields = read(row, layout, given)
        if fields is None:
            left_out += 1
            continue
        if fields["id"] is None:
            fields["id"] = _made_id(fields["question"], places)
        elif fields["id"] in places:
            raise UserError(f"{where}: the field 'id' repeats the one of {places[fields['id']]}; ids must differ")
        places[fields["id"]] = where
        fields["dataset"] = given or fields.get("dataset") or layout.data_set or guess
        if fields.get("supporting_titles") and fields["dataset"] != "popqa":
            lacking.append(where)
        yield _example(fields)
    if left_out:
        _log.info("%s: %d questions that cannot be answered are left out", source, left_out)
    if lacking:
        _log.warning(
            "%s: %d questions lack the text of a gold passage, so they have no evidence scores; the first is %s, "
            "field 'context'",
            source,
            len(lacking),
            lacking[0],
        )


def _made_id(question: str, taken: dict[str, str]) -> str:
    made = f"q{hashlib.sha256(question.encode()).hexdigest()[:16]}"
    unique, number = made, 1
    while unique in taken:
        number += 1
        unique = f"{made}-{number}"
    return unique


def _example(fields: Fields) -> dspy.Example:
    kept = {name: value for name, value in fields.items() if value is not None and value != []}
    kept.setdefault("supporting", [])
    inputs = ("question", "choices") if "choices" in kept else ("question",)
    return dspy.Example(**kept).with_inputs(*inputs)


def _sample(questions: Iterable[dspy.Example], n: int, seed: int) -> list[dspy.Example]:
    return heapq.nsmallest(n, questions, key=lambda example: _draw(seed, str(example.id)))


def _draw(seed: int, identifier: str) -> bytes:
    return hashlib.sha256(f"{seed}\n{identifier}".encode()).digest()
