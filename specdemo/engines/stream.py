"""One streamed request as events. Everything that can go wrong on the way ends in exactly one Failed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx

from specdemo.core.events import (
    CountersRead,
    Event,
    Failed,
    Finished,
    Noted,
    NoteKind,
    Side,
    Started,
    Tokens,
)
from specdemo.engines.arrivals import ClumpWatch, LagMonitor
from specdemo.engines.counters import LONG_WAIT_S, SHORT_WAIT_S, CounterPoll
from specdemo.engines.http_errors import FOREIGN, body_message, count_words, in_band_error, translate
from specdemo.engines.notes import IDS_LOST, NO_IDS, NO_REASON, NO_USAGE, NOT_STREAMED, RETRIED, failure
from specdemo.engines.session import Feed, Reply, Session
from specdemo.engines.transport import StaleConnection
from specdemo.engines.wire import fields
from specdemo.engines.wire.completions import CompletionReader, ServerError, Split
from specdemo.engines.wire.sse import SseDecoder, SseEvent
from specdemo.errors import EngineError, EngineInterrupted, EngineProtocolError, EngineStalled

AFTER_FINISH_S = 5.0
"""How long to wait for usage and [DONE] once the engine has said that it is finished."""
_DRAIN_S = 0.1
_KEEP_RAW = 64 * 1024


@dataclass(slots=True)
class Exchange:
    """One request under way. ``events`` may be iterated once; closing it closes the connection."""

    session: Session
    side: Side
    path: str
    prepare: Callable[[], Awaitable[dict[str, Any]]]
    zero: float
    poll: CounterPoll
    lag: LagMonitor
    split: Split | None = None
    reader: CompletionReader = field(init=False)
    _decoder: SseDecoder = field(init=False)
    _time: Callable[[], float] = field(init=False)
    _clumps: ClumpWatch = field(default_factory=ClumpWatch)
    _response: httpx.Response | None = None
    _feed: Feed | None = None
    _request: dict[str, Any] | None = None
    _outcome: Finished | Failed | None = None
    _retried: bool = False
    _raw: bytearray | None = field(default_factory=bytearray)
    _started: float = 0.0
    _bytes_at: float = 0.0
    _token_at: float | None = None

    def __post_init__(self) -> None:
        self.reader = CompletionReader(self.side, self.split)
        self._decoder = SseDecoder(max_event_bytes=self.session.limits.event_bytes)
        self._time = asyncio.get_running_loop().time

    async def events(self) -> AsyncGenerator[Event, None]:
        """Started … Finished or Failed. Raises nothing but cancellation."""
        mark = self.lag.start()
        try:
            try:
                self._request = await self.prepare()
            except EngineError as error:
                self._outcome = failure(self.side, self._now(), error)
            before = await self.poll.once() if self._outcome is None else None
            start = self._now()
            self._started = self._bytes_at = self._time()
            yield Started(self.side, start)
            if before is not None:
                # Taken before the request was sent: the state of the counters at its start.
                yield CountersRead(self.side, start, before.counters)
                if before.counters.drafts is not None:
                    self.poll.start()
            while self._outcome is None:
                for event in await self._advance():
                    yield event
            if isinstance(self._outcome, Finished):
                known = self.reader.speculation is not None or before is None or before.counters.drafts is None
                after = await self.poll.once(SHORT_WAIT_S if known else LONG_WAIT_S)
                if after is not None:
                    yield after
            if (message := self.lag.message(mark)) is not None:
                yield Noted(self.side, self._now(), "overloaded", message)
            yield self._outcome
        finally:
            self.lag.stop()
            self.poll.stop()
            if self._response is not None:
                await self._response.aclose()

    def _now(self) -> float:
        return self.session.clock() - self.zero

    async def _advance(self) -> list[Event]:
        """The next events; sets ``_outcome`` at the end. What was decoded before an error is kept."""
        out: list[Event] = []
        try:
            if self._feed is not None:
                await self._read(self._feed, out)
            else:
                await self._open(out)
        except EngineError as error:
            self._outcome = failure(self.side, self._now(), self.session.masked_error(error))
        except FOREIGN as error:
            self._outcome = failure(self.side, self._now(), self._broken(error))
        return out

    async def _open(self, out: list[Event]) -> None:
        """Send the request and look at the head of the reply."""
        try:
            response = await self._send()
        except StaleConnection:
            if self._retried:
                raise
            self._retried = True
            out.append(self._note("retried", RETRIED))
            return
        self._response = response
        kind = response.headers.get("content-type", "")
        if response.status_code != 200:
            raise await self._refused(response)
        if "json" in kind and "event-stream" not in kind:
            await self._whole(response, out)
        else:
            self._feed = Feed(response, self.session.clock, self.session.limits.stream_bytes)

    async def _send(self) -> httpx.Response:
        wait = self.session.limits.first_token_s
        return await self.session.open("POST", self.session.base.api + self.path, self._request, wait_s=wait)

    async def _refused(self, response: httpx.Response) -> EngineError:
        limits = self.session.limits
        try:
            body = await self.session.content(response, limits.error_bytes, limits.request_s)
        except (EngineProtocolError, TimeoutError):
            body = b""
        return self.session.error(Reply(response.status_code, response.headers, body))

    def _broken(self, error: Exception) -> EngineError:
        """A transport error: before the first token it is what the table says, after it an interruption."""
        found = translate(error, self.session.where)
        if self.reader.token_count or self.reader.had_text:
            found = EngineInterrupted(f"Interrupted after {self._received()}: {found}")
        return self.session.masked_error(found)

    def _received(self) -> str:
        return count_words(self.reader.token_count) if self.reader.had_ids else "part of the text"

    async def _whole(self, response: httpx.Response, out: list[Event]) -> None:
        """200 with one JSON body: a refusal, or an answer from a server that does not stream."""
        limits = self.session.limits
        try:
            content = await self.session.content(response, limits.body_bytes, limits.first_token_s)
        except TimeoutError:
            raise EngineStalled(f"No answer within {limits.first_token_s:g} s; this limit can be raised.") from None
        token = self.reader.take(fields.parse(content), self._now())
        if token is not None:
            out += [self._note("other", NOT_STREAMED), token]
        elif self.reader.error is None:
            raise EngineProtocolError(f'The reply holds no answer: "{fields.excerpt(content)}".')
        self.reader.done = True
        self._end(out)

    async def _read(self, feed: Feed, out: list[Event]) -> None:
        """One piece of the stream as it came from the network."""
        reader = self.reader
        try:
            pieces = feed.plain(await feed.next(self._deadline()))
        except TimeoutError:
            if not reader.finished:
                raise self._too_slow() from None
            pieces = None
        except FOREIGN:
            if not reader.finished:
                raise
            pieces = None  # the answer is complete; only its epilogue was cut off
        if pieces is None:
            self._last(out)
            self._end(out)
            return
        at = feed.at - self.zero
        self._bytes_at = self._time()
        if self.poll.waiting:
            out += self.poll.take(at)
        carrying = 0
        for piece in pieces:
            if self._raw is not None and len(self._raw) < _KEEP_RAW:
                self._raw += piece
            if (data := self._decoder.single(piece)) is not None:
                self._raw = None
                token = reader.feed(data, at)
                if token is not None:
                    out.append(token)
                    carrying += bool(token.ids or token.text or token.reasoning)
                continue
            for event in self._decoder.decode(piece):
                token = self._event(event, at)
                if token is not None:
                    out.append(token)
                    carrying += bool(token.ids or token.text or token.reasoning)
                elif reader.done or reader.error is not None:
                    break
        if carrying:
            self._token_at = self._bytes_at
            if (message := self._clumps.feed(at, carrying)) is not None:
                out.append(Noted(self.side, at, "clumped", message))
        if reader.remarks:
            self._say_remarks(out)
        if reader.done or reader.error is not None:
            if not feed.ended:
                await self._drain(feed)
            self._end(out)

    async def _drain(self, feed: Feed) -> None:
        """Take the end of the reply so that the connection can be kept; usually it is here already."""
        with contextlib.suppress(TimeoutError, EngineError, *FOREIGN):
            deadline = self._time() + _DRAIN_S
            while feed.plain(await feed.next(deadline)) is not None:
                pass

    def _say_remarks(self, out: list[Event]) -> None:
        out += [self._note(kind, message) for kind, message in self.reader.remarks]
        self.reader.remarks.clear()

    def _event(self, event: SseEvent, at: float) -> Tokens | None:
        self._raw = None
        if event.event == "error" and self.reader.error is None:
            return self._error_event(event, at)
        if not event.data or event.data.isspace():
            return None
        return self.reader.feed(event.data, at)

    def _error_event(self, event: SseEvent, at: float) -> Tokens | None:
        """``event: error``: whatever its data look like, it is an error."""
        try:
            token = self.reader.feed(event.data, at)
        except EngineProtocolError:
            token = None
        if self.reader.error is None:
            self.reader.error = ServerError(body_message(event.data) or "an error without a message")
        return token

    def _last(self, out: list[Event]) -> None:
        """What was pending when the bytes ended: a last event without its empty line counts, half of one does not."""
        for event in self._decoder.flush():
            with contextlib.suppress(EngineProtocolError):
                token = self._event(event, self._now())
                if token is not None:
                    out.append(token)

    def _end(self, out: list[Event]) -> None:
        """The closing events. Raises EngineError when the answer is not complete."""
        reader = self.reader
        self._say_remarks(out)
        if reader.error is not None:
            raise in_band_error(reader.error, reader.token_count, self.session.where)
        if reader.last_at is None and not reader.finished:
            raise self._empty()
        if not reader.finished and not reader.done:
            raise EngineInterrupted(
                f"Interrupted after {self._received()}: the stream ended before the engine had finished."
            )
        reason = reader.finish_reason
        if reason in ("abort", "error"):
            raise EngineInterrupted(f"The engine gave up after {self._received()} (finish reason {reason}).")
        if reader.had_text and not reader.had_ids:
            out.append(self._note("no_token_ids", NO_IDS))
        elif reader.unnumbered:
            out.append(self._note("token_ids_lost", IDS_LOST))
        if reader.usage is None:
            out.append(self._note("no_usage", NO_USAGE))
        if reason is None:
            out.append(self._note("other", NO_REASON))
        self._outcome = Finished(
            self.side,
            self._now() if reader.last_at is None else reader.last_at,
            reason,
            reader.stop_reason,
            reader.usage,
            reader.speculation,
            reader.timings,
            reader.prompt_token_ids,
        )

    def _empty(self) -> EngineError:
        """The stream brought no answer at all; perhaps it was no stream."""
        raw = bytes(self._raw or b"").strip()
        if raw.startswith((b"{", b"[")):
            try:
                token = self.reader.take(fields.parse(raw), self._now())
            except EngineProtocolError:
                token = None
            if self.reader.error is not None:
                return in_band_error(self.reader.error, 0, self.session.where)
            if token is not None:
                return EngineProtocolError("The engine sent an answer that is labelled as a stream but is none.")
        said = body_message(raw) if raw else ""
        tail = f': "{said}".' if said else "."
        return EngineProtocolError(f"The engine at {self.session.where} ended the stream without an answer{tail}")

    def _deadline(self) -> float:
        """Until when to wait for the next bytes (loop time)."""
        limits = self.session.limits
        if self.reader.finished:
            return self._bytes_at + min(AFTER_FINISH_S, limits.stall_s)
        until = self._started + limits.total_s
        if self._token_at is None:
            return min(until, self._started + limits.first_token_s)
        if self._token_at != self._bytes_at:
            # Comments keep the line alive: then the engine may take as long as for a first token.
            until = min(until, self._token_at + max(limits.first_token_s, limits.stall_s))
        silence = self._bytes_at + limits.stall_s
        return min(until, silence)

    def _too_slow(self) -> EngineStalled:
        limits = self.session.limits
        if self._time() >= self._started + limits.total_s:
            return EngineStalled(f"Stopped after {limits.total_s:g} s, the limit for one answer; it can be raised.")
        if self._token_at is None:
            return EngineStalled(f"No first token within {limits.first_token_s:g} s; this limit can be raised.")
        return EngineStalled(
            f"Stalled after {self._received()}: the engine sent nothing more for {limits.stall_s:g} s; look at its log."
        )

    def _note(self, kind: NoteKind, message: str) -> Noted:
        return Noted(self.side, self._now(), kind, message)
