"""Content codings without I/O. We ask for none, but a proxy may compress all the same."""

from __future__ import annotations

import zlib
from typing import Protocol

from specdemo.errors import EngineProtocolError

_PIECE = 256 * 1024
_HEAD = 2


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
    """gzip and deflate. Output comes in bounded pieces; raises EngineProtocolError over ``limit`` bytes in all."""

    __slots__ = ("_head", "_left", "_zlib")

    def __init__(self, limit: int) -> None:
        self._head = b""
        self._left = limit
        self._zlib = zlib.decompressobj(wbits=47)  # gzip or zlib, by its header

    def decode(self, chunk: bytes) -> list[bytes]:
        """Plain bytes so far."""
        if len(self._head) < _HEAD:
            chunk = self._head = self._head + chunk
            if len(self._head) < _HEAD:
                return []
            if not _is_wrapped(self._head):
                self._zlib = zlib.decompressobj(wbits=-15)  # some servers call a bare deflate stream "deflate"
        pieces: list[bytes] = []
        full = True
        while chunk or full:
            try:
                piece = self._zlib.decompress(chunk, _PIECE)
            except zlib.error:
                raise EngineProtocolError("The engine's compressed reply is damaged.") from None
            chunk = self._zlib.unconsumed_tail
            full = len(piece) == _PIECE
            self._left -= len(piece)
            if self._left < 0:
                raise EngineProtocolError("The engine's compressed reply is over the size limit.")
            pieces.append(piece)
        return pieces


def _is_wrapped(data: bytes) -> bool:
    """Whether it begins like gzip (RFC 1952) or zlib (RFC 1950)."""
    return data[:2] == b"\x1f\x8b" or (data[0] & 15 == 8 and (data[0] * 256 + data[1]) % 31 == 0)


def coding(name: str, limit: int) -> Coding:
    """The decoder for a Content-Encoding header; raises EngineProtocolError for one that we did not ask for."""
    wanted = name.strip().lower()
    if wanted in ("", "identity"):
        return Identity()
    if wanted in ("gzip", "x-gzip", "deflate"):
        return Inflate(limit)
    raise EngineProtocolError(f"The reply is compressed as {wanted[:20]!r}, which nobody asked for; check the proxy.")
