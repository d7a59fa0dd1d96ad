"""The run log: order, followers, bounds."""

from __future__ import annotations

import asyncio

import pytest

from specdemo.core.events import Failed, Finished, Side, Started, Tokens
from specdemo.core.prompt import chat
from specdemo.core.run import Probe, RunHeader, RunPlan
from specdemo.errors import EngineProtocolError, StoreError
from specdemo.runs.log import RunLog

HEADER = RunHeader("r1", 0.0, RunPlan(chat("hi")))


def token(index: int) -> Tokens:
    return Tokens(Side.STANDARD, index / 10, ids=(index,), text=f"{index} ")


async def collect(log: RunLog, start: int = 0) -> list[object]:
    return [event async for batch in log.follow(start) for event in batch]


async def test_many_followers_see_the_same() -> None:
    """Followers that begin before, during and after the run, or resume from an index, all get the events in order."""
    log = RunLog()
    early = asyncio.create_task(collect(log))
    await asyncio.sleep(0)
    log.open(HEADER)
    log.append(Started(Side.STANDARD, 0.0))
    for index in range(50):
        log.append(token(index))
        if index == 25:
            middle = asyncio.create_task(collect(log))
            await asyncio.sleep(0)
    log.append(Finished(Side.STANDARD, 6.0, "stop"))
    log.close(Probe(position=1))
    everything = list(log.since(0))

    assert everything == await early == await middle == await collect(log)
    assert everything[30:] == await collect(log, 30)
    assert await collect(log, 10_000) == []
    assert everything == await collect(log, -5)
    assert (HEADER, tuple(everything), Probe(position=1)) == (
        log.record().header,
        log.record().events,
        log.record().probe,
    )


async def test_batches_gather_what_waits() -> None:
    """A slow follower gets what has gathered as one batch, and costs the writer nothing."""
    log = RunLog()
    log.open(HEADER)
    batches = log.follow()
    log.append(token(0))
    first = await anext(batches)
    for index in range(1, 100):
        log.append(token(index))
    second = await anext(batches)

    assert (len(first), len(second)) == (1, 99)


async def test_waiting_for_header_and_end() -> None:
    """Viewers wait for the header and for the end; a run that never began says so with None."""
    log = RunLog()
    header, end = asyncio.create_task(log.opened()), asyncio.create_task(log.finished())
    await asyncio.sleep(0)
    assert not header.done()
    log.open(HEADER)
    assert await header == HEADER
    assert not end.done()
    log.close()
    await end

    never = RunLog()
    waiting = asyncio.create_task(never.opened())
    await asyncio.sleep(0)
    never.close()
    assert await waiting is None
    assert await collect(never) == []


async def test_bounds() -> None:
    """Too many events or too much text is an error for the writer, and an end still fits."""
    log = RunLog(max_events=3)
    for index in range(3):
        log.append(token(index))
    with pytest.raises(EngineProtocolError, match="more than 3 chunks"):
        log.append(token(3))
    log.append(Failed(Side.STANDARD, 1.0, "protocol", "cut"))
    assert len(log) == 4

    fat = RunLog(max_size=10)
    with pytest.raises(EngineProtocolError, match="more than 10 characters"):
        fat.append(Tokens(Side.STANDARD, 0.0, text="x" * 11))


async def test_closed_log_is_final() -> None:
    """Nothing is added after the end, closing again keeps the first probe, and an unopened log has no record."""
    log = RunLog()
    with pytest.raises(StoreError):
        log.record()
    log.open(HEADER)
    log.close(Probe(position=7))
    log.close(None)

    assert Probe(position=7) == log.probe
    with pytest.raises(StoreError):
        log.append(token(0))


async def test_recorded_log() -> None:
    """A recorded run is a closed log that gives everything at once and the same record back."""
    log = RunLog()
    log.open(HEADER)
    log.append(token(1))
    log.close()

    again = RunLog.recorded(log.record())

    assert (log.record(), log.size, True) == (again.record(), again.size, again.closed)
    assert list(log.since(0)) == await collect(again)
