"""Reads /metrics now and then while a stream runs."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from specdemo.core.events import CountersRead, Side, SpecCounters

Clock = Callable[[], float]
Read = Callable[[], Awaitable[SpecCounters | None]]
SHORT_WAIT_S = 0.5
"""Longest that a reading may hold up the start of a stream."""
LONG_WAIT_S = 2.0
"""The same for the last reading, where it is all that is known about acceptance."""


class CounterPoll:
    """Readings during one stream, to be taken out between its chunks.

    A standard engine has no speculative counters: after the first reading nothing more is asked of it, for a
    scrape is work for the engine too. ``read`` returns None instead of raising.
    """

    def __init__(self, side: Side, read: Read, clock: Clock, zero: float, hz: float) -> None:
        self._side = side
        self._read = read
        self._clock = clock
        self._zero = zero
        self._pause = 1 / hz if hz > 0 else None
        self._found: deque[CountersRead] = deque()
        self._task: asyncio.Task[None] | None = None

    async def once(self, wait_s: float = SHORT_WAIT_S) -> CountersRead | None:
        """One reading within ``wait_s``, None if there is none."""
        if self._pause is None:
            return None
        try:
            async with asyncio.timeout(wait_s):
                counters = await self._read()
        except TimeoutError:
            return None
        return None if counters is None else CountersRead(self._side, self._clock() - self._zero, counters)

    def start(self) -> None:
        """Read regularly from now on."""
        if self._pause is not None:
            self._task = asyncio.create_task(self._poll(self._pause))

    async def _poll(self, pause: float) -> None:
        while True:
            await asyncio.sleep(pause)
            reading = await self.once()
            if reading is not None:
                self._found.append(reading)

    @property
    def waiting(self) -> bool:
        """Whether there is something to take."""
        return bool(self._found)

    def take(self, until: float) -> list[CountersRead]:
        """Readings made no later than ``until`` (s since the run's zero), oldest first."""
        taken = []
        while self._found and self._found[0].at <= until:
            taken.append(self._found.popleft())
        return taken

    def stop(self) -> None:
        """No more readings."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
