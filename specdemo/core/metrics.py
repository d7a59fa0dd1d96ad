"""One side's numbers, kept up to date event by event; definitions and sources in docs/metrics.md.

Each chunk costs a constant amount of work, however long the stream already is. Tokens are counted by ids, else by the
server's usage, else by chunks and then labelled approximate. Chunks are never taken for tokens where ids are known.
"""

from __future__ import annotations

from math import inf

from specdemo.core import absent, acceptance, odd, quality
from specdemo.core.acceptance import CounterDelta
from specdemo.core.events import (
    CountersRead,
    Event,
    Failed,
    Finished,
    Noted,
    RequestSpeculation,
    Side,
    SpecCounters,
    Started,
    Tokens,
)
from specdemo.core.rates import LiveRate
from specdemo.core.results import Acceptance, CountSource, Note, SideMetrics
from specdemo.core.sentences import sentence

TINY_GAP_S = 0.001
"""Chunks closer than this arrived together: no engine step is that short."""

STAMP_S = 1e-4
"""Stamps of a file are rounded: no step back, if it is as small as this."""


class SideMeter:
    """Feed it a run's events in order; ask :meth:`snapshot` at any time. Events of the other side are ignored.

    ``k`` and ``always_drafts`` (the method drafts k tokens in every step) narrow the live acceptance range. ``plain``
    says that this engine never drafts; by default that is the standard side. ``engine`` is its name in sentences.
    """

    __slots__ = (
        "_after", "_always", "_b1", "_back", "_before", "_bursts", "_busy", "_chunks", "_end", "_engine", "_fell",
        "_finished", "_first", "_head", "_ids", "_k", "_largest", "_last", "_last_event", "_longest", "_newest",
        "_rate", "_role", "_start", "_tail", "_text_chunks", "_tiny", "_tokens", "_total", "plain", "side",
    )  # fmt: skip

    def __init__(
        self, side: Side, *, k: int | None = None, always_drafts: bool = False, plain: bool | None = None,
        engine: Side | None = None,
    ) -> None:  # fmt: skip
        self.side = side
        self._engine = engine or side
        self.plain = side is Side.STANDARD if plain is None else plain
        self._k = k
        self._always = always_drafts
        self._start: float | None = None
        self._role: float | None = None  # first chunk of any kind
        self._first: float | None = None  # first chunk with a token
        self._last = 0.0  # latest chunk with a token
        self._last_event = 0.0
        self._chunks = 0  # chunks with tokens (E)
        self._tokens = 0  # tokens of those chunks as far as they can be counted (N)
        self._b1 = 0
        self._head = 0  # tokens that came together with the first chunk
        self._tail = 0  # tokens of the latest chunk
        self._bursts = 0
        self._largest = 0
        self._longest = 0.0
        self._tiny = 0
        self._ids = False
        self._total: int | None = None  # the server's running completion_tokens
        self._text_chunks = 0  # chunks whose tokens could not be counted
        self._rate = LiveRate()
        self._before: SpecCounters | None = None
        self._after: SpecCounters | None = None
        self._fell = False  # counters began anew between two readings
        self._finished: Finished | None = None
        self._end: float | None = None
        self._busy = False  # we said ourselves that we read late
        self._newest = -inf  # stamp of the latest event of the stream
        self._back = False  # an event is stamped before the one that it follows, or with no real time

    def feed(self, event: Event) -> None:
        """Take one event into account."""
        if event.side is not self.side:
            return
        self._last_event = max(self._last_event, event.at)
        if type(event) is Tokens:
            self._stamp(event.at)
            self._chunk(event)
        elif isinstance(event, Started):
            if self._start is None:
                self._start = event.at
        elif isinstance(event, CountersRead):
            if not odd.sound_counters(event.counters):
                return
            if self._before is None:
                self._before = event.counters
            else:
                self._fell = self._fell or acceptance.restarted(self._after or self._before, event.counters)
                self._after = event.counters
        elif isinstance(event, Finished):
            self._stamp(event.at)
            self._finished = event
            self._end = event.at
        elif isinstance(event, Failed):
            self._end = event.at
        elif isinstance(event, Noted) and event.kind == "overloaded":
            self._busy = True

    def _stamp(self, at: float) -> None:
        """Notes are stamped when they are made; only what the engine sends must come in order."""
        if self._newest - STAMP_S <= at < inf:
            self._newest = max(self._newest, at)
        else:
            self._back = True

    def _chunk(self, chunk: Tokens) -> None:
        at = chunk.at
        if self._role is None:
            self._role = at
        count = len(chunk.ids)
        if count:
            self._ids = True
        elif self._ids:
            return  # text that was held back for an earlier token
        else:
            count = self._count_without_ids(chunk)
            if not count:
                return
        if self._first is None:
            self._first = at
            self._b1 = self._head = count
        else:
            gap = at - self._last
            self._longest = max(self._longest, gap)
            if gap < TINY_GAP_S:
                self._tiny += 1
                if at - self._first < TINY_GAP_S:
                    self._head += count
            if count > 1:
                self._bursts += 1
        self._largest = max(self._largest, count)
        self._last, self._tail = at, count
        self._chunks += 1
        self._tokens += count
        self._rate.feed(at, count)

    def _count_without_ids(self, chunk: Tokens) -> int:
        """Tokens of a chunk without ids: its logprob entries, the server's running total, else one if it has text."""
        total, before = odd.count(chunk.reported_total), self._total or 0
        if total is not None:
            self._total = max(total, before)
        if chunk.logprobs:
            return len(chunk.logprobs)
        if total is not None:
            return max(0, total - before)
        if chunk.text or chunk.reasoning:
            self._text_chunks += 1
            return 1
        return 0

    # ------------------------------------------------------------------ results

    @property
    def final(self) -> bool:
        """Whether the side has said its last word."""
        return self._end is not None

    def snapshot(self, now: float | None = None) -> SideMetrics:
        """The numbers as of ``now`` (s since the run's zero; by default the last event's time)."""
        reasons: list[tuple[str, str]] = []
        tokens, source = self._count()
        usage = self._finished.usage if self._finished else None
        now = self._last_event if now is None else max(now, self._last_event)
        start = self._start
        span = self._last - self._first if self._first is not None else 0.0
        merged = self.merged
        # A buffer let go of the whole reply: time says nothing about the engine. (Stamps are rounded.)
        shortest = TINY_GAP_S * (1.0 - 1e-6)
        at_once = span < (self._chunks - 1) * shortest

        ttft = odd.since(start, self._first)
        if ttft is None:
            reasons.append(("ttft_s", sentence("no_token" if self._first is None else "odd_times")))
        tpot = None
        decode = None
        if self._first is not None and tokens is not None and tokens > 1:
            end = self._finished.at if self._finished else self._last
            early = self._head if self._clumped else self._b1
            if self._chunks > 1 and not at_once:
                tpot = odd.quotient(end - self._first, tokens - 1)
            if span > 0.0 and not at_once and tokens > early:
                decode = odd.quotient(tokens - early, span)
        if tpot is None:
            reasons.append(("tpot_s", absent.rate(tokens, self._chunks)))
        if decode is None:
            reasons.append(("decode_tokens_per_s", absent.rate(tokens, self._chunks)))
        elif source == "usage" and self._text_chunks:
            reasons.append(("decode_tokens_per_s", sentence("one_assumed")))

        e2el = odd.since(start, self._finished.at) if self._finished else None
        wall = e2el if self.final else odd.since(start, self._last) if self._first is not None else None
        if tokens and wall is not None and wall < max(1, self._chunks - 1) * shortest:
            wall = None
            reasons.append(("tokens_per_s", sentence("at_once")))
        if e2el is None:
            reasons.append(("e2el_s", sentence("not_finished" if self.final else "still_runs")))
        per_step, steps = self._per_step(source, merged)
        if per_step is None:
            counted = source != "approximate" and not self._text_chunks
            reasons.append(("tokens_per_step", absent.steps(merged=merged, counted=counted)))
        taken = self.acceptance(tokens)
        speculation = self._finished.speculation if self._finished else None
        drafting = odd.count(speculation.steps) if speculation else None
        if usage is not None and odd.count(usage.completion_tokens) is None:
            reasons.append(("output_tokens", sentence("odd_count")))
        found = SideMetrics(
            prompt_tokens=odd.prompt_tokens(self._finished),
            output_tokens=tokens,
            ttft_s=ttft,
            ttft_role_s=odd.since(start, self._role),
            tpot_s=tpot,
            e2el_s=e2el,
            chunk_gap_s=span / (self._chunks - 1) if self._chunks > 1 else None,
            longest_stall_s=self._stall(now),
            decode_tokens_per_s=decode,
            tokens_per_s=odd.quotient(tokens, wall) if tokens and wall is not None else None,
            live_tokens_per_s=None if self.final else self._rate.value(now),
            steps=steps,
            tokens_per_step=per_step,
            drafting_steps=drafting,
            cached_tokens=odd.count(usage.cached_tokens) if usage else None,
            acceptance=taken,
            count_source=source,
            final=self.final,
            reasons=tuple(reasons),
            non_drafting_steps=steps - 1 - drafting if steps and drafting is not None and steps > drafting else None,
        )
        return odd.without(found, times=self._back)

    @property
    def merged(self) -> bool:
        """Whether chunks hold more than one engine step, so that chunks cannot be counted as steps."""
        speculation = self._finished.speculation if self._finished else None
        return quality.merged(
            self.plain, tokens=self._tokens, chunks=self._chunks, largest=self._largest, first=self._b1,
            speculation=speculation, k=self._k,
        )  # fmt: skip

    @property
    def _clumped(self) -> bool:
        span = self._last - (self._first or 0.0)
        return quality.clumped(chunks=self._chunks, tiny_gaps=self._tiny, span=span)

    def acceptance(self, tokens: int | None) -> Acceptance:
        """Exact if the request carried its own numbers, else by counters, else why there is none."""
        speculation = self._finished.speculation if self._finished else None
        if speculation is not None and not odd.sound_request(speculation):
            return Acceptance(reason=sentence("odd_count"))
        if speculation is not None:
            return acceptance.exact(speculation, delivered=self._delivered(speculation))
        delta = self._delta(tokens)
        if delta is not None and (delta.acceptance.source != "none" or not self.plain):
            return delta.acceptance
        if self.plain:
            return Acceptance(reason=sentence("no_drafting", side=self._engine))
        if self.final:
            return Acceptance(reason=sentence("no_numbers"))
        return acceptance.live_range(
            accepted=max(0, self._tokens - self._b1 - (self._chunks - 1)), decode_steps=self._chunks - 1,
            bursts=self._bursts, k=self._k, always_drafts=self._always,
        )  # fmt: skip

    def notes(self) -> tuple[Note, ...]:
        """What the cross-checks found (docs/metrics.md lists them)."""
        tokens, source = self._count()
        stream = quality.stream_notes(
            self.side, finished=self._finished, tokens=self._tokens, chunks=self._chunks, source=source,
            tiny_gaps=self._tiny, is_clumped=self._clumped, merged=self.merged, busy=self._busy,
        )  # fmt: skip
        found = list(stream)
        delta = self._delta(tokens)
        if delta is not None:
            exact = self._finished is not None and self._finished.speculation is not None
            found.extend(quality.counter_notes(self.side, delta, used=not exact))
        return tuple(found)

    # ------------------------------------------------------------------ pieces

    def _delta(self, tokens: int | None) -> CounterDelta | None:
        if self._before is None or self._after is None:
            return None
        return acceptance.from_counters(self._before, self._after, own_tokens=tokens, fell=self._fell)

    def _count(self) -> tuple[int | None, CountSource]:
        usage = self._finished.usage if self._finished else None
        said = odd.count(usage.completion_tokens) if usage else None
        if self._ids:
            # A stop or limit inside the last burst may leave ids that are not counted and have no text (A13, A14).
            surplus = self._tokens - said if said else 0
            return self._tokens - (surplus if 0 < surplus < self._tail else 0), "ids"
        if said is not None and (said or not self._text_chunks):  # 0 beside text: nobody counted
            return said, "usage"
        if self._text_chunks:
            return self._tokens, "approximate"
        if self._chunks:
            return self._tokens, "usage"
        return (0, "none") if self._finished else (None, "none")

    def _delivered(self, speculation: RequestSpeculation) -> int | None:
        if self.merged or not self._ids:
            return None
        # Each step hands over its accepted drafts and one token of the target's own, but for a last step that was cut
        # off inside its drafts: more accepted than that means that the own token is what did not arrive.
        delivered = self._tokens - self._chunks
        delivered += delivered < speculation.accepted
        return delivered if 0 <= delivered <= speculation.accepted else None

    def _stall(self, now: float) -> float | None:
        running = now - self._last if not self.final and self._first is not None else 0.0
        if self._chunks < 2 and running <= 0.0:
            return None
        return max(self._longest, running)

    def _per_step(self, source: CountSource, merged: bool) -> tuple[float | None, int | None]:
        if merged or not self._chunks or not (self._ids or (source == "usage" and not self._text_chunks)):
            return None, None
        decode_steps = self._chunks - 1
        return (self._tokens - self._b1) / decode_steps if decode_steps else None, self._chunks
