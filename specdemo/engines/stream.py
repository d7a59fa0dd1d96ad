"""One streamed request as events. Everything that can go wrong on the way ends in exactly one Failed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx

from specdemo.core.events import CountersRead, Event, Failed, Finished, Noted, NoteKind, Side, Started
from specdemo.core.sentences import sentence
from specdemo.engines.arrivals import ClumpWatch, LagMonitor
from specdemo.engines.counters import LONG_WAIT_S, SHORT_WAIT_S, CounterPoll
from specdemo.engines.heard import Heard
from specdemo.engines.http_errors import FOREIGN, count_words, in_band_error, translate
from specdemo.engines.notes import IDS_LOST, NO_IDS, NO_REASON, NO_USAGE, NOT_STREAMED, RETRIED, failure
from specdemo.engines.refusals import refused
from specdemo.engines.session import Feed, Session
from specdemo.engines.transport import Body, StaleConnection
from specdemo.engines.wire import fields
from specdemo.engines.wire.completions import CompletionReader, Split
from specdemo.engines.wire.problems import gave_up
from specdemo.errors import EngineError, EngineInterrupted, EngineProtocolError, EngineStalled

FOREIGN_OR_LATE: tuple[type[Exception], ...] = (TimeoutError, *FOREIGN)
AFTER_FINISH_S = 5.0
"""How long to wait for usage and [DONE] once the engine has said that it is finished."""
_DRAIN_S = 0.1
SSE = (b"data:", b"event:", b"id:", b"retry:", b":")
_BEFORE = b"\xef\xbb\xbf \t\r\n"  # a byte order mark and empty lines


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
    _heard: Heard = field(init=False)
    _time: Callable[[], float] = field(init=False)
    _response: httpx.Response | None = None
    _feed: Feed | None = None
    _body: Body | None = None
    _request: dict[str, Any] | None = None
    _outcome: Finished | Failed | None = None
    _retried: bool = False
    _started: float = 0.0
    _bytes_at: float = 0.0
    _token_at: float | None = None

    def __post_init__(self) -> None:
        self.reader = CompletionReader(self.side, self.split, self.session.masked)
        self._heard = Heard(self.reader, self.side, self.session.limits.event_bytes)
        self._time = asyncio.get_running_loop().time

    async def events(self) -> AsyncGenerator[Event, None]:
        """Started … Finished or Failed. Raises nothing but cancellation."""
        mark = self.lag.start()
        out: list[Event] = []
        try:
            try:
                self._request = await self.prepare()
            except EngineError as error:
                self._outcome = failure(self.side, self._now(), error)
            before = await self.poll.once() if self._outcome is None else None
            start = self._now()
            self._heard.clumps = ClumpWatch(lambda: self.lag.message(mark) is not None, began=start)
            self._started = self._bytes_at = self._time()
            yield Started(self.side, start)
            if before is not None:
                # Taken before the request was sent: the state of the counters at its start.
                yield CountersRead(self.side, start, before.counters)
                if before.counters.drafts is not None:
                    self.poll.start()
            while self._outcome is None:
                # A chunk costs one wake-up and no coroutine of its own: most of a client's time goes into those.
                if (body := self._body) is None or self._heard.complete:
                    await self._advance(out)
                elif not self._take(body, out):
                    try:
                        await body.arrival()
                        continue
                    except TimeoutError:
                        self._silence(out)
                for event in out:
                    yield event
                out.clear()
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

    async def _advance(self, out: list[Event]) -> None:
        """All that has to wait. What was decoded before an error is kept."""
        with self._told():
            if self._feed is None:
                await self._open(out)
            elif self._heard.complete:
                await self._close(self._feed, out)
            else:
                await self._read(self._feed, out)

    def _take(self, body: Body, out: list[Event]) -> bool:
        """One piece that has arrived; False if there is none yet."""
        try:
            if (data := body.take()) == b"":
                return False
            self._piece(data, out)
        except EngineError as error:
            self._outcome = failure(self.side, self._now(), self.session.masked_error(error))
        except FOREIGN as error:
            with self._told():
                self._cut(error, out)
        return True

    def _silence(self, out: list[Event]) -> None:
        """Nothing arrived until the deadline."""
        with self._told():
            self._cut(None, out)

    @contextlib.contextmanager
    def _told(self) -> Iterator[None]:
        """Errors become the outcome."""
        try:
            yield
        except EngineError as error:
            self._outcome = failure(self.side, self._now(), self.session.masked_error(error))
        except FOREIGN as error:
            self._outcome = failure(self.side, self._now(), self._broken(error))

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
        kind = response.headers.get("content-type", "").lower()
        if not response.is_success:  # some gateways answer every POST with 201
            raise await refused(self.session, response)
        limits, labelled = self.session.limits, "json" in kind and "event-stream" not in kind
        feed = Feed(response, self.session.clock, limits.body_bytes if labelled else limits.stream_bytes)
        if labelled:
            await self._whole(feed, out)
        else:
            self._stream(feed)

    def _stream(self, feed: Feed) -> None:
        """Read on piece by piece."""
        self._feed, self._body = feed, feed.direct
        if self._body is not None:
            self._body.watch(self._deadline)

    async def _send(self) -> httpx.Response:
        wait = self.session.limits.first_token_s
        return await self.session.open("POST", self.session.base.api + self.path, self._request, wait_s=wait)

    def _broken(self, error: Exception) -> EngineError:
        """A transport error: before the first token it is what the table says, after it an interruption."""
        found = translate(error, self.session.where)
        if self.reader.token_count or self.reader.had_text:
            found = EngineInterrupted(f"Interrupted after {self._received()}: {found}")
        return self.session.masked_error(found)

    def _received(self) -> str:
        return count_words(self.reader.token_count) if self.reader.had_ids else "part of the text"

    async def _whole(self, feed: Feed, out: list[Event]) -> None:
        """200 labelled as JSON: a refusal, an answer from a server that does not stream, or a stream all the same."""
        limits, content = self.session.limits, bytearray()
        try:
            while (pieces := feed.plain(await feed.next(self._deadline()))) is not None:
                content += b"".join(pieces)
                if content.lstrip(_BEFORE).startswith(SSE):
                    self._stream(feed)
                    self._plain([bytes(content)], feed.at, out)
                    return
        except TimeoutError:
            raise EngineStalled(f"No answer within {limits.first_token_s:g} s; this limit can be raised.") from None
        token = self.reader.take(fields.parse(bytes(content), self.session.masked), self._now())
        if token is not None:
            out += [self._note("other", NOT_STREAMED), token]
        elif self.reader.error is None:
            what = fields.excerpt(bytes(content), mask=self.session.masked)
            raise EngineProtocolError(sentence("reply_empty", quote=what))
        self.reader.done = True
        self._end(out)

    async def _read(self, feed: Feed, out: list[Event]) -> None:
        """One piece of the stream over somebody else's transport."""
        try:
            data = await feed.next(self._deadline())
        except FOREIGN_OR_LATE as error:
            self._cut(error, out)
        else:
            self._piece(data, out)

    def _cut(self, error: Exception | None, out: list[Event]) -> None:
        """Silence (None or TimeoutError) or a broken connection: only the epilogue of a finished answer may miss."""
        if self.reader.finished:
            self._heard.flush(self._now(), out)
            self._end(out)
        elif error is None or isinstance(error, TimeoutError):
            raise self._too_slow()
        else:
            raise error

    def _piece(self, data: bytes | None, out: list[Event]) -> None:
        """One piece of the stream as it came from the network, None at its end."""
        assert self._feed is not None  # noqa: S101 - set since the reply's head came
        pieces = self._feed.plain(data)
        if pieces is not None:
            self._plain(pieces, self._feed.at, out)
            return
        self._heard.flush(self._now(), out)
        self._end(out)

    def _plain(self, pieces: list[bytes], arrived: float, out: list[Event]) -> None:
        """What a piece was, decompressed."""
        reader, at = self.reader, arrived - self.zero
        self._bytes_at = self._time()
        if self.poll.waiting:
            out += self.poll.take(at)
        if self._heard.feed(pieces, at, out):
            first, self._token_at = self._token_at is None, self._bytes_at
            if first:
                self._deadline_moved()
        if reader.remarks:
            self._say_remarks(out)
        if reader.finished:
            self._deadline_moved()

    def _deadline_moved(self) -> None:
        """It may be earlier than it was."""
        if self._body is not None:
            self._body.watch(self._deadline)

    async def _close(self, feed: Feed, out: list[Event]) -> None:
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

    def _end(self, out: list[Event]) -> None:
        """The closing events. Raises EngineError when the answer is not complete."""
        reader = self.reader
        self._say_remarks(out)
        if (message := self._heard.clumps.end()) is not None:
            out.append(self._note(self._heard.clumps.kind, message))
        if reader.error is not None:
            raise in_band_error(reader.error, reader.token_count, self.session.where, had_text=reader.had_text)
        if reader.last_at is None and not reader.finished:
            raise self._heard.empty(self._now(), self.session.where)
        if not reader.finished and not reader.done:
            raise EngineInterrupted(
                f"Interrupted after {self._received()}: the stream ended before the engine had finished."
            )
        reason = reader.finish_reason
        if reason is not None and gave_up(reason):
            named = fields.excerpt(reason, 40, self.session.masked)
            raise EngineInterrupted(f"The engine gave up after {self._received()} (finish reason {named}).")
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
