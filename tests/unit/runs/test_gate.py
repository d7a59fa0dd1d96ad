"""Whose turn it is on the engines."""

from __future__ import annotations

import asyncio

import pytest

from specdemo.errors import UsageError
from specdemo.runs.gate import Gate, Ticket


def inside(gate: Gate, *tickets: Ticket) -> list[bool]:
    return [ticket.turn.is_set() for ticket in tickets]


def test_measurement_is_alone() -> None:
    """A measurement waits for races to end, and later races wait for it, in order of arrival."""
    gate = Gate(together=2)
    race, measure, later = gate.ticket(alone=False), gate.ticket(alone=True), gate.ticket(alone=False)

    assert inside(gate, race, measure, later) == [True, False, False]
    assert [gate.position(ticket) for ticket in (race, measure, later)] == [0, 1, 2]

    gate.leave(race)
    assert inside(gate, measure, later) == [True, False]
    gate.leave(measure)
    assert later.turn.is_set()
    assert gate.inside == 1


def test_races_share_up_to_the_limit() -> None:
    """Races run side by side up to the limit, and the next one moves up when one leaves."""
    gate = Gate(together=2)
    tickets = [gate.ticket(alone=False) for _ in range(3)]

    assert inside(gate, *tickets) == [True, True, False]
    gate.leave(tickets[0])
    gate.leave(tickets[0])
    assert tickets[2].turn.is_set()


def test_full_queue() -> None:
    """One more than may wait is refused with a sentence, and the queue stays as it was."""
    gate = Gate(waiting=1)
    gate.ticket(alone=False)
    waiting = gate.ticket(alone=False)

    with pytest.raises(UsageError, match="waiting"):
        gate.ticket(alone=False)
    assert gate.position(waiting) == 1


async def test_cancelled_waiter_gives_up_its_place() -> None:
    """Whoever stops waiting lets the next one move up."""
    gate = Gate()
    holder, leaver, third = (gate.ticket(alone=True) for _ in range(3))

    async def wait() -> None:
        async with gate.turn(leaver):
            raise AssertionError("never its turn")

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert gate.position(third) == 1
    async with gate.turn(holder):
        assert not third.turn.is_set()
    assert third.turn.is_set()
