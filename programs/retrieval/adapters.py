"""Other retrievers in the shape that programs take."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import dspy
from maps_rag.programs.errors import UserError
from maps_rag.programs.types import Passage, Retriever

_ALLOWED = (
    "an object with search(queries, k), a callable (query, k) -> passages, a dspy.retrievers.Embeddings, "
    "or None for dspy.settings.rm"
)
_TEXT_FIELDS = ("long_text", "text", "passage", "contents", "content")
_ID_FIELDS = ("pid", "id", "docid", "_id")
# Calls side by side for one round of sub-queries.
_MOST_THREADS = 8
# DSPy writes passages as "title | text"; a longer left side is text with a bar in it.
_LONGEST_TITLE = 120


def as_retriever(source: Any) -> Retriever:
    """Return a retriever for programs, made of anything that finds passages.

    A passage keeps the id it came with; one without gets an id made from its text, the same in every run.

    :param source: An object with ``search(queries, k)``, returned as it is; a callable ``(query, k)``, or ``(query)``
        with a number of passages of its own, that returns strings, dicts, items with ``long_text``, `Passage` objects
        or a `dspy.Prediction` with ``passages``, perhaps as a coroutine; a `dspy.retrievers.Embeddings`; or None for
        what ``dspy.settings.rm`` is at each call.
    :raises UserError: the object is of another kind.
    """
    if source is None:
        return _Adapted(_settings_rm)
    if inspect.isclass(source):
        raise UserError(f"a retriever was expected, but the class {source.__name__} was given; make an object of it")
    if callable(getattr(source, "search", None)):
        found: Retriever = source
        return found
    if not callable(source):
        raise UserError(f"{type(source).__name__} is not a retriever; give {_ALLOWED}")
    return _Adapted(_with_k(source))


class _Adapted:
    """A callable of one query as a retriever: the queries of one search run side by side."""

    def __init__(self, find: Callable[[str, int], Any]) -> None:
        self._find = find

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """Return, per query in order, at most ``k`` passages."""
        if len(queries) <= 1:
            return [self._one(query, k) for query in queries]
        # DSPy's settings live in the context; a bare pool would lose them.
        with ThreadPoolExecutor(min(len(queries), _MOST_THREADS)) as pool:
            tasks = [pool.submit(copy_context().run, self._one, query, k) for query in queries]
            return [task.result() for task in tasks]

    async def asearch(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """As `search`, without blocking the event loop."""

        async def one(query: str) -> list[Passage]:
            found = await asyncio.to_thread(self._find, query, k)
            return passages_in(await found if inspect.isawaitable(found) else found, k)

        return list(await asyncio.gather(*map(one, queries)))

    def _one(self, query: str, k: int) -> list[Passage]:
        found = self._find(query, k)
        if inspect.isawaitable(found):
            if inspect.iscoroutine(found):
                found.close()
            raise UserError("this retriever is asynchronous; call the program with acall, or give a plain function")
        return passages_in(found, k)

    def __deepcopy__(self, memo: dict[int, Any]) -> _Adapted:
        return self


def _settings_rm(query: str, k: int) -> Any:
    model = dspy.settings.rm
    if model is None:
        raise UserError("no retriever: give one to the program, or set one with dspy.configure(rm=...)")
    return _with_k(model)(query, k)


def _with_k(function: Callable[..., Any]) -> Callable[[str, int], Any]:
    """Return the callable as one of (query, k), whether it takes k by name, by position or not at all."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-ins have none
        return function
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if any(p.name == "k" and p.kind is not p.POSITIONAL_ONLY for p in parameters):
        return lambda query, k: function(query, k=k)
    if len(by_position) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return function if not _takes_only_names(parameters) else lambda query, k: function(query, k=k)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return lambda query, k: function(query, k=k)
    if not by_position:
        raise UserError(f"{function!r} takes no query; give {_ALLOWED}")
    return lambda query, k: function(query)


def _takes_only_names(parameters: list[inspect.Parameter]) -> bool:
    """Return whether a signature is (*args, **kwargs), which mostly passes on to something that takes k by name."""
    return {p.kind for p in parameters} == {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def passages_in(found: Any, k: int) -> list[Passage]:
    """Return the first ``k`` passages in what a retriever returned.

    :raises UserError: it is none of the kinds that `as_retriever` names.
    """
    if isinstance(found, dspy.Prediction):
        return _from_prediction(found)[:k]
    if not _is_several(found):
        raise UserError(
            f"the retriever returned {type(found).__name__}; it must return a list of passages or a Prediction"
        )
    return [_passage(item) for item in found][:k]


def _is_several(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping)


def _from_prediction(found: dspy.Prediction) -> list[Passage]:
    if "passages" not in found:
        raise UserError(f"the retriever's Prediction has no passages, only {', '.join(found.keys()) or 'nothing'}")
    if not _is_several(found.passages):
        raise UserError(
            f"the passages of the retriever's Prediction are a {type(found.passages).__name__}; give a list of passages"
        )
    items = list(found.passages)
    passages = [_passage(item) for item in items]
    ids, scores, titles = (
        _column(found, names, len(passages)) for names in (("ids", "indices"), ("scores",), ("titles",))
    )
    return [
        _make(_long(passage), identifier, title, score) if not isinstance(item, Passage) else passage
        for item, passage, identifier, title, score in zip(items, passages, ids, titles, scores, strict=True)
    ]


def _column(found: dspy.Prediction, names: Sequence[str], count: int) -> list[Any]:
    """Return the first of some lists of a Prediction that is there and not empty, one value per passage."""
    for name in names:
        if (values := found.get(name)) is None:
            continue
        column = list(values) if _is_several(values) else [values]
        if column and len(column) != count:
            raise UserError(f"the retriever's Prediction has {count} passages, but {len(column)} {name}")
        if column:
            return column
    return [None] * count


def _long(passage: Passage) -> str:
    return f"{passage.title} | {passage.text}" if passage.title else passage.text


def _passage(item: Any) -> Passage:
    if isinstance(item, Passage):
        return item
    if isinstance(item, str):
        return _make(item)
    get: Callable[[str], Any] = item.get if isinstance(item, Mapping) else lambda name: getattr(item, name, None)
    text = next((value for name in _TEXT_FIELDS if isinstance(value := get(name), str)), None)
    if text is None:
        raise UserError(
            f"a passage is a {type(item).__name__} without a text; it must be a string or have one of "
            f"{', '.join(_TEXT_FIELDS)}"
        )
    identifier = next((value for name in _ID_FIELDS if (value := get(name)) is not None), None)
    return _make(text, identifier, get("title"), get("score"))


def _make(text: str, identifier: Any = None, title: Any = None, score: Any = None) -> Passage:
    whole = text
    if isinstance(title, str) and title:
        text = text.removeprefix(f"{title} | ")
    else:
        left, bar, right = text.partition(" | ")
        title, text = (left, right) if bar and len(left) <= _LONGEST_TITLE and "\n" not in left else ("", text)
    if identifier is None:
        identifier = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    try:
        number = 0.0 if score is None else float(score)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"a passage has the score {score!r}; it must be a finite number, or be left out")
    return Passage(str(identifier), title, text, number)
