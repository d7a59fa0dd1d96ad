"""How many drafted tokens were accepted: exact from the request, else from whole-engine counters, else a range.

The pooled rate is always a quotient of sums, never a mean of rates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from specdemo.core.events import RequestSpeculation, SpecCounters
from specdemo.core.results import Acceptance
from specdemo.core.sentences import sentence

NO_DRAFTS = sentence("no_drafts")

MOST_POSITIONS = 1024
"""Draft positions that are told apart, more than any engine has; no number from outside makes a list longer."""


def exact(speculation: RequestSpeculation, *, delivered: int | None = None) -> Acceptance:
    """Acceptance of one request from the engine's own per-request numbers. Without its steps there is no mean length.

    ``delivered`` is how many accepted drafts reached the output (see :class:`Acceptance`), if the stream tells.
    """
    steps, drafted, accepted = speculation.steps, speculation.drafted, speculation.accepted
    if drafted <= 0 or (steps is not None and steps <= 0):
        return Acceptance(source="request", drafted=0, accepted=0, drafting_steps=0, reason=NO_DRAFTS)
    histogram = (speculation.histogram or _histogram(speculation))[: MOST_POSITIONS + 1]
    return Acceptance(
        source="request",
        rate=accepted / drafted,
        mean_length=None if steps is None else 1.0 + accepted / steps,
        drafted=drafted,
        accepted=accepted,
        drafting_steps=steps,
        per_position=() if steps is None else _unconditional(histogram, steps),
        per_position_conditional=_conditional(speculation),
        histogram=histogram,
        delivered=delivered,
    )


def _histogram(speculation: RequestSpeculation) -> tuple[int, ...]:
    """By the steps' own list; () where there is none, or one that no engine can send."""
    per_step = speculation.accepted_per_step or ()
    if not per_step:
        return ()
    size = max(speculation.max_draft or 0, *per_step) + 1
    if size > MOST_POSITIONS + 1 or min(per_step) < 0:
        return ()
    counts = [0] * size
    for accepted in per_step:
        counts[accepted] += 1
    return tuple(counts)


def _unconditional(histogram: tuple[int, ...], steps: int) -> tuple[float, ...]:
    """Share of drafting steps that accepted at least j tokens, j = 1, 2, … k; () for more steps than there were."""
    shares: list[float] = []
    reached = 0
    for count in reversed(histogram[1:]):
        reached += count
        shares.append(reached / steps)
    return tuple(reversed(shares)) if reached <= steps else ()


def _conditional(speculation: RequestSpeculation) -> tuple[float | None, ...]:
    """Share accepted at position j among the steps that accepted j-1 and drafted a j-th; needs both step lists."""
    accepted, drafted = speculation.accepted_per_step, speculation.drafted_per_step
    if accepted is None or drafted is None or len(accepted) != len(drafted) or not drafted:
        return ()
    longest = max(drafted)
    if longest > MOST_POSITIONS:
        return ()
    won = [0] * (longest + 1)
    tried = [0] * (longest + 1)
    for took, offered in zip(accepted, drafted, strict=True):
        for position in range(1, min(took + 1, offered) + 1):
            tried[position] += 1
            won[position] += took >= position
    return tuple(won[j] / tried[j] if tried[j] else None for j in range(1, longest + 1))


@dataclass(frozen=True, slots=True)
class CounterDelta:
    """What whole-engine counters say of a run: the acceptance, and what makes it doubtful."""

    acceptance: Acceptance
    reset: bool = False
    other_tokens: int | None = None


def from_counters(
    before: SpecCounters, after: SpecCounters, *, own_tokens: int | None, fell: bool = False
) -> CounterDelta:
    """Acceptance of the whole engine between two readings; ``own_tokens`` is what our request got.

    A restart in between (another epoch, a counter that fell or is gone) voids it, also one that only a reading in
    between shows (``fell``). ``other_tokens`` counts what the engine generated for others meanwhile, None if it cannot
    tell.
    """
    gone = any(old is not None and new is None for old, new in _series(before, after))
    if fell or restarted(before, after) or gone:
        return CounterDelta(Acceptance(reason=sentence("counters_restarted")), reset=True)
    drafts = _delta(before.drafts, after.drafts)
    drafted = _delta(before.draft_tokens, after.draft_tokens)
    accepted = _delta(before.accepted_tokens, after.accepted_tokens)
    if drafted is None or accepted is None:
        return CounterDelta(Acceptance(reason=sentence("no_counters")))
    others: int | None = None
    generated = _delta(before.generation_tokens, after.generation_tokens)
    if generated is not None and own_tokens is not None:
        # The counter may lag our last step or lead it; only a clear surplus is somebody else's.
        others = max(0, generated - own_tokens)
    if drafted <= 0 or (drafts is not None and drafts <= 0):
        empty = Acceptance(source="engine", drafted=0, accepted=0, drafting_steps=0, reason=NO_DRAFTS)
        return CounterDelta(empty, other_tokens=others)
    taken = Acceptance(source="engine", drafted=drafted, accepted=accepted, drafting_steps=drafts)
    if accepted > drafted:
        return CounterDelta(replace(taken, reason=sentence("odd_count")), other_tokens=others)
    taken = replace(taken, rate=accepted / drafted)
    if drafts is not None:  # older servers count tokens and no steps
        positions = _positions(before.accepted_per_position, after.accepted_per_position, drafts)
        taken = replace(taken, mean_length=1.0 + accepted / drafts, per_position=positions)
    return CounterDelta(taken, other_tokens=others)


def _delta(before: float | None, after: float | None) -> int | None:
    """A series that appears between the readings counted from 0: Prometheus creates some on first use."""
    if after is None:
        return None
    return round(after - (before or 0.0))


def restarted(before: SpecCounters, after: SpecCounters) -> bool:
    """Whether an engine's counters began anew between two readings."""
    if before.epoch is not None and after.epoch is not None and before.epoch != after.epoch:
        return True
    return any(old is not None and new is not None and new < old for old, new in _series(before, after))


def _series(before: SpecCounters, after: SpecCounters) -> tuple[tuple[float | None, float | None], ...]:
    return (
        (before.drafts, after.drafts),
        (before.draft_tokens, after.draft_tokens),
        (before.accepted_tokens, after.accepted_tokens),
        (before.generation_tokens, after.generation_tokens),
    )


def _positions(before: tuple[float, ...], after: tuple[float, ...], drafts: int) -> tuple[float, ...]:
    after = after[:MOST_POSITIONS]
    padded = before + (0.0,) * (len(after) - len(before))
    shares = tuple((new - old) / drafts for old, new in zip(padded, after, strict=False))
    return shares if max(shares, default=0.0) <= 1.0 else ()


def live_range(*, accepted: int, decode_steps: int, bursts: int, k: int | None, always_drafts: bool) -> Acceptance:
    """What a running stream tells of its acceptance: a range, since undelivered drafts are invisible until the end.

    ``bursts`` is the number of decode steps that delivered more than one token; a method that always drafts k tokens
    (draft model, EAGLE, MTP) leaves no range.
    """
    reason = sentence("exact_later")
    if not k or decode_steps <= 0:
        return Acceptance(reason=reason)
    low = min(1.0, accepted / (k * decode_steps))
    high = low if always_drafts else min(1.0, accepted / (k * bursts)) if bursts else 1.0
    return Acceptance(reason=reason, low=low, high=max(low, high))
