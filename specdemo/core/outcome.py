"""One side of a run, gathered from its events: what it said, how it ended, and where each token's text is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import isclose
from typing import Literal

from specdemo.core import odd
from specdemo.core.events import (
    CountersRead,
    Event,
    Failed,
    Finished,
    Noted,
    Side,
    Started,
    TokenLogprob,
    Tokens,
    TopToken,
)

State = Literal["waiting", "running", "finished", "failed", "cancelled"]


def chunk_tokens(chunk: Tokens) -> int:
    """How many tokens a chunk certainly carried: its ids, else its logprob entries, else 0 (unknown)."""
    return len(chunk.ids) or len(chunk.logprobs or ())


@dataclass(frozen=True, slots=True)
class Outcome:
    """One side as far as its events go. ``ids`` is None when text came without token ids, in every chunk or in some.

    ``chunks`` are the received chunks in order, the role chunk included; token texts are looked up in them on demand,
    because only the tokens at a split are ever asked for.
    """

    side: Side
    state: State
    text: str
    reasoning: str
    ids: tuple[int, ...] | None
    chunks: tuple[Tokens, ...]
    started: Started | None = None
    finished: Finished | None = None
    failure: Failed | None = None
    counters: tuple[CountersRead, ...] = ()
    noted: tuple[Noted, ...] = ()

    @property
    def finish_reason(self) -> str | None:
        """The engine's own word, None before the end."""
        return self.finished.finish_reason if self.finished else None

    @property
    def ids_lost(self) -> int:
        """How many more tokens the server counted than ids that arrived; 0 if it does not say, or sends no ids."""
        usage = self.finished.usage if self.finished else None
        if usage is None or (self.ids is None and not self.received):
            return 0
        return max(0, usage.completion_tokens - self.received)

    @property
    def received(self) -> int:
        """How many ids arrived, even where ``ids`` is None because others are missing."""
        return sum(len(chunk.ids) for chunk in self.chunks)

    @property
    def unnumbered(self) -> bool:
        """Whether some text came without ids: held back for an earlier token, or of a token whose id is missing."""
        return any((chunk.text or chunk.reasoning) and not chunk.ids for chunk in self.chunks)

    @property
    def prompt_size(self) -> int | None:
        """Prompt tokens by the server's count, else by the ids that it echoed."""
        return odd.prompt_tokens(self.finished)

    @property
    def largest_chunk(self) -> int:
        """Most ids in one chunk."""
        return max((len(chunk.ids) for chunk in self.chunks), default=0)

    def last_words(self) -> tuple[int, int]:
        """First token (from 0) of the last chunk that has text, and the one after its last: later ids have no text."""
        end = self.received
        for chunk in reversed(self.chunks):
            start = end - len(chunk.ids)
            if chunk.text or chunk.reasoning:
                return start, end
            end = start
        return 0, 0

    def locate(self, index: int) -> tuple[Tokens, int] | None:
        """The chunk that carried output token ``index`` (from 0) and the token's place in it."""
        ends = list(accumulate(len(chunk.ids) for chunk in self.chunks))
        if not ends or not 0 <= index < ends[-1]:
            return None
        where = bisect_right(ends, index)
        chunk = self.chunks[where]
        return chunk, index - (ends[where] - len(chunk.ids))

    def token_text(self, index: int) -> str | None:
        """The text of output token ``index`` where it is known exactly, else None."""
        found = self.locate(index)
        if found is None:
            return None
        chunk, place = found
        if chunk.pieces is not None and len(chunk.pieces) == len(chunk.ids):
            return chunk.pieces[place]
        if chunk.logprobs is not None and len(chunk.logprobs) == len(chunk.ids):
            return chunk.logprobs[place].text
        return chunk.text or chunk.reasoning if len(chunk.ids) == 1 else None

    def logprob(self, index: int) -> TokenLogprob | None:
        """The logprob entry of output token ``index``; None if absent, or if the side's logprobs are all 0.0.

        Some servers report 0.0 for every token under speculation (reported fault A18): that is no measurement.
        """
        found = self.locate(index)
        if found is None or not self._logprobs_real():
            return None
        chunk, place = found
        if chunk.logprobs is None or len(chunk.logprobs) != len(chunk.ids):
            return None
        return chunk.logprobs[place]

    def candidates(self, index: int) -> tuple[TopToken, ...]:
        """What the engine thought of at ``index`` while it decoded, best first; empty if it did not say.

        vLLM lists its best by text alone unless asked for ids; the delivered token is then found by its text and value.
        """
        entry = self.logprob(index)
        if entry is None:
            return ()
        seen = {top.id: top for top in entry.top if top.id is not None}
        nameless = [top for top in entry.top if top.id is None]
        if entry.logprob is not None and entry.id is not None and entry.id not in seen:
            seen[entry.id] = TopToken(entry.id, entry.text, entry.logprob)
            own = next((i for i, top in enumerate(nameless) if _same(top, entry.text, entry.logprob)), None)
            if own is not None:
                del nameless[own]
        return tuple(sorted((*seen.values(), *nameless), key=lambda top: -top.logprob))

    def _logprobs_real(self) -> bool:
        return any(
            entry.logprob is not None and entry.logprob != 0.0
            for chunk in self.chunks
            for entry in chunk.logprobs or ()
        )


def _same(top: TopToken, text: str, logprob: float) -> bool:
    return top.text == text and isclose(top.logprob, logprob, rel_tol=1e-6, abs_tol=1e-6)


def collect(events: Iterable[Event], side: Side) -> Outcome:
    """Gather one side's events, in order of arrival, into an :class:`Outcome`."""
    chunks: list[Tokens] = []
    ids: list[int] = []
    counters: list[CountersRead] = []
    noted: list[Noted] = []
    started: Started | None = None
    finished: Finished | None = None
    failure: Failed | None = None
    for event in events:
        if event.side is not side:
            continue
        if isinstance(event, Tokens):
            chunks.append(event)
            ids.extend(event.ids)
        elif isinstance(event, Started):
            started = started or event
        elif isinstance(event, CountersRead):
            counters.append(event)
        elif isinstance(event, Noted):
            noted.append(event)
        elif isinstance(event, Finished):
            finished = event
        else:
            failure = event
    text = "".join([chunk.text for chunk in chunks])
    reasoning = "".join([chunk.reasoning for chunk in chunks])
    unnumbered = any((chunk.text or chunk.reasoning) and not chunk.ids for chunk in chunks)
    # Text may have been held back for an earlier token, but only the server's own count can show that no id is missing.
    usage = finished.usage if finished else None
    known = not unnumbered or (usage is not None and bool(ids) and usage.completion_tokens == len(ids))
    return Outcome(
        side=side,
        state=_state(started, finished, failure),
        text=text,
        reasoning=reasoning,
        ids=tuple(ids) if known else None,
        chunks=tuple(chunks),
        started=started,
        finished=finished,
        failure=failure,
        counters=tuple(counters),
        noted=tuple(noted),
    )


def _state(started: Started | None, finished: Finished | None, failure: Failed | None) -> State:
    if failure is not None:
        return "cancelled" if failure.kind == "cancelled" else "failed"
    if finished is not None:
        return "finished"
    return "running" if started is not None else "waiting"
