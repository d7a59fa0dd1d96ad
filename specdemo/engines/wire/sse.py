"""Server-sent events without I/O: bytes in any cut → events.

Follows the WHATWG event-stream grammar: lines end in LF, CR or CRLF, a leading byte order mark is dropped, lines that
begin with a colon are comments, the space after a colon is optional, several data lines join with LF, unknown fields
are ignored. Lines are cut as bytes and decoded whole, so a character split between reads cannot be damaged.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from specdemo.core.sentences import sentence
from specdemo.errors import EngineProtocolError

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""Largest event that is accepted; the largest sensible one (a burst with 20 alternatives a token) has some kB."""

_BOM = b"\xef\xbb\xbf"
_SMALLEST = len(b"data: \n\n")
_LINE_END = re.compile(rb"\r\n|\r|\n")


def _is_one_plain_event(chunk: bytes) -> bool:
    """What nearly every read looks like; decoded in one step, with the result of the general way."""
    return (
        chunk[:6] == b"data: " and chunk[-2:] == b"\n\n" and chunk.find(b"\n") == len(chunk) - 2 and b"\r" not in chunk
    )


class SseEvent(NamedTuple):
    """One dispatched event. ``data`` is UTF-8 as received; ``retry_ms`` is the last reconnection time sent, if any.

    ``bare``: no event, but a line of JSON without a field name. The grammar ignores it; some servers report a failure
    in the middle of a stream so.
    """

    data: bytes
    event: str = "message"
    id: str = ""
    retry_ms: int | None = None
    bare: bool = False


class SseDecoder:
    """``decode`` takes bytes and gives the events completed by them; ``flush`` gives what was pending at the end.

    Raises EngineProtocolError on the call after an event grew over ``max_event_bytes``, or at once when that
    call has no complete event to give first; so what is seen does not depend on how the bytes were cut.
    """

    __slots__ = (
        "_data", "_error", "_event", "_head", "_held", "_id", "_limit", "_partial", "_plain", "_retry", "_skip_lf",
        "_start",
    )  # fmt: skip

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._limit = max_event_bytes
        self._partial: list[bytes] = []
        self._head = 0  # bytes in _partial
        self._data: list[bytes] = []  # data lines of the event that is being received
        self._held = 0  # bytes in _data
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self._skip_lf = False  # the last chunk ended in CR: an LF at the start of the next belongs to it
        self._start: bytes | None = b""  # bytes held back until it is known whether they are a byte order mark
        self._error: EngineProtocolError | None = None
        self._plain = False  # nothing pending: the next chunk begins a fresh line of a fresh event

    def single(self, chunk: bytes) -> bytes | None:
        """The data of ``chunk`` when it is exactly one plain event, as nearly every read is; else None, untouched."""
        size = len(chunk)
        if (
            self._plain
            and chunk.startswith(b"data: ")
            and chunk.find(b"\n") == size - 2
            and chunk[-1] == 0x0A
            and b"\r" not in chunk
            and _SMALLEST < size <= self._limit
        ):
            return chunk[6:-2]
        return None

    def several(self, chunk: bytes) -> list[bytes] | None:
        """The data of each event when ``chunk`` is nothing but whole plain events; else None, untouched."""
        if (
            self._plain
            and chunk.startswith(b"data: ")
            and chunk.endswith(b"\n\n")
            and b"\r" not in chunk
            and _SMALLEST <= len(chunk) <= self._limit
        ):
            found = chunk[6:-2].split(b"\n\ndata: ")
            if chunk.count(b"\n") == 2 * len(found):  # so none is inside the data
                return found
        return None

    def whole(self, chunk: bytes) -> tuple[int, int]:
        """Where in ``chunk`` whole events may begin and end; what is before and after is for ``decode``."""
        return 0 if self._plain else chunk.find(b"\n\n") + 2, chunk.rfind(b"\n\n") + 2

    def decode(self, chunk: bytes) -> list[SseEvent]:
        """Events completed by ``chunk``, oldest first."""
        if self._plain and _is_one_plain_event(chunk) and len(chunk) <= self._limit:
            return [SseEvent(chunk[6:-2], "message", self._id, self._retry)]
        events = self._decode(chunk)
        pending = self._head or self._held or self._data or self._event or self._skip_lf or self._error
        self._plain = not pending and self._start is None
        return events

    def _decode(self, chunk: bytes) -> list[SseEvent]:
        if self._error is not None:
            raise self._error
        if self._start is not None:
            chunk = self._after_bom(self._start + chunk)
        if self._skip_lf and chunk:
            self._skip_lf = False
            if chunk[0] == 0x0A:
                chunk = chunk[1:]
        if not chunk:
            return []
        if b"\r" in chunk:
            self._skip_lf = chunk[-1] == 0x0D
            lines = _LINE_END.split(chunk)
        else:
            lines = chunk.split(b"\n")
        if len(lines) == 1:
            return self._keep(chunk)
        if self._head:
            self._partial.append(lines[0])
            lines[0] = b"".join(self._partial)
            self._partial.clear()
            self._head = 0
        rest = lines.pop()
        events = self._lines(lines)
        if rest and self._error is None:
            try:
                self._keep(rest)
            except EngineProtocolError as error:
                self._error = error
        if self._error is not None and not events:
            raise self._error
        return events

    def flush(self) -> list[SseEvent]:
        """The event that was pending when the bytes ended, as if an empty line had followed. It may be cut short."""
        self._plain = False
        if self._error is not None:
            raise self._error
        lines = [b"".join(self._partial), b""]
        if self._start:
            lines[0] = self._start
        self._partial.clear()
        self._head = 0
        self._start = None
        return self._lines(lines)

    def _after_bom(self, held: bytes) -> bytes:
        if len(held) < len(_BOM) and _BOM.startswith(held):
            self._start = held
            return b""
        self._start = None
        return held.removeprefix(_BOM)

    def _keep(self, piece: bytes) -> list[SseEvent]:
        """Hold back the start of a line. Never lets more than the limit pile up."""
        self._head += len(piece)
        if self._head > self._limit - self._held:
            self._partial.clear()
            self._error = self._too_long()
            raise self._error
        self._partial.append(piece)
        return []

    def _too_long(self) -> EngineProtocolError:
        return EngineProtocolError(sentence("event_large", bytes=f"{self._limit:,}"))

    def _lines(self, lines: list[bytes]) -> list[SseEvent]:
        """Feed whole lines (without their ends)."""
        events: list[SseEvent] = []
        data, room = self._data, self._limit - self._held
        for line in lines:
            if not line:
                if data:
                    value = data[0] if len(data) == 1 else b"\n".join(data)
                    events.append(SseEvent(value, self._event or "message", self._id, self._retry))
                    data, room = [], self._limit
                self._event = ""
            elif len(line) > room:
                self._error = self._too_long()
                break
            elif line.startswith(b"data:"):
                value = line[6:] if line[5:6] == b" " else line[5:]
                data.append(value)
                room -= len(value) + 1
            elif line == b"data":
                data.append(b"")
                room -= 1
            elif line.startswith(b"{"):
                events.append(SseEvent(line, bare=True))
            else:
                self._field(line)
        self._data, self._held = data, self._limit - room
        return events

    def _field(self, line: bytes) -> None:
        """A line without data: a comment (its field name is empty), event, id, retry, or something unknown."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit():
            self._retry = int(value[:9])
