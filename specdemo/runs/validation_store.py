"""Sampling validations on disk: one strict JSON document each."""

from __future__ import annotations

import json
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from specdemo.bench.jsonable import strict_json
from specdemo.bench.sampling.result import SCHEMA, ValidationResult
from specdemo.errors import StoreError

MAX_BYTES = 16_000_000


def save_validation(path: Path, result: ValidationResult) -> None:
    """Write it. Raises StoreError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(strict_json(result, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(f"{path} can't be written: {error.strerror or error}.") from None


def load_validation(path: Path) -> ValidationResult:
    """Read it back. Raises StoreError with one sentence."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise StoreError(f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB, so it is no validation result.")
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path.name} can't be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path.name} is not JSON.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or "verdict" not in document:
        raise StoreError(f"{path.name} is no validation result of schema {SCHEMA}.")
    try:
        return TypeAdapter(ValidationResult).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise StoreError(f"{path.name} is no validation result: {where} {first['msg'].lower()}.") from None
