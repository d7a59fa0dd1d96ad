"""A finding, and all of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

Level = Literal["ok", "warn", "fail"]
"""ok: nothing to do. warn: works, but worse than it could. fail: something that was asked for will not work."""

_WEIGHT: dict[Level, int] = {"ok": 0, "warn": 1, "fail": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``detail`` is what was seen, ``mend`` what to do, None where there is nothing to do."""

    name: str
    level: Level
    detail: str
    mend: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in a fixed order."""

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Level:
        """The most serious level."""
        return max((finding.level for finding in self.findings), key=_WEIGHT.__getitem__, default="ok")

    def to_json(self) -> dict[str, Any]:
        """``{"schema": 1, "worst": …, "findings": [{"name", "level", "detail", "mend"}]}``."""
        return {"schema": 1, "worst": self.worst, "findings": [asdict(finding) for finding in self.findings]}
