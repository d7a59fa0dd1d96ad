"""Content codings without I/O. We ask for none, but a proxy may compress all the same."""

from __future__ import annotations

import zlib
from typing import Protocol

from specdemo.errors import EngineProtocolError

_PIECE = 256 * 1024


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

    __slots__ = ("_left", "_raw_tried", "_zlib")

    def __init__(self, limit: int) -> None:
        self._zlib = zlib.decompressobj(wbits=47)  # gzip or zlib, by its header
        self._raw_tried = False
        self._left = limit

    def decode(self, chunk: bytes) -> list[bytes]:
        """Plain bytes so far."""
        pieces: list[bytes] = []
        while chunk:
            piece = self._inflate(chunk)
            chunk = self._zlib.unconsumed_tail
            self._left -= len(piece)
            if self._left < 0:
                raise EngineProtocolError("The engine's compressed reply is over the size limit.")
            if piece:
                pieces.append(piece)
        return pieces

    def _inflate(self, chunk: bytes) -> bytes:
        first, self._raw_tried = not self._raw_tried, True
        try:
            return self._zlib.decompress(chunk, _PIECE)
        except zlib.error:
            if not first:
                raise EngineProtocolError("The engine's compressed reply is damaged.") from None
        self._zlib = zlib.decompressobj(wbits=-15)  # some servers call a bare deflate stream "deflate"
        return self._inflate(chunk)


def coding(name: str, limit: int) -> Coding:
    """The decoder for a Content-Encoding header; raises EngineProtocolError for one that we did not ask for."""
    wanted = name.strip().lower()
    if wanted in ("", "identity"):
        return Identity()
    if wanted in ("gzip", "x-gzip", "deflate"):
        return Inflate(limit)
    raise EngineProtocolError(f"The reply is compressed as {wanted[:20]!r}, which nobody asked for; check the proxy.")
