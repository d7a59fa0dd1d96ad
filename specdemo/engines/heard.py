"""What a stream's bytes say, as they come: from the body's bytes to token events, in any cut. No I/O, no clock."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from specdemo.core.events import Event, Noted, Side, Tokens
from specdemo.engines.arrivals import ClumpWatch
from specdemo.engines.http_errors import body_message, in_band_error
from specdemo.engines.wire import fields
from specdemo.engines.wire.completions import DONE, CompletionReader
from specdemo.engines.wire.problems import SPEECHLESS, ServerError, server_error
from specdemo.engines.wire.sse import SseDecoder, SseEvent
from specdemo.errors import EngineError, EngineProtocolError

_KEEP_RAW = 64 * 1024
_MANY = 400
"""Bytes of whole events from which on it pays to take them together."""


def apart(events: list[SseEvent]) -> Iterator[SseEvent]:
    """The events; one that is several, since the empty lines between them are missing, as several.

    Lines of data are one text by the grammar. Where that is no JSON and each line alone is, the server meant lines.
    """
    for event in events:
        lines = event.data.split(b"\n") if b"\n" in event.data else ()
        if lines and not _readable(event.data) and all(map(_readable, lines)):
            yield from (event._replace(data=line) for line in lines)
        else:
            yield event


def _readable(data: bytes) -> bool:
    try:
        return not data.strip() or data.strip() == DONE or fields.parse(data) is not None
    except EngineProtocolError:
        return False


class Heard:
    """One stream. ``feed`` pieces, ``flush`` at the end; what was said is in ``reader``."""

    __slots__ = ("_decoder", "_raw", "_side", "clumps", "reader")

    def __init__(self, reader: CompletionReader, side: Side, event_bytes: int) -> None:
        self.reader = reader
        self.clumps = ClumpWatch()
        self._side = side
        self._decoder = SseDecoder(max_event_bytes=event_bytes)
        self._raw: bytearray | None = bytearray()  # until the first event: perhaps it is no stream at all

    @property
    def complete(self) -> bool:
        """Whether the answer's last event has been read."""
        return self.reader.done or self.reader.error is not None

    def feed(self, pieces: list[bytes], at: float, out: list[Event]) -> bool:
        """Add the events of plain bytes that arrived ``at``; whether tokens were among them. Raises EngineError."""
        reader, carrying = self.reader, 0
        for piece in pieces:
            if self._raw is not None and len(self._raw) < _KEEP_RAW:
                self._raw += piece
            if (payload := self._decoder.single(piece)) is not None:
                self._raw = None
                token = reader.feed(payload, at)
                if token is not None:
                    out.append(token)
                    carrying += bool(token.ids or token.text or token.reasoning)
                continue
            carrying += self._many(piece, at, out)
        if carrying and (message := self.clumps.feed(at, carrying)) is not None:
            out.append(Noted(self._side, at, self.clumps.kind, message))
        return carrying > 0

    def _many(self, piece: bytes, at: float, out: list[Event]) -> int:
        """Any bytes; how many events with tokens they completed. Whole events in the middle are taken together."""
        decoder, reader = self._decoder, self.reader
        feed = reader.feed
        start, end = decoder.whole(piece)
        if end - start < _MANY:
            return self._general(piece, at, out)
        carrying = self._general(piece[:start], at, out) if start else 0
        found = decoder.several(piece[start:end])
        if self.complete:
            return carrying
        if found is None:
            return carrying + self._general(piece[start:], at, out)
        self._raw = None
        for data in found:
            if data < b"!" and not data.strip():
                continue
            token = feed(data, at)
            if token is not None:
                out.append(token)
                carrying += bool(token.ids or token.text or token.reasoning)
            elif reader.done or reader.error is not None:
                return carrying
        return carrying + self._general(piece[end:], at, out) if end < len(piece) else carrying

    def _general(self, piece: bytes, at: float, out: list[Event]) -> int:
        """Any bytes, event by event."""
        carrying = 0
        for event in apart(self._decoder.decode(piece)):
            token = self._event(event, at)
            if token is not None:
                out.append(token)
                carrying += bool(token.ids or token.text or token.reasoning)
            elif self.complete:
                break
        return carrying

    def flush(self, now: float, out: list[Event]) -> None:
        """What was pending when the bytes ended: a last event without its empty line counts, half of one does not."""
        for event in apart(self._decoder.flush()):
            with contextlib.suppress(EngineProtocolError):
                token = self._event(event, now)
                if token is not None:
                    out.append(token)

    def empty(self, now: float, where: str) -> EngineError:
        """The stream brought no answer at all; perhaps it was no stream."""
        raw = bytes(self._raw or b"").strip()
        if raw.startswith((b"{", b"[")):
            try:
                token = self.reader.take(fields.parse(raw), now)
            except EngineProtocolError:
                token = None
            if self.reader.error is not None:
                return in_band_error(self.reader.error, 0, where)
            if token is not None:
                return EngineProtocolError("The engine sent an answer that is labelled as a stream but is none.")
        said = body_message(raw, self.reader.mask) if raw else ""
        tail = f': "{said}".' if said else "."
        return EngineProtocolError(f"The engine at {where} ended the stream without an answer{tail}")

    def _event(self, event: SseEvent, at: float) -> Tokens | None:
        if event.bare:
            self._bare(event.data)
            return None
        self._raw = None
        if event.event == "error" and self.reader.error is None:
            return self._error_event(event, at)
        if not event.data or event.data.isspace():
            return None
        return self.reader.feed(event.data, at)

    def _bare(self, line: bytes) -> None:
        """A line of JSON outside of any event counts only if it is an error."""
        with contextlib.suppress(EngineProtocolError):
            self.reader.error = server_error(fields.parse(line), self.reader.mask)

    def _error_event(self, event: SseEvent, at: float) -> Tokens | None:
        """``event: error``: whatever its data look like, it is an error."""
        try:
            token = self.reader.feed(event.data, at)
        except EngineProtocolError:
            token = None
        if self.reader.error is None:
            self.reader.error = ServerError(body_message(event.data, self.reader.mask) or SPEECHLESS)
        return token
