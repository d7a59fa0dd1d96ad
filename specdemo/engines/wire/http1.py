"""HTTP/1.1 replies without I/O: the head, and the three ways in which a body can be framed.

Only what a client needs to read a reply (RFC 9112), strict where a mistake could hide lost text: a body that ends
early, a chunk size that is no number, or two lengths that differ are errors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import eq

from specdemo.core.sentences import sentence
from specdemo.errors import EngineProtocolError

MAX_HEAD_BYTES = 64 * 1024
_MAX_SIZE_LINE = 1024
_BEGINNING = b"HTTP/"
_TLS_RECORDS = (b"\x15", b"\x16")  # an alert, a handshake
_LINE_END = re.compile(rb"\r?\n")  # a bare LF is tolerated, as RFC 9112 allows
_HEAD_END = re.compile(rb"\r?\n\r?\n")
_HEX = frozenset(b"0123456789abcdefABCDEF")
_SIZES = {b"%x" % size: size for size in range(1, 4096)}
"""Chunk sizes as nearly all servers write them; every other way of writing is read by the general way."""


@dataclass(frozen=True, slots=True)
class Head:
    """Status line and headers; names in lower case. ``keep_alive``: the connection may be used again."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    keep_alive: bool

    def values(self, name: bytes) -> list[bytes]:
        """All values of one header."""
        return [value for key, value in self.headers if key == name]


class HeadReader:
    """``decode`` bytes until it gives a Head; ``rest`` then holds the body bytes that came with it."""

    __slots__ = ("_held", "_known", "rest")

    def __init__(self) -> None:
        self._held = b""
        self._known = False  # a head has come, so it is HTTP
        self.rest = b""

    def decode(self, chunk: bytes) -> Head | None:
        """The head once it is complete. Interim replies (1xx) are skipped."""
        self._held += chunk
        while (end := _HEAD_END.search(self._held)) is not None:
            head, self._known = _parse(self._held[: end.start()]), True
            self._held = self._held[end.end() :]
            if head.status >= 200:
                self.rest, self._held = self._held, b""
                return head
        if not self._known:
            self._check_beginning()
        if len(self._held) > MAX_HEAD_BYTES:
            raise _broken("its headers are too long")
        return None

    def _check_beginning(self) -> None:
        """Another protocol may never send an empty line: it is told at once, not when the time is up."""
        if self._held.startswith(_TLS_RECORDS):
            raise _broken("it speaks TLS, so its address begins with https://")
        if not self._held.startswith(_BEGINNING[: len(self._held)]):
            raise _broken("it begins with something that is not a status line")

    def end(self) -> None:
        """The connection ended before the head was complete: fine only if nothing had come."""
        if self._held:
            raise _broken("it ends in the middle of its headers")


def _broken(what: str) -> EngineProtocolError:
    return EngineProtocolError(sentence("no_http", why=what))


def _parse(raw: bytes) -> Head:
    lines = _LINE_END.split(raw)
    version, _, rest = lines[0].partition(b" ")
    code = rest[:3]
    proper = version in (b"HTTP/1.1", b"HTTP/1.0") and rest[3:4] in (b"", b" ")
    if not proper or len(code) != 3 or not code.isdigit():
        raise _broken("it begins with something that is not a status line")
    headers = []
    for line in lines[1:]:
        name, colon, value = line.partition(b":")
        if not colon or not name or name != name.strip():
            raise _broken("a header line makes no sense")
        headers.append((name.lower(), value.strip()))
    wishes = [wish.strip().lower() for key, value in headers if key == b"connection" for wish in value.split(b",")]
    keep = b"close" not in wishes and (version == b"HTTP/1.1" or b"keep-alive" in wishes)
    return Head(int(code), tuple(headers), keep)


