"""One arm's turn of a benchmark: its requests in a closed loop or on a timetable, each becoming a sample."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from specdemo.bench.plan import BenchPlan
from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.sample import Place, Sample, measure
from specdemo.bench.schedule import Block, Item, Quad
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Event, Failed
from specdemo.core.prompt import Prompt
from specdemo.errors import EngineError, UsageError
from specdemo.runs.ports import Clock, Engine
from specdemo.runs.streams import closing

LOST = frozenset({"unavailable", "exited", "interrupted", "stalled", "error", "protocol"})
"""Failures after which the engine is asked whether it still lives."""

Send = Callable[[Item], Coroutine[Any, Any, None]]
Sleep = Callable[[float], Coroutine[Any, Any, None]]


class EngineLost(Exception):
    """The engine is gone; the sentence says which and why."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends a plan's requests; ``keep`` gets each sample as it is finished. ``zero`` is the session's.

    ``prompts`` are the plan's by id.
    """

    plan: BenchPlan
    keep: Callable[[Sample], None]
    clock: Clock
    sleep: Sleep
    stopped: asyncio.Event
    zero: float
    session: int
    prompts: Mapping[str, BenchPrompt]

    def now(self) -> float:
        """Seconds since the session began."""
        return self.clock() - self.zero

    async def block(self, engine: Engine, quad: Quad, block: Block, items: Sequence[Item], attempt: int) -> None:
        """One arm's turn; a stop closes what is in flight. Raises EngineLost after keeping what came through."""
        started = self.now()
        lost: list[str] = []

        async def send(item: Item) -> None:
            place = Place(
                key=item.key,
                quad=quad.id,
                slot=block.slot,
                arm=block.arm,
                kind=quad.kind,
                level=quad.level,
                workload=quad.workload,
                prompt_id=item.prompt_id,
                copy=item.copy,
                attempt=attempt,
                session=self.session,
            )
            sample = await self._request(engine, place, started + item.at if item.at is not None else None)
            if sample.failure in LOST and not await alive(engine):
                lost.append(sample.message or "it does not answer.")
                return
            self.keep(sample)

        if self.plan.rate is not None:
            work = asyncio.ensure_future(self._timetable(items, started, send, lost))
        else:
            work = asyncio.ensure_future(_loop(quad.level, items, send, lost))
        stop = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.cancel()
            if not work.done():
                work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await _as_itself(work)
        if lost:
            raise EngineLost(f"The {engine.side} engine is gone: {lost[0]}")

    async def _timetable(self, items: Sequence[Item], started: float, send: Send, lost: Sequence[str]) -> None:
        """Open mode: each request starts at its time, whatever the engine does while it lives."""
        async with asyncio.TaskGroup() as group:
            for item in items:
                wait = started + (item.at or 0.0) - self.now()
                if wait > 0.0:
                    await self.sleep(wait)
                if lost:
                    return
                group.create_task(send(item))

    async def _request(self, engine: Engine, place: Place, intended: float | None) -> Sample:
        prompt = self.prompts[place.prompt_id]
        asked = prompt.ask(prompt.within(self.plan.sampling))
        begun = self.now()
        stream: AsyncIterator[Event] = engine.stream(asked, zero=self.zero, cache_salt=secrets.token_hex(16))
        async with closing(stream) as received:
            events = [event async for event in received]
        return measure(
            place,
            engine.side,
            events,
            intended_at=begun if intended is None else intended,
            opened=self.plan.rate is not None,
        )

    async def throw_away(self, engine: Engine, prompts: Sequence[Prompt]) -> None:
        """Warm-up: all prompts at once, nothing kept. Raises EngineLost if it finds the engine gone."""

        async def drain(prompt: Prompt) -> str | None:
            async with closing(engine.stream(prompt, zero=self.zero, cache_salt=secrets.token_hex(16))) as events:
                async for event in events:
                    if isinstance(event, Failed) and event.kind in LOST:
                        return event.message
            return None

        for message in await asyncio.gather(*(drain(prompt) for prompt in prompts)):
            if message is not None and not await alive(engine):
                raise EngineLost(f"The {engine.side} engine is gone: {message}")


async def _as_itself(work: asyncio.Future[None]) -> None:
    """Wait for a group of requests; what broke it (a full disk) is raised as itself."""
    try:
        await work
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def _loop(workers: int, items: Sequence[Item], send: Send, lost: Sequence[str]) -> None:
    """Closed loop: each worker keeps exactly one request in flight."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            if lost:
                return
            await send(item)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(workers, len(items))):
            group.create_task(worker())


@runtime_checkable
class _HasHealth(Protocol):
    """An engine that tells its health: a dying one may still answer everything else for some seconds."""

    async def healthy(self) -> bool: ...


SAME = ("model", "version", "dtype", "method", "k")
"""What an engine says of itself that changes its speed or its text; times of different ones make no pairs."""


def check_same(before: Sequence[EngineFacts | None], now: Sequence[EngineFacts | None]) -> None:
    """Raise UsageError if a resumed benchmark met other engines; what either did not tell is no difference."""
    for old, new in zip(before, now, strict=True):
        for name in SAME if old is not None and new is not None else ():
            was, found = getattr(old, name), getattr(new, name)
            if was is not None and found is not None and was != found:
                side = new.side.value if new is not None else ""
                raise UsageError(
                    f"This benchmark was begun on other engines: the {side} engine's {name} was {was}, now it is "
                    f"{found}; start a new one."
                )


async def alive(engine: Engine) -> bool:
    """Whether the engine still answers, and does not call itself unhealthy."""
    try:
        await engine.facts()
    except EngineError:
        return False
    return await engine.healthy() if isinstance(engine, _HasHealth) else True
