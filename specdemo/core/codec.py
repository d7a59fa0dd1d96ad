"""A run as one JSON document, and back: enough to recompute every shown number.

Values that equal a field's default are left out, times keep full precision, and unknown keys are ignored on reading, so
a document of the same ``schema`` written by a later version still opens. :func:`from_json` trusts the document's shape:
check outside documents before (see ``runs/stored.py``).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from specdemo.core.engine import EngineFacts
from specdemo.core.events import CountersRead, Event, Failed, Finished, Noted, Started, Tokens
from specdemo.core.run import SCHEMA, Probe, RunHeader, RunRecord

Json = dict[str, Any]

EVENT_TYPES: dict[str, type[Event]] = {
    "started": Started,
    "tokens": Tokens,
    "counters": CountersRead,
    "noted": Noted,
    "finished": Finished,
    "failed": Failed,
}
"""The ``type`` of each event in the document."""

_NAMES = {cls: name for name, cls in EVENT_TYPES.items()}


def to_json(record: RunRecord) -> Json:
    """``{"schema", "header", "events", "probe"}`` of plain dicts, lists, strings and numbers."""
    return {
        "schema": SCHEMA,
        "header": encode(replace(record.header, facts=_without_paths(record.header.facts))),
        "events": [event_to_json(event) for event in record.events],
        "probe": None if record.probe is None else encode(record.probe),
    }


_ABSOLUTE = re.compile(r"^(/|[A-Za-z]:[\\/]|\\\\)")


_Pair = tuple[EngineFacts | None, EngineFacts | None]


def _without_paths(facts: _Pair) -> _Pair:
    """Model folders as ``local:digest/name``: equal folders stay equal, and nobody learns a server's paths."""
    return _without_path(facts[0]), _without_path(facts[1])


def _without_path(facts: EngineFacts | None) -> EngineFacts | None:
    if facts is None or facts.root is None or not _ABSOLUTE.match(facts.root):
        return facts
    root = facts.root
    name = root.rstrip("/\\").replace("\\", "/").rsplit("/", 1)[-1]
    digest = hashlib.sha256(root.encode("utf-8", "replace")).hexdigest()[:8]
    return replace(facts, root=f"local:{digest}/{name}")


def event_to_json(event: Event) -> Json:
    """One event: its ``type`` and the fields that differ from their defaults."""
    return {"type": _NAMES[type(event)], **encode(event)}


def from_json(document: Mapping[str, Any]) -> RunRecord:
    """The record that :func:`to_json` wrote. Raises ValueError, KeyError or TypeError on another shape."""
    if document["schema"] != SCHEMA:
        raise ValueError(f"schema {document['schema']!r} is not {SCHEMA}")
    probe = document.get("probe")
    return RunRecord(
        header=decode(RunHeader, document["header"]),
        events=tuple(event_from_json(event) for event in document["events"]),
        probe=None if probe is None else decode(Probe, probe),
    )


def event_from_json(document: Mapping[str, Any]) -> Event:
    """The event that :func:`event_to_json` wrote."""
    event: Event = decode(EVENT_TYPES[document["type"]], document)
    return event


def encode(value: Any) -> Any:
    """A dataclass, enum, tuple or plain value as JSON-ready data."""
    if is_dataclass(value) and not isinstance(value, type):
        return {
            spec.name: encode(own)
            for spec in _fields(type(value))
            if (own := getattr(value, spec.name)) != _default(spec)
        }
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    if isinstance(value, Enum):
        return value.value
    return value


def decode(kind: Any, data: Any) -> Any:
    """The value of type ``kind`` that :func:`encode` turned into ``data``."""
    return _decoder(kind)(data)


@cache
def _fields(kind: type[Any]) -> tuple[Field[Any], ...]:
    return fields(kind)


def _default(spec: Field[Any]) -> Any:
    if spec.default is not MISSING:
        return spec.default
    return spec.default_factory() if spec.default_factory is not MISSING else MISSING


@cache
def _decoder(kind: Any) -> Callable[[Any], Any]:
    """How to read a type: dataclasses by their fields, unions by their non-None member, tuples item by item."""
    if is_dataclass(kind):
        return _dataclass_decoder(kind)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _union_decoder([part for part in get_args(kind) if part is not type(None)])
    if origin is tuple:
        return _tuple_decoder(get_args(kind))
    if origin is Literal:
        return _literal_decoder(get_args(kind))
    if kind is float:
        return float
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind
    return _plain_decoder(kind)


def _dataclass_decoder(kind: Any) -> Callable[[Any], Any]:
    hints = get_type_hints(kind)
    readers = {spec.name: _decoder(hints[spec.name]) for spec in fields(kind)}

    def read(data: Any) -> Any:
        return kind(**{name: reader(data[name]) for name, reader in readers.items() if name in data})

    return read


def _union_decoder(parts: list[Any]) -> Callable[[Any], Any]:
    readers = [_decoder(part) for part in parts]

    def read(data: Any) -> Any:
        if data is None:
            return None
        # Unions of plain types (stop_reason: str or int) keep the value's own type.
        return readers[0](data) if len(readers) == 1 else _one_of(parts, data)

    return read


def _one_of(parts: list[Any], data: Any) -> Any:
    if type(data) in parts:
        return data
    raise TypeError(f"{type(data).__name__} is none of {parts}")


def _tuple_decoder(parts: tuple[Any, ...]) -> Callable[[Any], Any]:
    if len(parts) == 2 and parts[1] is Ellipsis:
        item = _decoder(parts[0])
        return lambda data: tuple(map(item, data))
    items = [_decoder(part) for part in parts]
    return lambda data: tuple(read(value) for read, value in zip(items, data, strict=True))


def _literal_decoder(allowed: tuple[Any, ...]) -> Callable[[Any], Any]:
    def read(data: Any) -> Any:
        if data not in allowed:
            raise ValueError(f"{data!r} is none of {allowed}")
        return data

    return read


def _plain_decoder(kind: Any) -> Callable[[Any], Any]:
    def read(data: Any) -> Any:
        if type(data) is not kind:
            raise TypeError(f"{data!r} is no {kind.__name__}")
        return data

    return read
