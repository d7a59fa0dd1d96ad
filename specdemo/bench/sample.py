"""One request of a benchmark as kept: where it stands in the schedule, and what its events say. Pure.

Samples are appended to a file as they finish, so a stop, a crash or a dead engine loses nothing that was measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Literal

from specdemo.bench.schedule import Arm, Kind
from specdemo.core.events import Event, FailureKind, Side
from specdemo.core.metrics import SideMeter
from specdemo.core.outcome import collect
from specdemo.core.results import Acceptance

LATE_S = 0.005
"""A request of a timetable that starts later than this was held up by the load client itself."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands: its item, block and quad.

    ``attempt`` counts re-runs of the quad from 0, ``session`` the starts of the benchmark (a resume is a new one, with
    a new zero of time).

    """

    key: str
    quad: str
    slot: int
    arm: Arm
    kind: Kind
    level: int
    workload: str
    prompt_id: str
    copy: int = 0
    attempt: int = 0
    session: int = 0


@dataclass(frozen=True, slots=True)
class Sample:
    """One request. Times in s on the session's monotonic clock, durations in s; None where it does not apply.

    ``intended_at`` is when it should have started (open mode), else ``started_at``. ``decode_s`` and
    ``decode_tokens`` start after the first chunk that held a token. ``steps`` counts received steps, None when
    chunks were merged. ``rejected_steps`` are drafting steps that did not take all drafts. The gaps are medians of
    the time between steps: of all, of bursts (steps that took drafts), of single tokens.
    """

    place: Place
    side: Side
    state: Literal["finished", "failed"]
    intended_at: float
    started_at: float
    ended_at: float
    failure: FailureKind | None = None
    message: str | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    ttft_s: float | None = None
    tpot_s: float | None = None
    e2el_s: float | None = None
    decode_s: float | None = None
    decode_tokens: int | None = None
    steps: int | None = None
    drafting_steps: int | None = None
    drafted: int | None = None
    accepted: int | None = None
    rejected_steps: int | None = None
    histogram: tuple[int, ...] = ()
    gap_s: float | None = None
    gap_drafted_s: float | None = None
    gap_undrafted_s: float | None = None
    token_ids: tuple[int, ...] | None = None
    finish_reason: str | None = None
    prompt_ids: tuple[int, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether it came through with at least one token."""
        return self.state == "finished" and bool(self.output_tokens)

    @property
    def seconds_per_token(self) -> float | None:
        """Decode time per token; None for 0 or 1 tokens or a single chunk (D14)."""
        if not self.ok or not self.decode_tokens or not self.decode_s or self.decode_s <= 0.0:
            return None
        return self.decode_s / self.decode_tokens

    @property
    def whole_seconds_per_token(self) -> float | None:
        """Whole time per token, waiting from the intended start included."""
        if not self.ok or not self.output_tokens:
            return None
        seconds = self.ended_at - self.intended_at
        return seconds / self.output_tokens if seconds > 0.0 else None

    @property
    def tokens_per_step(self) -> float | None:
        """Tokens of all decode steps per step, drafting or not."""
        if not self.ok or self.steps is None or self.steps < 2 or not self.decode_tokens:
            return None
        return self.decode_tokens / (self.steps - 1)


def measure(place: Place, side: Side, events: Iterable[Event], *, intended_at: float, opened: bool = False) -> Sample:
    """The sample of one finished or failed stream; ``events`` are one side's, on the session's clock.

    ``opened``: it came at an open rate, so others may have been in flight with it whatever its level says.
    """
    log = tuple(events)
    outcome = collect(log, side)
    started = outcome.started.at if outcome.started else intended_at
    if outcome.failure is not None or outcome.finished is None:
        failure = outcome.failure
        return Sample(
            place,
            side,
            "failed",
            intended_at,
            started,
            failure.at if failure else started,
            failure.kind if failure else "interrupted",
            failure.message if failure else "The stream ended without an end.",
            output_tokens=len(outcome.ids) if outcome.ids else None,
        )
    meter = SideMeter(side)
    for event in log:
        meter.feed(event)
    numbers = meter.snapshot()
    speculation = outcome.finished.speculation
    lists = (speculation.accepted_per_step, speculation.drafted_per_step) if speculation else (None, None)
    taken = numbers.acceptance
    remarks = {note.kind for note in meter.notes()} | {noted.kind for noted in outcome.noted}
    if opened and started - intended_at > LATE_S:
        remarks.add("overloaded")  # only this application can start a request late, whatever the engine does
    together = place.level > 1 or opened
    if together:
        remarks.discard("other_traffic")  # the requests of the same block, which is the load that was asked for
    if taken.source == "engine" and together:
        taken = Acceptance()  # whole-engine counters mix the requests that were in flight together (A12)
    elif taken.source == "engine" and taken.drafted is not None:
        remarks.add("acceptance_from_engine_counters")
    arrivals = [chunk.at for chunk in outcome.chunks if chunk.ids]
    always = speculation is not None and numbers.steps is not None and speculation.steps == numbers.steps - 1
    single, burst = _step_gaps([(chunk.at, len(chunk.ids)) for chunk in outcome.chunks if chunk.ids], always=always)
    per_second = numbers.decode_tokens_per_s
    span = arrivals[-1] - arrivals[0] if len(arrivals) > 1 else None
    return Sample(
        place,
        side,
        "finished",
        intended_at,
        started,
        outcome.finished.at,
        prompt_tokens=numbers.prompt_tokens,
        output_tokens=numbers.output_tokens,
        cached_tokens=numbers.cached_tokens,
        ttft_s=numbers.ttft_s,
        tpot_s=numbers.tpot_s,
        e2el_s=numbers.e2el_s,
        decode_s=span if per_second else None,
        decode_tokens=round(per_second * span) if per_second and span else None,
        steps=numbers.steps,
        drafting_steps=taken.drafting_steps,
        drafted=taken.drafted,
        accepted=taken.accepted,
        rejected_steps=_rejected(*lists),
        histogram=taken.histogram,
        gap_s=_median([b - a for a, b in pairwise(arrivals)]),
        gap_drafted_s=_median(burst),
        gap_undrafted_s=_median(single),
        token_ids=outcome.ids,
        finish_reason=outcome.finish_reason,
        prompt_ids=outcome.finished.prompt_token_ids,
        notes=tuple(sorted(remarks)),
    )


def _rejected(accepted: tuple[int, ...] | None, drafted: tuple[int, ...] | None) -> int | None:
    if accepted is None or drafted is None or len(accepted) != len(drafted):
        return None
    return sum(a < d for a, d in zip(accepted, drafted, strict=True))


def _step_gaps(chunks: Sequence[tuple[float, int]], *, always: bool) -> tuple[list[float], list[float]]:
    """Gaps before single tokens and before bursts; with ``always`` every step had a draft.

    A refused draft can't be told from no draft in a stream, so single tokens stand for steps without one.
    """
    single: list[float] = []
    burst: list[float] = []
    for (before, _), (after, tokens) in pairwise(chunks):
        (burst if always or tokens > 1 else single).append(after - before)
    return single, burst


def _median(values: Sequence[float]) -> float | None:
    kept = [value for value in values if value > 0.0]
    return median(kept) if kept else None


def latest(samples: Iterable[Sample]) -> tuple[Sample, ...]:
    """One sample a key: the newest attempt wins (a re-run quad, or a request repeated after a resume)."""
    newest: dict[str, Sample] = {}
    for sample in samples:
        newest[sample.place.key] = sample
    return tuple(newest.values())
