"""Results → strict JSON: dataclasses become objects, numbers that are none become null, nothing else gets through."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum


def jsonable(value: object) -> object:
    """The value as JSON types. Raises TypeError for what has no JSON form."""
    if value is None or (isinstance(value, (bool, int)) and not isinstance(value, Enum)):
        return value
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: jsonable(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(item) for item in value]
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def strict_json(value: object, *, indent: int | None = None) -> str:
    """One JSON document without NaN or Infinity, non-ASCII text kept."""
    return json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False, indent=indent)
