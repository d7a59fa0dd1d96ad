"""JSON that may come from anyone → values of an exact shape whose numbers make sense. Each fault is one clause.

Shapes are read strictly: lax reading makes numbers of the texts "nan" and "inf" after the finite check has passed.
"""

from __future__ import annotations

import json
import math
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, NoReturn, TypeVar

from pydantic import TypeAdapter, ValidationError

MAX_DEPTH = 16
MAX_COUNT = 2**53
"""Whole numbers up to here are exact in JSON, JavaScript and a database column."""
MAX_NUMBER = 1e16
MAX_TIME = 1e11
"""Seconds since 1970 are below this until the year 5138."""
LEAST_TIME = 1e-12
"""No clock ticks faster; a rate over a smaller time than this overflows."""

_SIGNED = frozenset({"presence_penalty", "frequency_penalty", "stop_reason", "z", "effect", "effective_temperature"})
_LOGPROBS = frozenset({"logprob", "candidates"})
_TIMES = frozenset({"at", "ended_at", "intended_at", "seconds", "rate"})
_SHARES = frozenset(
    {"p", "adjusted_p", "same_p", "by_prompt", "alpha", "power", "drafted_share", "top_p", "min_p", "recheck_top_share"}
)
_UNBOUND = frozenset({"seed", "timings"})
"""A seed has 64 bits; an engine's own clock is kept as it was told, and nothing is computed from it."""

T = TypeVar("T")


class Misshapen(Exception):
    """A value is not of the shape asked for: ``place`` names the field ("" for the whole), ``why`` the fault."""

    def __init__(self, place: str, why: str) -> None:
        super().__init__(place, why)
        self.place = place
        self.why = why


def parse(data: bytes | str) -> Any:
    """Strict JSON: no NaN, no Infinity. Raises ValueError or RecursionError."""
    return json.loads(data, parse_constant=_no_constant)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def unsound(document: Any) -> str | None:
    """Why plain JSON can't be used: too deep, a number beyond all use, half a character. Does not recurse itself."""
    level = [document]
    for _ in range(MAX_DEPTH):
        deeper: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                deeper.extend(value)
                deeper.extend(value.values())
            elif isinstance(value, list):
                deeper.extend(value)
            elif isinstance(value, float):
                if not math.isfinite(value):
                    return "it holds a number that is not finite"
                if abs(value) > MAX_NUMBER:
                    return "it holds a number beyond all measure"
            elif isinstance(value, int):
                if not -(2**63) <= value < 2**63:
                    return "it holds a number beyond all measure"
            elif isinstance(value, str) and not _encodable(value):
                return "it holds half a character (a lone surrogate)"
        if not deeper:
            return None
        level = deeper
    return "it is nested too deeply"


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    """Built on first use: that takes some milliseconds each."""
    return TypeAdapter(kind)


def shaped(kind: type[T], value: Any) -> T:
    """The value as ``kind``, from JSON that is not ``unsound``; unknown keys are ignored. Raises Misshapen."""
    try:
        hashable: Any = kind
        # Through JSON text, since strict reading of Python values would refuse lists for tuples.
        made: T = _adapter(hashable).validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise Misshapen(".".join(map(str, first["loc"])), first["msg"].rstrip(".").lower()) from None
    fault = _implausible(made)
    if fault is not None:
        raise fault
    return made


def _implausible(value: Any, place: str = "", name: str = "") -> Misshapen | None:
    """The first number that cannot be what its field says; counts and times are never negative."""
    kind = type(value)
    if kind is int or kind is float:
        why = _fault(value, name)
        return Misshapen(place, why) if why else None
    if kind is tuple:
        return _in_tuple(value, place, name)
    hashable: Any = kind
    for own in _names(hashable):
        inner = getattr(value, own)
        if inner is not None and type(inner) is not str and own not in _UNBOUND:
            found = _implausible(inner, f"{place}.{own}" if place else own, own)
            if found is not None:
                return found
    return None


def _in_tuple(value: tuple[Any, ...], place: str, name: str) -> Misshapen | None:
    if value and set(map(type, value)) == {int}:  # ids by the million: the two ends tell
        value = (min(value), max(value))
    for item in value:
        if type(item) is not str:
            found = _implausible(item, place, name)
            if found is not None:
                return found
    return None


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else ()


def _fault(value: float, name: str) -> str | None:
    if name in _LOGPROBS and isinstance(value, float):
        return "above 0, which no log-probability is" if value > 1e-6 else None
    if abs(value) > MAX_COUNT and isinstance(value, int):
        return "beyond all measure"
    if name == "started_at":  # wall time may lie before 1970
        return "no time that can be" if abs(value) > MAX_TIME else None
    if value < 0 and name not in _SIGNED:
        return "negative"
    if name in _TIMES or name.endswith("_s"):
        return "no time that can be" if value > MAX_TIME or 0 < value < LEAST_TIME else None
    return "above 1" if name in _SHARES and value > 1.0 + 1e-9 else None
