"""A whole benchmark as kept: the plan, each session's surroundings, every sample; enough to redo every number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specdemo.bench.identity import Split
from specdemo.bench.plan import BenchPlan
from specdemo.bench.sample import Sample
from specdemo.bench.schedule import requests, schedule
from specdemo.bench.summary import Summary, summarise
from specdemo.core.engine import EngineFacts
from specdemo.core.results import Check
from specdemo.core.tolerance import tolerance

SCHEMA = 1

EndState = Literal["complete", "stopped", "budget", "engine_lost"]


@dataclass(frozen=True, slots=True)
class BenchHeader:
    """Written once. ``started_at`` is wall time (s since 1970), a label only."""

    id: str
    started_at: float
    plan: BenchPlan
    version: str = ""
    hardware: str | None = None
    dataset: str | None = None
    schema: int = SCHEMA


@dataclass(frozen=True, slots=True)
class Session:
    """One start or resume. Pairs are standard first; ``commands`` are exact command lines with secrets masked."""

    number: int
    started_at: float
    facts: tuple[EngineFacts | None, EngineFacts | None] = (None, None)
    checks: tuple[Check, ...] = ()
    commands: tuple[str | None, str | None] = (None, None)
    memory_bytes: tuple[int | None, int | None] = (None, None)
    warmups: int = 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How a session ended and why, in one sentence. ``busy_waits`` counts waits for a quiet host before a quad."""

    session: int
    state: EndState
    reason: str
    busy_waits: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """All of it. ``torn`` counts unreadable last lines (a crash in mid-write)."""

    header: BenchHeader
    sessions: tuple[Session, ...] = ()
    samples: tuple[Sample, ...] = ()
    splits: tuple[Split, ...] = ()
    endings: tuple[Ending, ...] = ()
    torn: int = 0

    @property
    def facts(self) -> tuple[EngineFacts | None, EngineFacts | None]:
        """What the engines said of themselves in the newest session."""
        return self.sessions[-1].facts if self.sessions else (None, None)

    @property
    def finished(self) -> bool:
        """Whether every planned request was made."""
        return bool(self.endings) and self.endings[-1].state == "complete"

    def summary(self) -> Summary:
        """Results of what is there so far."""
        known = self.facts[0]
        dtype = known.dtype if known else None
        quantization = dict(known.settings).get("quantization") if known else None
        return summarise(
            self.header.plan,
            self.samples,
            planned=requests(schedule(self.header.plan)),
            splits={split.prompt_id: split for split in self.splits},
            tolerance=tolerance(dtype, quantization).nats,
        )
