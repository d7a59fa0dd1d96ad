"""Cross-checks of a stream against what the engine says of it. A violation becomes a note, never silence.

With N tokens in E chunks, S drafting steps, A accepted drafts, X of them cut off by a stop or limit (0 <= X <= k), and
one step per chunk: ``N - E = A - X`` and ``E - 1 - S >= 0``; the histogram and the step lists must add up to S, A, D.
"""

from __future__ import annotations

from collections.abc import Iterator

from specdemo.core.acceptance import CounterDelta
from specdemo.core.events import SIDES, Finished, RequestSpeculation, Side
from specdemo.core.results import CountSource, Note, SideMetrics, Speedup

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
    is_clumped: bool, merged: bool,
) -> Iterator[Note]:  # fmt: skip
    """Notes on one side's stream; most need its end."""
    if merged:
        text = f"{tokens} tokens came in {chunks} chunks: several engine steps were merged, so steps are not counted."
        yield Note("coalesced", text, side)
    if is_clumped:
        text = (
            f"{tiny_gaps} of {chunks - 1} chunks arrived together with the one before: something on the way buffers "
            "the stream, so first-token time and gaps are unreliable."
        )
        yield Note("clumped", text, side)
    if source == "approximate":
        text = "The server sends neither token ids nor usage: tokens are estimated by chunks."
        yield Note("no_token_ids", text, side)
    elif source == "usage":
        yield Note("no_token_ids", "The server sends no token ids: tokens are counted by its own usage numbers.", side)
    if finished is None:
        return
    if finished.usage is None and source != "approximate":
        yield Note("no_usage", "The server sent no usage numbers, so the token count could not be cross-checked.", side)
    elif finished.usage is not None and source == "ids":
        yield from _usage_notes(side, finished.usage.completion_tokens, tokens)
    if finished.speculation is not None:
        problems = list(_identities(finished.speculation, tokens=tokens, chunks=chunks, merged=merged))
        if problems:
            yield Note("metrics_mismatch", "The engine's numbers do not add up: " + "; ".join(problems) + ".", side)


def _usage_notes(side: Side, reported: int, received: int) -> Iterator[Note]:
    if reported > received:
        text = f"The server reported {reported} tokens and {received} token ids arrived."
        yield Note("token_ids_lost", text, side)
    elif reported < received:
        text = f"{received} token ids arrived and the server counts {reported}: {received - reported} are surplus."
        yield Note("surplus_ids", text, side)


def _identities(spec: RequestSpeculation, *, tokens: int, chunks: int, merged: bool) -> Iterator[str]:
    steps, drafted, accepted = spec.steps, spec.drafted, spec.accepted
    if min(steps, drafted, accepted) < 0 or accepted > drafted:
        yield f"{accepted} accepted of {drafted} drafted"
    if tokens and not merged:
        limit = spec.max_draft if spec.max_draft is not None else accepted
        if tokens - chunks < accepted - limit:
            yield f"{accepted} drafts accepted but only {tokens - chunks} seen in the stream"
        if chunks - 1 < steps:
            yield f"{steps} drafting steps but {chunks - 1} decode steps in the stream"
    histogram = spec.histogram
    if histogram and sum(histogram) != steps:
        yield f"the histogram counts {sum(histogram)} steps, not {steps}"
    if histogram and sum(j * count for j, count in enumerate(histogram)) != accepted:
        yield "the histogram does not add up to the accepted tokens"
    taken, offered = spec.accepted_per_step, spec.drafted_per_step
    if taken is not None and (len(taken) != steps or sum(taken) != accepted):
        yield "the accepted tokens per step do not add up"
    if offered is not None and (len(offered) != steps or sum(offered) != drafted):
        yield "the drafted tokens per step do not add up"
    if taken is not None and offered is not None and any(a > d for a, d in zip(taken, offered, strict=False)):
        yield "a step accepted more than it drafted"


def counter_notes(side: Side, delta: CounterDelta, *, used: bool) -> Iterator[Note]:
    """Notes on whole-engine counters; ``used``: the acceptance shown is taken from them."""
    if used and delta.acceptance.source == "engine":
        text = "Acceptance is that of the whole server during this run, by its counters, not of this request alone."
        yield Note("whole_server", text, side)
    if used and delta.reset:
        yield Note("counters_reset", "The engine's counters restarted during the run, so they say nothing.", side)
    if delta.other_tokens is not None and delta.other_tokens > OTHER_TOKENS:
        text = f"The engine generated {delta.other_tokens} tokens for others meanwhile, so this run had it not alone."
        yield Note("other_traffic", text, side)


def pair_notes(standard: SideMetrics, speculative: SideMetrics, gained: Speedup) -> Iterator[Note]:
    """What only both sides together show: a cold start, and a speedup that speculation cannot give."""
    times = standard.ttft_s, speculative.ttft_s
    for side, own, other in zip(SIDES, times, reversed(times), strict=True):
        if own is not None and other and own > COLD_S and own > COLD_RATIO * other:
            text = f"First token after {own:.1f} s against {other:.1f} s: this side may have had a cold start."
            yield Note("cold_start", text, side)
    most = speculative.tokens_per_step
    if gained.decode is not None and most is not None and gained.decode > PLAUSIBLE * most:
        text = (
            f"The speedup of {gained.decode:.2f}x is above the {most:.2f} tokens per step, the most that speculation "
            "can give: the standard run was disturbed, so measure again on a quiet machine."
        )
        yield Note("implausible", text)
