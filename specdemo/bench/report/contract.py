"""A benchmark as the JSON document of ``specdemo bench --json``: state, sentence, whole summary. Pure."""

from __future__ import annotations

from typing import Any

from specdemo.bench.jsonable import jsonable
from specdemo.bench.record import BenchRecord
from specdemo.bench.report.content import lead
from specdemo.bench.report.words import speaker


def contract(record: BenchRecord, file: str) -> dict[str, Any]:
    """Plain JSON types; ``file`` is where the samples are. What is not a finite number is null."""
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
    }
