"""A run: one prompt on both sides. Its header, and its log of events; every shown number is a function of these two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from specdemo.core.engine import EngineFacts
from specdemo.core.events import Event, Side
from specdemo.core.prompt import Prompt
from specdemo.core.results import (
    Check,
    Note,
    Provenance,
    SideMetrics,
    Speedup,
    Theory,
    Verdict,
)

SCHEMA = 1
"""Version of the JSON form; readers accept any document whose ``schema`` they know and ignore unknown keys."""

Mode = Literal["race", "measure"]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What to do. ``race`` runs both at once; ``measure`` one at a time after a warm-up, ``order`` first side first.

    ``control`` runs the standard engine against itself; ``recheck`` teacher-forces the speculative text.
    """

    prompt: Prompt
    mode: Mode = "race"
    order: tuple[Side, Side] = (Side.STANDARD, Side.SPECULATIVE)
    warmup: bool = True
    control: bool = False
    recheck: bool = False


@dataclass(frozen=True, slots=True)
class RunHeader:
    """Known before the first event. ``started_at`` is wall time (s since 1970), a label only.

    ``badge`` says how the result was obtained: race_shared (for show), race_separate, measured, recorded.
    """

    id: str
    started_at: float
    plan: RunPlan
    facts: tuple[EngineFacts | None, EngineFacts | None] = (None, None)
    checks: tuple[Check, ...] = ()
    hardware: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Probe:
    """What was asked of the standard engine after the streams: candidates at the split, and the re-check.

    ``candidates``: (id, text, logprob) best first after the common prefix. Part of the stored run, so that the
    verdict can be recomputed.
    """

    position: int | None = None
    candidates: tuple[tuple[int | None, str, float], ...] = ()
    recheck_top_share: float | None = None
    recheck_positions: int | None = None
    recheck_largest_gap: float | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A whole run as kept: enough to recompute every number."""

    header: RunHeader
    events: tuple[Event, ...]
    probe: Probe | None = None


@dataclass(frozen=True, slots=True)
class SideResult:
    """One side at the end (or so far). ``state``: waiting, running, finished, failed, cancelled."""

    state: Literal["waiting", "running", "finished", "failed", "cancelled"]
    text: str
    reasoning: str
    token_ids: tuple[int, ...] | None
    finish_reason: str | None
    error_kind: str | None
    error_message: str | None
    metrics: SideMetrics
    provenance: Provenance


@dataclass(frozen=True, slots=True)
class Assessment:
    """Everything that is said about a run, computed from its record."""

    standard: SideResult
    speculative: SideResult
    speedup: Speedup
    verdict: Verdict
    checks: tuple[Check, ...]
    notes: tuple[Note, ...]
    theory: Theory
    badge: str
