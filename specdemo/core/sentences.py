"""Sentences of specdemo in one language, found again by key: what lets a page say them in another.

A run's log, its JSON and the command line hold plain English, which stays readable and quotable for ever. Where a
sentence goes out to a page, :func:`told` looks it up among the patterns of ``wording.py`` and returns its key with its
values, so that the page can say it in the visitor's language. Words of an engine match no pattern and stay as they are.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from specdemo.core.wording import ENGLISH, PART

INNER = frozenset(
    {"side", "silent", "first", "second", "said", "why", "words", "cause", "tail", "received", "test", "found",
     "ours", "theirs", "after", "source", "counts", "stage"}
)  # fmt: skip
"""Places whose value may be a sentence or a part of one itself; every other value is taken as it is."""

LISTS = frozenset({"problems"})
"""Places that hold several parts, joined by "; "."""

LONGEST = 1000
"""Characters; nothing that specdemo says is longer, so longer texts are an engine's."""

Told = list[Any]
"""``[key, {place: value}]``; a value is text, a Told, or a list of both (in LISTS)."""


def sentence(key: str, /, **values: object) -> str:
    """The English sentence of ``wording.py`` with its values filled in."""
    return ENGLISH[key].format_map(values)


def told(text: str | None) -> Told | None:
    """Key and values of a sentence of specdemo; None for anything else."""
    return _told(text) if text and len(text) <= LONGEST else None


def told_all(found: Mapping[str, Any]) -> dict[str, Any]:
    """For the text fields of a result: the same fields with their :func:`told`, without those that have none."""
    spoken: dict[str, Any] = {}
    for name in TEXTS & found.keys():
        value = found[name]
        if isinstance(value, str):
            spoken[name] = told(value)
        elif isinstance(value, Mapping):
            spoken[name] = {key: known for key, text in value.items() if (known := told(text)) is not None}
        elif isinstance(value, Sequence):
            spoken[name] = [told(text) for text in value]
    return {name: value for name, value in spoken.items() if value and (not isinstance(value, list) or any(value))}


def spoken(found: dict[str, Any]) -> dict[str, Any]:
    """With ``say`` (see :func:`told_all`) beside its sentences, if it has any of ours."""
    said = told_all(found)
    return {**found, "say": said} if said else found


SHAPES = {"side": "standard|speculative", "count": r"\d+", "after": r"(?: after \d+ tokens)?"}
"""What these places can hold, where a looser pattern could swallow the words around it."""

TEXTS = frozenset({"detail", "message", "reason", "remarks", "basis", "reasons", "cause", "error", "hardware", "stage"})
"""Fields of results that hold sentences: one, a list of them, or one by name."""


@cache
def _patterns() -> Sequence[tuple[str, re.Pattern[str]]]:
    """Every key with its pattern, those with most words of their own first, since others could swallow them."""
    ordered = sorted(ENGLISH, key=lambda key: -sum(len(words) for words, *_ in string.Formatter().parse(ENGLISH[key])))
    return tuple((key, re.compile(_pattern(ENGLISH[key]), re.DOTALL)) for key in ordered)


def _pattern(template: str) -> str:
    seen: set[str] = set()
    made = ""
    for words, place, _, _ in string.Formatter().parse(template):
        made += re.escape(words)
        if place is None:
            continue
        made += f"(?P={place})" if place in seen else f"(?P<{place}>{SHAPES.get(place, '.*?')})"
        seen.add(place)
    return made


@lru_cache(maxsize=2048)
def _told(text: str, *, inner: bool = False) -> Told | None:
    for key, pattern in _patterns():
        if key.startswith(PART) and not inner:
            continue
        found = pattern.fullmatch(text)
        if found is None:
            continue
        values = {place: _value(place, value) for place, value in found.groupdict().items()}
        if key != "part_both" or all(not isinstance(value, str) or value.isdigit() for value in values.values()):
            return [key, values]
    return None


def _value(place: str, value: str) -> Any:
    if place in LISTS:
        return [_part(item) for item in value.split("; ")]
    return _part(value) if place in INNER else value


def _part(value: str) -> Any:
    return (_told(value, inner=True) or value) if value else value


def places(template: str) -> list[str]:
    """Names of a template's places, sorted; each once."""
    return sorted({place for _, place, _, _ in string.Formatter().parse(template) if place is not None})


def fill(known: Told, table: Mapping[str, str], between: str = "; ") -> str | None:
    """A Told in the language of ``table``; None when a key is missing there. ``between`` joins lists."""
    key, values = known
    template = table.get(key)
    if template is None:
        return None
    said: dict[str, str] = {}
    for place, value in values.items():
        if place in LISTS and isinstance(value, Iterable):
            texts = [_text(item, table, between) for item in value]
        else:
            texts = [_text(value, table, between)]
        whole = [text for text in texts if text is not None]
        if len(whole) < len(texts):
            return None
        said[place] = between.join(whole)
    return template.format_map(said)


def _text(value: Any, table: Mapping[str, str], between: str) -> str | None:
    return value if isinstance(value, str) else fill(value, table, between)
