"""One connection to an engine: what it received, stamped when it arrived, for one reader."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import cast

import httpx

Clock = Callable[[], float]

_HIGH_WATER = 1024 * 1024
_READ_SIZE = 32 * 1024


class Link(asyncio.BufferedProtocol):
    """One connection: received pieces with their stamps, and one reader.

    Buffered, since the plain protocol makes asyncio allocate (and the kernel map) 256 KiB for every read.
    """

    def __init__(self, clock: Clock, lost: Callable[[Link], None] | None = None) -> None:
        """``lost`` is called once, when the connection is over for whatever reason."""
        self._clock = clock
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._buffer = memoryview(bytearray(_READ_SIZE))
        self._pieces: deque[tuple[float, bytes]] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None
        self._deadline: Callable[[], float] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._paused = False
        self._error: Exception | None = None
        self.transport: asyncio.Transport | None = None
        self.ended = False
        self.used = False  # has carried a request before
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        self.transport = cast("asyncio.Transport", transport)

    def get_buffer(self, _sizehint: int) -> memoryview:
        """Called by the loop: where to put what it reads."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Called by the loop: the one place where arrival is stamped."""
        self._pieces.append((self._clock(), bytes(self._buffer[:nbytes])))
        self._size += nbytes
        if (waiter := self._waiter) is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)
        if self._size > _HIGH_WATER and not self._paused and self.transport is not None:
            self._paused = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Called by the loop when the server has closed its side."""
        self.ended = True
        self._wake()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the loop at the end."""
        self.ended = True
        self._error = exc
        self._wake()
        if self._lost is not None:
            self._lost(self)

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def watch(self, deadline: Callable[[], float] | None) -> None:
        """From now on ``arrival`` fails when ``deadline()`` (loop time) has passed; call again if it moved earlier.

        One lazy timer instead of one a read: it asks for the deadline when it fires, and is set again if that moved on.
        """
        self._deadline = deadline
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if deadline is None else self._loop.call_at(deadline(), self._check)

    def arrival(self) -> asyncio.Future[None]:
        """Resolves when there is something to ``take``; fails with TimeoutError at the deadline of ``watch``."""
        waiter = self._waiter = self._loop.create_future()
        if self._timer is None and self._deadline is not None:
            self.watch(self._deadline)
        return waiter

    def take(self) -> tuple[float, bytes] | None:
        """The oldest piece with its stamp, None if there is none."""
        if not self._pieces:
            return None
        piece = self._pieces.popleft()
        self._size -= len(piece[1])
        if self._paused and self._size < _HIGH_WATER and self.transport is not None:
            self._paused = False
            self.transport.resume_reading()
        return piece

    async def read(self) -> tuple[float, bytes] | None:
        """The next piece, None at the end. Raises TimeoutError at the deadline of ``watch``."""
        while (piece := self.take()) is None:
            if self.over:
                return None
            await self.arrival()
        return piece

    @property
    def over(self) -> bool:
        """Whether nothing more can come. Raises httpx.ReadError if the connection broke."""
        if self.ended and self._error is not None and not self._pieces:
            raise httpx.ReadError(str(self._error))
        return self.ended and not self._pieces

    def _check(self) -> None:
        self._timer = None
        waiter, deadline = self._waiter, self._deadline
        if waiter is None or waiter.done() or deadline is None:
            return  # nobody waits: the next reader sets a new timer
        if self._loop.time() >= deadline():
            waiter.set_exception(TimeoutError())
        else:
            self.watch(deadline)

    @property
    def quiet(self) -> bool:
        """Open, with nothing received that nobody asked for."""
        return not self.ended and not self._pieces and self.transport is not None and not self.transport.is_closing()

    def drop(self) -> None:
        """Close at once; the engine aborts its request."""
        if self._timer is not None:
            self._timer.cancel()
        if self.transport is not None:
            self.transport.abort()
