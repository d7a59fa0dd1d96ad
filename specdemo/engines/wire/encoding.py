"""Content codings without I/O. We ask for none, but a proxy may compress all the same."""

from __future__ import annotations

import zlib
from typing import Protocol

from specdemo.core.sentences import sentence
from specdemo.errors import EngineProtocolError

_PIECE = 256 * 1024
_HEAD = 2
_GZIP = b"\x1f\x8b"
_PLAIN = ("", "identity", "none", "utf-8", "utf8")
"""No coding; ``none`` keeps proxies from compressing a stream, and some servers name the charset here."""


class Coding(Protocol):
    """``decode`` gives the plain bytes contained in a chunk."""

    def decode(self, chunk: bytes) -> list[bytes]: ...


class Identity:
    """No coding."""

    __slots__ = ()

    def decode(self, chunk: bytes) -> list[bytes]:
        """As it is."""
        return [chunk]


class Inflate:
    """gzip and deflate. Output comes in bounded pieces; raises EngineProtocolError over ``limit`` bytes in all.

    A gzip file may be several behind one another (RFC 1952); what is behind the end and begins otherwise is padding.
    """

    __slots__ = ("_between", "_head", "_left", "_over", "_zlib")

    def __init__(self, limit: int) -> None:
        self._head = b""
        self._left = limit
        self._zlib = zlib.decompressobj(wbits=47)  # gzip or zlib, by its header
        self._between: bytes | None = None  # bytes behind an end, until it is known whether another one begins
        self._over = False

    def decode(self, chunk: bytes) -> list[bytes]:
        """Plain bytes so far."""
        if len(self._head) < _HEAD:
            chunk = self._head = self._head + chunk
            if len(self._head) < _HEAD:
                return []
            if not _is_wrapped(self._head):
                self._zlib = zlib.decompressobj(wbits=-15)  # some servers call a bare deflate stream "deflate"
        pieces: list[bytes] = []
        while chunk and not self._over:
            if self._between is not None:
                chunk = self._begun(self._between + chunk)
            if self._between is None:
                chunk = self._member(chunk, pieces)
        return pieces

    def _begun(self, data: bytes) -> bytes:
        """What another member begins with; nothing as long as, or because, none does."""
        if len(data) < _HEAD:
            self._between = data
            return b""
        self._over = not data.startswith(_GZIP)
        self._between, self._zlib = None, zlib.decompressobj(wbits=31)
        return b"" if self._over else data

    def _member(self, chunk: bytes, pieces: list[bytes]) -> bytes:
        """Unpack; gives what is behind the end."""
        full = True
        while chunk or full:
            try:
                piece = self._zlib.decompress(chunk, _PIECE)
            except zlib.error:
                raise EngineProtocolError(sentence("reply_packed_damaged")) from None
            chunk = self._zlib.unconsumed_tail
            full = len(piece) == _PIECE
            self._left -= len(piece)
            if self._left < 0:
                raise EngineProtocolError(sentence("reply_packed_large"))
            pieces.append(piece)
        if not self._zlib.eof:
            return b""
        self._between = b""
        return self._zlib.unused_data


def _is_wrapped(data: bytes) -> bool:
    """Whether it begins like gzip (RFC 1952) or zlib (RFC 1950)."""
    return data.startswith(_GZIP) or (data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0)


def coding(name: str, limit: int) -> Coding:
    """The decoder for a Content-Encoding header; raises EngineProtocolError for one that we did not ask for."""
    codings = [wanted for part in name.lower().split(",") if (wanted := part.strip()) not in _PLAIN]
    if not codings:
        return Identity()
    wanted = ", ".join(codings)
    if wanted in ("gzip", "x-gzip", "deflate"):
        return Inflate(limit)
    raise EngineProtocolError(sentence("reply_coding", coding=repr(wanted[:20])))
