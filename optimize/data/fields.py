"""One row of a data set, read field by field: whatever is wrong names the place of the row and the field.

No message quotes what a row holds: the text of a gated set must not get into logs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from maps_rag.programs.errors import UserError


class Row:
    """The fields of one row; ``where`` is its place, such as "dev.jsonl, line 3". A null field counts as absent.

    :raises UserError: the row is no mapping; in the methods: the field is missing or of another type.
    """

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, Mapping):
            raise UserError(f"{where}: a row must be an object with named fields, not {_kind(values)}")
        self.values: Mapping[str, Any] = values
        self.where = where

    def fail(self, field: str, problem: str) -> NoReturn:
        """Raise the error of a field."""
        raise UserError(f"{self.where}: the field {field!r} {problem}")

    def has(self, field: str) -> bool:
        """Say whether a field is there and not null."""
        return self.values.get(field) is not None

    def present(self, *fields: str) -> str:
        """Return the first of several names of a field that the row has."""
        for field in fields:
            if self.has(field):
                return field
        self.fail(fields[0], "is missing")

    def text(self, *fields: str) -> str:
        """Return a text that is not blank, without outer spaces; ``fields`` are the names that it may have."""
        field = self.present(*fields)
        return self._checked(field, self.values[field])

    def optional_text(self, field: str) -> str | None:
        """Return a text, or None if it is absent or blank."""
        value = self.values.get(field)
        if value is None or (isinstance(value, str) and not value.strip()):
            return None
        return self._checked(field, value)

    def identifier(self, *fields: str) -> str | None:
        """Return an id, given as a text or a whole number; None if there is none."""
        field = next((name for name in fields if self.has(name)), None)
        if field is None:
            return None
        value = self.values[field]
        return self._checked(field, str(value) if isinstance(value, int) and not isinstance(value, bool) else value)

    def whole(self, field: str) -> int | None:
        """Return a whole number from 1, or None if it is absent."""
        value = self.values.get(field)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            self.fail(field, f"must be a whole number from 1, not {_kind(value)}")
        return value

    def texts(self, *fields: str) -> list[str]:
        """Return the texts of a list, or the one text, without blank ones and repeats; at least one."""
        field = self.present(*fields)
        value = self.values[field]
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list | tuple):
            self.fail(field, f"must be a text or a list of texts, not {_kind(value)}")
        blank = [isinstance(item, str) and not item.strip() for item in items]
        kept = [self._checked(field, item) for item, is_blank in zip(items, blank, strict=True) if not is_blank]
        if not kept:
            self.fail(field, "holds no text: a question without an answer cannot be scored")
        return list(dict.fromkeys(kept))

    def parsed(self, field: str) -> Any:
        """Return a nested value; some files hold it as JSON in a string."""
        value = self.values.get(self.present(field))
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            self.fail(field, "is a string, but not the JSON that it should hold")

    def inner(self, field: str) -> Row:
        """Return an object inside the row."""
        value = self.parsed(field)
        if not isinstance(value, Mapping):
            self.fail(field, f"must be an object, not {_kind(value)}")
        return Row(value, f"{self.where}, field {field!r}")

    def rows(self, field: str) -> list[Row]:
        """Return the objects of a list, which may also be given as an object of lists (a column for each name)."""
        value = self.parsed(field)
        if isinstance(value, Mapping):
            value = self._transposed(field, value)
        if not isinstance(value, list | tuple):
            self.fail(field, f"must be a list, not {_kind(value)}")
        return [Row(item, f"{self.where}, field {field!r}, item {at}") for at, item in enumerate(value, 1)]

    def pairs(self, field: str, first: str, *second: str) -> list[tuple[str, Any]]:
        """Return a list of pairs [title, x], also given as objects or as an object of lists.

        ``first`` is the name of the title in the latter two, ``second`` the names that x may have.
        """
        value = self.parsed(field)
        if isinstance(value, Mapping):
            value = self._transposed(field, value)
        if not isinstance(value, list | tuple):
            self.fail(field, f"must be a list, not {_kind(value)}")
        return [self._pair(field, item, first, second) for item in value]

    def _pair(self, field: str, item: Any, first: str, second: Iterable[str]) -> tuple[str, Any]:
        if isinstance(item, Mapping):
            item = (item.get(first), next((item[name] for name in second if item.get(name) is not None), None))
        if not isinstance(item, list | tuple) or len(item) != 2 or not isinstance(item[0], str) or item[1] is None:
            self.fail(field, f"must be a list of pairs of {first} and {' or '.join(second)}")
        return item[0], item[1]

    def _transposed(self, field: str, columns: Mapping[str, Any]) -> list[dict[str, Any]]:
        lists = {name: values for name, values in columns.items() if values is not None}
        if not all(isinstance(values, list | tuple) for values in lists.values()):
            self.fail(field, "must be a list, or an object of lists")
        if len({len(values) for values in lists.values()}) > 1:
            self.fail(field, f"has columns of unequal length: {', '.join(sorted(lists))}")
        return [dict(zip(lists, values, strict=True)) for values in zip(*lists.values(), strict=True)]

    def _checked(self, field: str, value: Any) -> str:
        if not isinstance(value, str):
            self.fail(field, f"must be a text, not {_kind(value)}")
        if not value.strip():
            self.fail(field, "is blank")
        try:
            value.encode()
        except UnicodeEncodeError:
            self.fail(field, "holds half of a surrogate pair, which is no text")
        return value.strip()


def _kind(value: Any) -> str:
    kinds = {type(None): "null", list: "a list", dict: "an object", str: "a text", bool: "true or false"}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number" if not isinstance(value, int) or value >= 1 else "a number below 1"
    return kinds.get(type(value), f"a {type(value).__name__}")
