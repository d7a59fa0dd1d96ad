"""From a record to everything that is said about it. A pure function: the same record gives the same words for ever."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from specdemo.core import comparability, odd, provenance, quality, tolerance
from specdemo.core.events import SIDES, Side
from specdemo.core.meters import meter_for
from specdemo.core.metrics import SideMeter
from specdemo.core.outcome import Outcome, collect
from specdemo.core.results import Note, Verdict
from specdemo.core.run import Assessment, RunHeader, RunRecord, SideResult
from specdemo.core.speedup import speedup
from specdemo.core.theory import theory
from specdemo.core.verdict import judge


def assess(record: RunRecord, *, recorded: bool = False) -> Assessment:
    """Metrics, verdict, comparability, notes and theory of one record, finished or not.

    ``recorded`` marks a replay: it only changes the badge.
    """
    header = record.header
    plan, facts = header.plan, header.facts[1]
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
        acceptance=results[1].metrics.acceptance,
        limit=limit(header),
        control=plan.control,
        speculating=facts.speculating if facts else None,
        others=any(note.kind == "other_traffic" for note in meters[1].notes()),
    )
    ended = standard.state == speculative.state == "finished"
    gained = speedup(results[0].metrics, results[1].metrics, ended=ended, same_tokens=_same(verdict, ended=ended))
    line = theory(
        standard,
        _believed(speculative),
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
        notes=_notes(outcomes, meters, quality.pair_notes(results[0].metrics, results[1].metrics, gained)),
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
    header = record.header
    meter = meter_for(side, header.facts[SIDES.index(side)], control=header.plan.control)
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
        provenance=provenance.of_outcome(outcome, plain=meter.plain),
    )


def _believed(side: Outcome) -> Outcome:
    """The side without the engine's own numbers, where those are no counts."""
    finished = side.finished
    if finished is None or finished.speculation is None or odd.sound_request(finished.speculation):
        return side
    return replace(side, finished=replace(finished, speculation=None))


def _same(verdict: Verdict, *, ended: bool) -> bool | None:
    """Whether both sides wrote the same tokens, as far as the verdict looked."""
    if not ended or verdict.cls == "not_comparable":
        return None
    return verdict.cls in ("identical", "identical_to_limit", "not_tested")


def _notes(outcomes: Sequence[Outcome], meters: Sequence[SideMeter], of_pair: Iterable[Note]) -> tuple[Note, ...]:
    """What the client noted, what the cross-checks found and what only the pair shows; each said once."""
    said = [Note(noted.kind, noted.message, noted.side) for outcome in outcomes for noted in outcome.noted]
    kinds = {(note.kind, note.side) for note in said}
    for meter in meters:
        said.extend(note for note in meter.notes() if (note.kind, note.side) not in kinds)
    said.extend(of_pair)
    return tuple(dict.fromkeys(said))
