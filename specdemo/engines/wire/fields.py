"""JSON from strangers, read without trust: what has the wrong type counts as absent, and is never an exception."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any

import orjson

from specdemo.core.sentences import sentence
from specdemo.errors import EngineProtocolError

_FIRST_HALF = re.compile(rb'(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2})(?=")')
_SECOND_HALF = re.compile(rb'(?<=")(?=\\u[dD][c-fC-F][0-9a-fA-F]{2})')
_ESCAPED = b"\\u"
MAX_COUNT = 2**53
"""Counts and token ids beyond this are not believed."""


def parse(data: bytes, mask: Callable[[str], str] = str) -> Any:
    """One JSON value. NaN and infinities read as null, broken UTF-8 and lone surrogates as U+FFFD.

    Raises EngineProtocolError when it is no JSON, with the beginning of what came instead; ``mask`` as in ``excerpt``.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        pass
    try:
        return _clean(json.loads(data.decode("utf-8-sig", "replace"), parse_constant=lambda _name: None))
    except (ValueError, RecursionError):
        what = excerpt(data, mask=mask)
        raise EngineProtocolError(sentence("reply_no_json", quote=what)) from None


def _clean(value: Any) -> Any:
    """Repair text that could not be encoded again; only reached where the strict parser gave up."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(item) for name, item in value.items()}
    return value


def excerpt(data: bytes | str, limit: int = 200, mask: Callable[[str], str] = str) -> str:
    """The beginning of foreign text on one line, for an error message.

    ``mask`` takes secrets out of the whole text, before anything is cut: of half a secret nothing can tell any more
    that it is one.
    """
    text = mask(data.decode("utf-8", "replace") if isinstance(data, bytes) else data)[: 4 * limit]
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def count(value: Any) -> int | None:
    """A whole number from 0 up, or None."""
    if type(value) is int and 0 <= value <= MAX_COUNT:
        return value
    if type(value) is float and value.is_integer() and 0 <= value <= MAX_COUNT:
        return int(value)
    return None


def number(value: Any) -> float | None:
    """A finite number, or None."""
    if type(value) is float or type(value) is int:
        try:
            result = float(value)
        except OverflowError:
            return None
        return result if math.isfinite(result) else None
    return None


def counts(value: Any) -> tuple[int, ...] | None:
    """A list of whole numbers from 0 up, or None if any entry is something else."""
    if type(value) is not list:
        return None
    for item in value:
        if type(item) is not int or not 0 <= item <= MAX_COUNT:
            return None
    return tuple(value)


def mapping(value: Any) -> dict[str, Any]:
    """An object, or an empty one."""
    return value if type(value) is dict else {}


def text(value: Any) -> str:
    """Text, or nothing."""
    return value if type(value) is str else ""


class Halves:
    """Characters that a server cut in two: the end of one chunk has ``\\ud83d``, the start of the next ``\\ude00``.

    Servers that count in UTF-16 do so. Each half alone would become U+FFFD (the kind of fault B01), so the first is
    held back, as it is written, until the second comes; if none does there was no character.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held = b""

    def joined(self, data: bytes) -> bytes:
        """``data`` without a first half at the end of a text, and with the one held back before a second half."""
        if _ESCAPED not in data:
            return data
        if self._held and _SECOND_HALF.search(data) is not None:
            data, self._held = _SECOND_HALF.sub(self._held.replace(b"\\", rb"\\"), data), b""
        if (found := _FIRST_HALF.search(data)) is not None:
            self._held = found[2]
            return _FIRST_HALF.sub(rb"\1", data)
        return data