class Chunked:
    """``Transfer-Encoding: chunked``. ``done`` after the last chunk and its trailer.

    ``error`` is what is wrong behind the bytes that ``decode`` has just given; without any it raises at once.
    """

    __slots__ = ("_held", "_left", "_state", "done", "error")

    def __init__(self) -> None:
        self.error: EngineProtocolError | None = None
        self._held = b""
        self._left = 0
        self._state = "size"  # size → data → end (of the chunk) → size … → trailer
        self.done = False

    def decode(self, data: bytes) -> bytes:
        """Body bytes contained in ``data``."""
        if self._state == "size" and not self._held:
            # What nearly every read looks like: one whole chunk. The general way gives the same.
            end = data.find(b"\r\n", 0, 9)
            size = _SIZES.get(data[:end])
            if size is not None and len(data) == end + size + 4 and data[-2:] == b"\r\n":
                return data[end + 2 : -2]
        if self._held:
            data, self._held = self._held + data, b""
        pieces: list[bytes] = []
        try:
            self._decode(data, pieces)
        except EngineProtocolError as error:
            if not pieces:
                raise
            self.error = error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _decode(self, data: bytes, pieces: list[bytes]) -> None:
        at, total = 0, len(data)
        fresh = True  # many chunks in one read are taken together, once: where that fails it would fail again
        while at < total and not self.done:
            if fresh and self._state == "size":
                fresh = False
                at += _whole(data[at:] if at else data, pieces)
                continue
            if self._state == "data":
                piece = data[at : at + self._left]
                pieces.append(piece)
                at += len(piece)
                self._left -= len(piece)
                if not self._left:
                    self._state = "end"
            elif self._state == "end":
                if total - at < 2:
                    break
                if data[at : at + 2] != b"\r\n":
                    raise _broken("a chunk is longer than it says")
                at += 2
                self._state = "size"
            else:
                end = data.find(b"\r\n", at)
                if end < 0:
                    if total - at > _MAX_SIZE_LINE:
                        raise _broken("a chunk has no size")
                    break
                self._line(data[at:end])
                at = end + 2
        self._held = b"" if self.done else data[at:]

    def _line(self, line: bytes) -> None:
        if self._state == "trailer":
            self.done = not line
            return
        digits = line.partition(b";")[0].strip()
        if not 0 < len(digits) <= 15 or not _HEX.issuperset(digits):
            raise _broken("a chunk has no size")
        self._left = int(digits, 16)
        self._state = "data" if self._left else "trailer"

    def ended(self) -> bool:
        """Whether the connection may end here."""
        return self.done


def _whole(data: bytes, pieces: list[bytes]) -> int:
    """Add the data of the first chunks of ``data``, as long as they are whole, written as usual and hold no CRLF.

    Between line ends there are then a size and its data in turn, each size the length of what follows it; nearly all
    is done by built-in functions. Gives the length of what was read; the general way reads the same and goes on.
    """
    parts = data.split(b"\r\n")
    last = len(parts) - 1  # no line end has come behind this one
    found = parts[1:last:2]
    sizes, lengths = list(map(_SIZES.get, parts[0 : last - 1 : 2])), list(map(len, found))
    if sizes != lengths:
        same = list(map(eq, sizes, lengths)).index(False)
        del found[same:], lengths[same:]
    pieces += found
    return sum(lengths) + sum(map(len, parts[0 : 2 * len(found) : 2])) + 4 * len(found)


class Sized:
    """``Content-Length``."""

    __slots__ = ("_left",)
    error = None

    def __init__(self, length: int) -> None:
        self._left = length

    @property
    def done(self) -> bool:
        """Whether all bytes came."""
        return not self._left

    def decode(self, data: bytes) -> bytes:
        """Body bytes contained in ``data``; what goes beyond the length is dropped."""
        piece = data[: self._left]
        self._left -= len(piece)
        return piece

    def ended(self) -> bool:
        """Whether the connection may end here."""
        return self.done


class UntilClose:
    """No framing: the body ends with the connection."""

    __slots__ = ("done",)
    error = None

    def __init__(self) -> None:
        self.done = False

    def decode(self, data: bytes) -> bytes:
        """All of it."""
        return data

    def ended(self) -> bool:
        """Always: nobody can tell."""
        return True


Framing = Chunked | Sized | UntilClose


def framing(head: Head) -> Framing:
    """How the body of this reply is framed (requests are never HEAD or CONNECT here)."""
    codings = [coding.strip().lower() for value in head.values(b"transfer-encoding") for coding in value.split(b",")]
    if codings:
        if codings != [b"chunked"]:
            raise _broken("it uses a transfer coding that nobody asked for")
        return Chunked()
    if head.status in (204, 304):
        return Sized(0)
    lengths = {length.strip() for value in head.values(b"content-length") for length in value.split(b",")}
    if not lengths:
        return UntilClose()
    length = lengths.pop()
    if lengths or not length.isdigit() or len(length) > 15:
        raise _broken("its content length is not a number")
    return Sized(int(length))
