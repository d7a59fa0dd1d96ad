"""From a record to everything that is said about it. A pure function: the same record gives the same words for ever."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from specdemo.core import comparability, provenance, tolerance
from specdemo.core.events import SIDES, Side
from specdemo.core.metrics import SideMeter, meter_for
from specdemo.core.outcome import Outcome, collect
from specdemo.core.results import Acceptance, Check, Note, SideMetrics, Verdict
from specdemo.core.run import Assessment, RunHeader, RunRecord, SideResult
from specdemo.core.speedup import speedup
from specdemo.core.theory import theory
from specdemo.core.verdict import judge

COLD_S = 1.0
COLD_RATIO = 4.0
"""A first token this much later than the other side's smells of a cold start rather than of speculation."""


def assess(record: RunRecord, *, recorded: bool = False) -> Assessment:
    """Metrics, verdict, comparability, notes and theory of one record, finished or not.

    ``recorded`` marks a replay: it only changes the badge.
    """
    header = record.header
    plan = header.plan
    outcomes = [collect(record.events, side) for side in SIDES]
    meters = [_meter(record, side) for side in SIDES]
    results = [_side(outcome, meter) for outcome, meter in zip(outcomes, meters, strict=True)]
    standard, speculative = outcomes
    checks = comparability.merge(header.checks, comparability.after(standard, speculative))
    verdict = judge(
        standard,
        speculative,
        plan.prompt,
        checks=checks,
        probe=record.probe,
        acceptance=_drafted(results[1].metrics, checks),
        limit=limit(header),
        control=plan.control,
    )
    ended = standard.state == speculative.state == "finished"
    gained = speedup(results[0].metrics, results[1].metrics, ended=ended, same_tokens=_same(verdict, ended=ended))
    facts = header.facts[1]
    line = theory(
        standard,
        speculative,
        results[1].metrics,
        measured=gained.decode,
        k=facts.k if facts else None,
    )
    return Assessment(
        standard=results[0],
        speculative=results[1],
        speedup=gained,
        verdict=verdict,
        checks=checks,
        notes=_notes(outcomes, meters, results),
        theory=line,
        badge=badge(header, recorded=recorded),
    )


def badge(header: RunHeader, *, recorded: bool = False) -> str:
    """How the result was obtained: race_shared (for show), race_separate, measured, or recorded.

    Engines whose device is unknown count as sharing one, since that is the claim that could mislead.
    """
    if recorded:
        return "recorded"
    if header.plan.mode == "measure":
        return "measured"
    keys = [facts.device_key if facts else None for facts in header.facts]
    return "race_separate" if None not in keys and keys[0] != keys[1] else "race_shared"


def limit(header: RunHeader) -> tolerance.Tolerance:
    """The near-tie tolerance for this pair's number format; the wider one if they differ."""
    known = [
        tolerance.tolerance(facts.dtype, dict(facts.settings).get("quantization"))
        for facts in header.facts
        if facts is not None and (facts.dtype or dict(facts.settings).get("quantization"))
    ]
    return max(known, key=lambda found: found.nats, default=tolerance.tolerance(None))


def _meter(record: RunRecord, side: Side) -> SideMeter:
    meter = meter_for(side, record.header.facts[SIDES.index(side)])
    for event in record.events:
        meter.feed(event)
    return meter


def _side(outcome: Outcome, meter: SideMeter) -> SideResult:
    failure = outcome.failure
    return SideResult(
        state=outcome.state,
        text=outcome.text,
        reasoning=outcome.reasoning,
        token_ids=outcome.ids,
        finish_reason=outcome.finish_reason,
        error_kind=failure.kind if failure else None,
        error_message=failure.message if failure else None,
        metrics=meter.snapshot(),
        provenance=provenance.of_outcome(outcome),
    )


def _drafted(metrics: SideMetrics, checks: Sequence[Check]) -> Acceptance:
    """The speculative side's acceptance; an engine known not to speculate drafted nothing."""
    taken = metrics.acceptance
    off = any(check.check == "speculation" and "does not speculate" in check.detail for check in checks)
    return replace(taken, drafting_steps=0) if off and taken.drafting_steps is None else taken


def _same(verdict: Verdict, *, ended: bool) -> bool | None:
    """Whether both sides wrote the same tokens, as far as the verdict looked."""
    if not ended or verdict.cls == "not_comparable":
        return None
    return verdict.cls in ("identical", "identical_to_limit", "not_tested")


def _notes(outcomes: Sequence[Outcome], meters: Sequence[SideMeter], results: Sequence[SideResult]) -> tuple[Note, ...]:
    """What the client noted, what the cross-checks found and what only the pair shows; each said once."""
    said = [Note(noted.kind, noted.message, noted.side) for outcome in outcomes for noted in outcome.noted]
    kinds = {(note.kind, note.side) for note in said}
    for meter in meters:
        said.extend(note for note in meter.notes() if (note.kind, note.side) not in kinds)
    said.extend(_cold_start(results))
    return tuple(dict.fromkeys(said))


def _cold_start(results: Sequence[SideResult]) -> Iterator[Note]:
    times = [result.metrics.ttft_s for result in results]
    for side, own, other in zip(SIDES, times, reversed(times), strict=True):
        if own is not None and other and own > COLD_S and own > COLD_RATIO * other:
            text = f"First token after {own:.1f} s against {other:.1f} s: this side may have had a cold start."
            yield Note("cold_start", text, side)
