"""A benchmark as the JSON document of ``specdemo bench --json``: state, sentence, whole summary. Pure."""

from __future__ import annotations

from typing import Any

from specdemo.bench.jsonable import jsonable
from specdemo.bench.record import BenchRecord
from specdemo.bench.report.content import lead
from specdemo.bench.report.words import speaker
from specdemo.bench.sampling.result import ValidationResult


def contract(record: BenchRecord, file: str, validation: ValidationResult | None = None) -> dict[str, Any]:
    """Plain JSON types; ``file`` is where the samples are. What is not a finite number is null.

    ``validation`` is a sampling validation of the same engines, whole as ``specdemo validate --json`` prints it, each
    arm with its ``relative_temperature`` beside; null when there is none.
    """
    summary = record.summary()
    ending = record.endings[-1] if record.endings else None
    return {
        "schema": 1,
        "kind": "bench",
        "id": record.header.id,
        "file": file,
        "state": ending.state if ending else None,
        "reason": ending.reason if ending else None,
        "sentence": lead(summary, speaker("en"))[0],
        "summary": jsonable(summary),
        "facts": jsonable(record.facts),
        "hardware": record.header.hardware,
        "validation": None if validation is None else _validation(validation),
    }


def _validation(result: ValidationResult) -> dict[str, Any]:
    document: Any = jsonable(result)
    for shown, arms in ((document["standard"], result.standard), (document["speculative"], result.speculative)):
        for arm, score in zip(shown, arms, strict=True):
            arm["relative_temperature"] = jsonable(score.relative_temperature)
    return document  # type: ignore[no-any-return]
