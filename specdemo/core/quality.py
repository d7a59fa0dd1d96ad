"""Cross-checks of a stream against what the engine says of it. A violation becomes a note, never silence.

With N tokens in E chunks, S drafting steps, A accepted drafts, X of them cut off by a stop or limit (0 <= X <= k), and
one step per chunk: ``N - E = A - X`` and ``E - 1 - S >= 0``; the histogram and the step lists must add up to S, A, D.
"""

from __future__ import annotations

from collections.abc import Iterator

from specdemo.core.acceptance import CounterDelta
from specdemo.core.events import SIDES, Finished, RequestSpeculation, Side
from specdemo.core.results import CountSource, Note, SideMetrics, Speedup
from specdemo.core.sentences import sentence

CLUMP_CHUNKS = 16
"""Fewer chunks than this say nothing about clumping."""

CLUMP_SIZE = 3.0
CLUMP_MEAN_GAP_S = 0.005
OTHER_TOKENS = 8
"""Counters and stream are read at slightly different moments; fewer foreign tokens than this may be our own."""

COLD_S = 1.0
COLD_RATIO = 4.0
"""A first token this much later than the other side's smells of a cold start rather than of speculation."""

PLAUSIBLE = 1.1
"""A step with drafts is never faster than a plain one, so the speedup stays below tokens per step; 10 % is noise."""


def merged(
    plain: bool, *, tokens: int, chunks: int, largest: int, first: int, speculation: RequestSpeculation | None,
    k: int | None,
) -> bool:  # fmt: skip
    """Whether some chunk must hold more than one engine step; ``plain``: the engine never drafts.

    A prefill step gives one token, a standard engine one per step, a speculative one at most k + 1; the engine's own
    count of accepted drafts bounds N - E.
    """
    if speculation is None and plain:
        return tokens > chunks
    limit = (speculation.max_draft if speculation else None) or k
    if limit is not None and largest > limit + 1:
        return True
    if speculation is None:
        return first > 1
    return tokens - chunks > speculation.accepted


def clumped(*, chunks: int, tiny_gaps: int, span: float) -> bool:
    """Whether chunks arrived in clumps of CLUMP_SIZE and more on average, although the stream as a whole was slow."""
    gaps = chunks - 1
    if gaps < CLUMP_CHUNKS or span / gaps < CLUMP_MEAN_GAP_S:
        return False
    return chunks / (gaps - tiny_gaps + 1) >= CLUMP_SIZE


def stream_notes(
    side: Side, *, finished: Finished | None, tokens: int, chunks: int, source: CountSource, tiny_gaps: int,
    is_clumped: bool, merged: bool, busy: bool = False,
) -> Iterator[Note]:  # fmt: skip
    """Notes on one side's stream; most need its end. ``busy``: we were late ourselves, so clumps may be our own."""
    if merged:
        yield Note("coalesced", sentence("coalesced", tokens=tokens, chunks=chunks), side)
    if is_clumped:
        yield Note("clumped", sentence("clumped_here" if busy else "clumped", tiny=tiny_gaps, gaps=chunks - 1), side)
    if source == "approximate":
        yield Note("no_token_ids", sentence("by_chunks"), side)
    elif source == "usage":
        yield Note("no_token_ids", sentence("by_usage"), side)
    if finished is None:
        return
    if finished.usage is None and source != "approximate":
        yield Note("no_usage", sentence("no_usage"), side)
    elif finished.usage is not None and source == "ids":
        yield from _usage_notes(side, finished.usage.completion_tokens, tokens)
    if finished.speculation is not None:
        problems = list(_identities(finished.speculation, tokens=tokens, chunks=chunks, merged=merged))
        if problems:
            yield Note("metrics_mismatch", sentence("metrics_mismatch", problems="; ".join(problems)), side)


def _usage_notes(side: Side, reported: int, received: int) -> Iterator[Note]:
    if reported > received:
        yield Note("token_ids_lost", sentence("token_ids_lost", reported=reported, received=received), side)
    elif reported < received:
        surplus = received - reported
        yield Note("surplus_ids", sentence("surplus_ids", reported=reported, received=received, surplus=surplus), side)


def _identities(spec: RequestSpeculation, *, tokens: int, chunks: int, merged: bool) -> Iterator[str]:
    steps, drafted, accepted = spec.steps, spec.drafted, spec.accepted
    if min(steps or 0, drafted, accepted) < 0 or accepted > drafted:
        yield sentence("part_accepted_of", accepted=accepted, drafted=drafted)
    if tokens and not merged:
        limit = spec.max_draft if spec.max_draft is not None else accepted
        if tokens - chunks < accepted - limit:
            yield sentence("part_accepted_seen", accepted=accepted, seen=tokens - chunks)
        if steps is not None and chunks - 1 < steps:
            yield sentence("part_steps_seen", steps=steps, seen=chunks - 1)
    histogram = spec.histogram
    if histogram and steps is not None and sum(histogram) != steps:
        yield sentence("part_histogram_steps", counted=sum(histogram), steps=steps)
    if histogram and sum(j * count for j, count in enumerate(histogram)) != accepted:
        yield sentence("part_histogram_sum")
    taken, offered = spec.accepted_per_step, spec.drafted_per_step
    if taken is not None and (steps not in (None, len(taken)) or sum(taken) != accepted):
        yield sentence("part_accepted_sum")
    if offered is not None and (steps not in (None, len(offered)) or sum(offered) != drafted):
        yield sentence("part_drafted_sum")
    if taken is not None and offered is not None and any(a > d for a, d in zip(taken, offered, strict=False)):
        yield sentence("part_accepted_more")


def counter_notes(side: Side, delta: CounterDelta, *, used: bool) -> Iterator[Note]:
    """Notes on whole-engine counters; ``used``: the acceptance shown is taken from them."""
    if used and delta.acceptance.source == "engine":
        yield Note("whole_server", sentence("whole_server"), side)
    if used and delta.reset:
        yield Note("counters_reset", sentence("counters_reset"), side)
    if delta.other_tokens is not None and delta.other_tokens > OTHER_TOKENS:
        yield Note("other_traffic", sentence("other_traffic", tokens=delta.other_tokens), side)


def pair_notes(standard: SideMetrics, speculative: SideMetrics, gained: Speedup) -> Iterator[Note]:
    """What only both sides together show: a cold start, and a speedup that speculation cannot give."""
    times = standard.ttft_s, speculative.ttft_s
    for side, own, other in zip(SIDES, times, reversed(times), strict=True):
        if own is not None and other and own > COLD_S and own > COLD_RATIO * other:
            yield Note("cold_start", sentence("cold_start", own=own, other=other), side)
    most = speculative.tokens_per_step
    if gained.decode is not None and most is not None and gained.decode > PLAUSIBLE * most:
        yield Note("implausible", sentence("implausible", speedup=gained.decode, most=most))
