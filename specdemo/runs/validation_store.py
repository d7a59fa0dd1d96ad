"""Sampling validations on disk: one strict JSON document each."""

from __future__ import annotations

from pathlib import Path

from specdemo.bench.jsonable import strict_json
from specdemo.bench.sampling.result import SCHEMA, ValidationResult
from specdemo.errors import StoreError
from specdemo.runs.checked import Misshapen, parse, shaped, unsound

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
        document = parse(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path.name} can't be read: {error.strerror or error}.") from None
    except (ValueError, RecursionError):
        raise StoreError(f"{path.name} is not strict JSON.") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA or "verdict" not in document:
        raise StoreError(f"{path.name} is no validation result of schema {SCHEMA}.")
    fault = unsound(document)
    if fault is not None:
        raise StoreError(f"{path.name} is no validation result: {fault}.")
    try:
        result = shaped(ValidationResult, document)
    except Misshapen as found:
        where = f"{found.place} is not valid ({found.why})" if found.place else found.why
        raise StoreError(f"{path.name} is no validation result: {where}.") from None
    if result.started_at < 0:
        raise StoreError(f"{path.name} is no validation result: its date lies outside of time.")
    return result
