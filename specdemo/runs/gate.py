"""Whose turn it is on the engines: a measurement alone, races side by side up to a limit, first come first served."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from specdemo.errors import UsageError


@dataclass(eq=False, slots=True)
class Ticket:
    """A place in the queue. ``alone`` shares the engines with nobody."""

    alone: bool
    turn: asyncio.Event = field(default_factory=asyncio.Event)


class Gate:
    """First come, first served, so that neither a measurement nor a race can starve."""

    def __init__(self, *, together: int = 1, waiting: int = 32) -> None:
        self._together = together
        self._most_waiting = waiting
        self._queue: list[Ticket] = []
        self._inside: list[Ticket] = []

    @property
    def inside(self) -> int:
        """How many run now."""
        return len(self._inside)

    @property
    def idle(self) -> bool:
        """Whether nobody runs and nobody waits."""
        return not self._inside and not self._queue

    def position(self, ticket: Ticket) -> int:
        """How many of the queue come before this one, plus one; 0 once it is inside or gone."""
        return self._queue.index(ticket) + 1 if ticket in self._queue else 0

    def ticket(self, *, alone: bool) -> Ticket:
        """Queue up. Raises UsageError when the queue is full."""
        ticket = Ticket(alone)
        self._queue.append(ticket)
        self._let_in()
        if len(self._queue) > self._most_waiting:
            self._queue.remove(ticket)
            raise UsageError(f"{self._most_waiting} runs are waiting for the engines already; try again in a moment.")
        return ticket

    @asynccontextmanager
    async def turn(self, ticket: Ticket) -> AsyncIterator[None]:
        """Wait for the turn, hold it for the block, and hand it on; a cancelled wait gives up the place."""
        try:
            await ticket.turn.wait()
            yield
        finally:
            self.leave(ticket)

    def leave(self, ticket: Ticket) -> None:
        """Give up the turn or the place in the queue; again is harmless."""
        for place in (self._queue, self._inside):
            if ticket in place:
                place.remove(ticket)
        self._let_in()

    def _let_in(self) -> None:
        while self._queue and self._fits(self._queue[0]):
            ticket = self._queue.pop(0)
            self._inside.append(ticket)
            ticket.turn.set()

    def _fits(self, ticket: Ticket) -> bool:
        if not self._inside:
            return True
        return not ticket.alone and not self._inside[0].alone and len(self._inside) < self._together
