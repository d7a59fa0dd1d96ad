"""JSON of a user's file, read value by value: never more of it at once than a row may hold, each with its line. Pure.

A whole file is gone through twice: first for its form (one array, an object around one, several values in a row) and
its faults, then for its rows; neither pass keeps what it has read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from specdemo.bench.dataset_rows import CONTENT_KEYS, RowRefused, Twice

WRAPPERS = ("prompts", "data", "rows", "items")
"""Keys under which an object may hold the list of rows, if it is no row itself."""
_SPACE = re.compile(r"[ \t\r\n]*")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    return made if len(made) == len(pairs) else Twice(made)


_DECODER = json.JSONDecoder(object_pairs_hook=_object)


class NotJson(Exception):
    """Not valid JSON; the text says why and where, ``line`` counts from 1."""

    def __init__(self, why: str, line: int) -> None:
        super().__init__(why)
        self.line = line


class RowTooLong(Exception):
    """One value is longer than a row may be; ``line`` is where it begins."""

    def __init__(self, line: int) -> None:
        super().__init__(line)
        self.line = line


class TooManyRows(Exception):
    """More values than rows are allowed."""


@dataclass(frozen=True, slots=True)
class Item:
    """One row: where it begins, its number in its list (None outside one), and its decoded value."""

    line: int
    value: object
    item: int | None = None


@dataclass(slots=True)
class Form:
    """What a file is as a whole. ``list_key``: of the list in an object that wraps one; ``beside``: its other keys."""

    values: int = 0
    opening: str = ""
    items: int = 0
    turns: bool = True
    list_key: str | None = None
    beside: list[str] = field(default_factory=list)

    @property
    def listed(self) -> bool:
        """Whether the file is one list of rows, in an object or not (one conversation is a row)."""
        return self.values == 1 and (self.list_key is not None or (self.opening == "[" and not self.turns))


def value_of(text: str) -> object:
    """The value in one line, or why not."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        return RowRefused(f"not valid JSON ({error.msg} at column {error.colno})")
    except RecursionError:
        return RowRefused("its JSON is nested too deeply")
    except ValueError:
        return RowRefused("its JSON holds a number that is too long")


def survey(text: str, *, longest: int, most: int) -> Form:
    """The form of a whole file. Raises NotJson, RowTooLong or TooManyRows."""
    reader, form = _Reader(text, longest), Form()
    while opening := reader.peek():
        form.values += 1
        if form.values > most:
            raise TooManyRows
        form.opening = opening
        if opening == "[":
            form.items, form.turns = _look(reader, most)
        elif opening == "{":
            form.list_key, form.beside = _object_form(reader, most)
        else:
            reader.value()
    return form


def rows(text: str, form: Form, *, longest: int) -> Iterator[Item]:
    """The rows of a file of that form. Raises RowTooLong for a conversation or object that is one row and too long."""
    reader = _Reader(text, longest)
    if not form.listed:
        while reader.peek():
            line = reader.line()
            yield Item(line, reader.value())
        return
    if form.list_key is not None:
        reader.take("{")
        while reader.key() != form.list_key:
            reader.value()
            reader.take(",")
    for number, line in enumerate(reader.items(), 1):
        yield Item(line, reader.value(), number)


def _look(reader: _Reader, most: int) -> tuple[int, bool]:
    """(number of items, whether each is a turn with a role) of the list at hand."""
    count, turns = 0, True
    for _ in reader.items():
        count += 1
        if count > most:
            raise TooManyRows
        value = reader.value()
        turns = turns and isinstance(value, dict) and ("role" in value or "from" in value)
    return count, turns and count > 0


def _object_form(reader: _Reader, most: int) -> tuple[str | None, list[str]]:
    """(the key of the list of rows if it wraps one, the other keys)."""
    keys: list[str] = []
    lists: set[str] = set()
    line, beside = reader.line(), 0
    reader.take("{")
    while reader.peek() != "}":
        begun = reader.at
        key = reader.key()
        keys.append(key)
        if key in WRAPPERS and reader.peek() == "[":
            _look(reader, most)
            lists.add(key)
        else:
            try:
                reader.value()
            except RowTooLong:
                raise RowTooLong(line) from None
            beside += reader.at - begun
            if beside > reader.longest:  # millions of short keys would take a minute to read
                raise RowTooLong(line)
        if reader.peek() != "}":
            reader.take(",")
            if reader.peek() == "}":
                raise reader.fault("Expecting property name enclosed in double quotes", reader.at)
    reader.take("}")
    row = any(key in CONTENT_KEYS for key in keys if key not in lists) or len(set(keys)) < len(keys)
    chosen = next((key for key in WRAPPERS if key in lists), None)
    if row or chosen is None:
        return None, []
    return chosen, [key for key in keys if key != chosen]


class _Reader:
    """A place in a text. Values are decoded in a window, so that none longer than a row is ever built."""

    def __init__(self, text: str, longest: int) -> None:
        self._text = text
        self.longest = longest
        self._base = 0
        self._window = text[: 2 * longest]
        self._line, self._counted = 1, 0
        self.at = 0

    def line(self) -> int:
        """The line of this place; newlines are counted once each."""
        self._line += self._text.count("\n", self._counted, self.at)
        self._counted = self.at
        return self._line

    def peek(self) -> str:
        """The next character that is no space; "" at the end."""
        space = _SPACE.match(self._text, self.at)
        self.at = space.end() if space else self.at
        return self._text[self.at : self.at + 1]

    def take(self, sign: str) -> None:
        """Step over this sign. Raises NotJson if another stands there."""
        if self.peek() != sign:
            raise self.fault(f"Expecting '{sign}' delimiter", self.at)
        self.at += 1

    def key(self) -> str:
        """The next key of an object, its colon passed."""
        if self.peek() != '"':
            raise self.fault("Expecting property name enclosed in double quotes", self.at)
        key = str(self.value())
        self.take(":")
        return key

    def items(self) -> Iterator[int]:
        """The line of each item of the list at hand; the caller reads the item before it goes on."""
        self.take("[")
        if self.peek() == "]":
            self.at += 1
            return
        while True:
            self.peek()
            yield self.line()
            if self.peek() == "]":
                self.at += 1
                return
            self.take(",")

    def value(self) -> object:
        """The value at this place, decoded whole."""
        self.peek()
        if self._base + len(self._window) < min(len(self._text), self.at + self.longest):
            self._base, self._window = self.at, self._text[self.at : self.at + 2 * self.longest]
        start = self.at - self._base
        try:
            value, end = _DECODER.raw_decode(self._window, start)
        except json.JSONDecodeError as error:
            cut = self._base + len(self._window) < len(self._text)
            if cut and (error.pos > len(self._window) - 16 or error.msg.startswith("Unterminated")):
                raise RowTooLong(self.line()) from None
            raise self.fault(error.msg, self._base + error.pos) from None
        except (RecursionError, ValueError):
            raise NotJson("nested too deeply, or a number is too long", self.line()) from None
        if end - start > self.longest:
            raise RowTooLong(self.line())
        self.at = self._base + end
        return value

    def fault(self, why: str, at: int) -> NotJson:
        """What is wrong at a place."""
        line, column = self._text.count("\n", 0, at) + 1, at - self._text.rfind("\n", 0, at)
        return NotJson(f"{why} at line {line}, column {column}", line)
