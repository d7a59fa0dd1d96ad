"""The log of one run: append-only, bounded, and read by any number of followers, each at its own pace.

One writer (``race``) opens it with the header, appends events and closes it with the probe. A follower starts at any
index, gets what is there at once and the rest as it comes, and never slows the writer or another follower.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from specdemo.core.events import Event, Failed, Finished, Tokens
from specdemo.core.run import Probe, RunHeader, RunRecord
from specdemo.errors import EngineProtocolError, StoreError

MAX_EVENTS = 200_000
"""Events of one run: far above the longest output, far below what would hurt."""
MAX_SIZE = 32_000_000
"""Characters of text plus token ids of one run, both sides together."""


class RunLog:
    """Events in order of arrival, with the run's header before and its probe after them.

    Belongs to one event loop. ``append`` raises EngineProtocolError when a bound is passed; Finished and Failed always
    fit, so that a side cut off by a bound can still be closed.
    """

    def __init__(self, *, max_events: int = MAX_EVENTS, max_size: int = MAX_SIZE) -> None:
        self._events: list[Event] = []
        self._header: RunHeader | None = None
        self._probe: Probe | None = None
        self._closed = False
        self._size = 0
        self._max_events = max_events
        self._max_size = max_size
        self._news = asyncio.Event()

    @classmethod
    def recorded(cls, record: RunRecord) -> RunLog:
        """A closed log of a finished run: followers get all of it at once."""
        log = cls()
        log._header, log._probe = record.header, record.probe
        log._events.extend(record.events)
        log._size = sum(_size(event) for event in record.events)
        log._closed = True
        return log

    @property
    def header(self) -> RunHeader | None:
        """The header; None before the run was opened."""
        return self._header

    @property
    def probe(self) -> Probe | None:
        """What was asked after the streams; None before the end, or when nothing was asked."""
        return self._probe

    @property
    def closed(self) -> bool:
        """Whether nothing more will come."""
        return self._closed

    @property
    def size(self) -> int:
        """Characters of text plus token ids held: a measure of memory."""
        return self._size

    def __len__(self) -> int:
        return len(self._events)

    def since(self, index: int) -> Sequence[Event]:
        """The events from ``index`` on."""
        return self._events[index:]

    def open(self, header: RunHeader) -> None:
        """Set the header; once, before the first event."""
        self._header = header
        self._pulse()

    def append(self, event: Event) -> None:
        """Add one event and wake the followers."""
        if self._closed:
            raise StoreError("This run is over; nothing can be added to it.")
        self._size += _size(event)
        if not isinstance(event, Finished | Failed):
            if len(self._events) >= self._max_events:
                raise EngineProtocolError(
                    f"The engine sent more than {self._max_events} chunks; the run was cut there."
                )
            if self._size > self._max_size:
                raise EngineProtocolError(
                    f"The engine sent more than {self._max_size} characters and tokens; the run was cut there."
                )
        self._events.append(event)
        self._pulse()

    def close(self, probe: Probe | None = None) -> None:
        """End the run. Closing again changes nothing."""
        if not self._closed:
            self._probe = probe
            self._closed = True
            self._pulse()

    def record(self) -> RunRecord:
        """The run as kept. Raises StoreError before it was opened."""
        if self._header is None:
            raise StoreError("This run has not begun yet; there is nothing to keep.")
        return RunRecord(self._header, tuple(self._events), self._probe)

    async def opened(self) -> RunHeader | None:
        """Wait for the header; None if the run ended without one (it was stopped or refused before it began)."""
        while self._header is None and not self._closed:
            await self._news.wait()
        return self._header

    async def finished(self) -> None:
        """Wait until the log is closed."""
        while not self._closed:
            await self._news.wait()

    async def follow(self, start: int = 0) -> AsyncIterator[tuple[Event, ...]]:
        """Batches of events from ``start`` on, each never empty; ends when the log is closed and all was given."""
        index = max(0, start)
        while True:
            news = self._news
            batch = tuple(self._events[index:])
            if batch:
                index += len(batch)
                yield batch
            elif self._closed:
                return
            else:
                await news.wait()

    def _pulse(self) -> None:
        # A fresh event each time: whoever waited on the old one wakes once, and nobody has to clear it.
        self._news.set()
        self._news = asyncio.Event()


def _size(event: Event) -> int:
    return len(event.text) + len(event.reasoning) + len(event.ids) if isinstance(event, Tokens) else 0
