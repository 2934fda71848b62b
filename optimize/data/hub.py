"""Rows of a set on the hub, through `datasets`, which keeps them in its cache for the next time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maps_rag.optimize.data.registry import DataSet
from maps_rag.programs.errors import UserError

_UNREACHABLE = {"ConnectionError", "TimeoutError", "Timeout", "TransportError", "LocalEntryNotFoundError"}


def hub_rows(data_set: DataSet, split: str) -> Iterator[tuple[str, Any]]:
    """Yield place and value of each row of a split.

    :raises UserError: the set cannot be fetched; the message says why and how to give a file instead.
    """
    rows = _load(data_set, split)
    for number, row in enumerate(rows, 1):
        yield f"{data_set.hub}, {split}, row {number}", row


def _load(data_set: DataSet, split: str) -> Any:
    try:
        import datasets

        return datasets.load_dataset(data_set.hub, data_set.config, split=split)
    except Exception as error:  # the libraries below raise anything from OSError to their own families
        raise UserError(_problem(data_set, error)) from error


def _problem(data_set: DataSet, error: Exception) -> str:
    first = " ".join((str(error).strip() or type(error).__name__).splitlines()[0].split())[:200]
    names = _families(error)
    gate = f"{data_set.title} is gated: accept its terms on its page of the hub and log in with `hf auth login`"
    if names & _UNREACHABLE:
        why = f"the hub cannot be reached ({first})"
    elif data_set.gated:
        why = f"{gate} ({first})"
    else:
        why = f"{data_set.hub} cannot be loaded from the hub ({first})"
    file = f"a file of it, as {data_set.name}=FILE, in its official layout, FlashRAG's or our JSON lines"
    return f"no questions of {data_set.name}: {why}; what always works is {file}"


def _families(error: BaseException | None) -> set[str]:
    """Return the names of all classes that an error and its causes belong to."""
    names: set[str] = set()
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        names.update(kind.__name__ for kind in type(error).__mro__)
        error = error.__cause__ or error.__context__
    return names
