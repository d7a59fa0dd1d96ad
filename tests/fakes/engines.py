"""An engine in this process, for tests of the use cases: it says what it is told to, when it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specdemo.core.engine import EngineFacts
from specdemo.core.events import (
    Event,
    Failed,
    Finished,
    RequestSpeculation,
    Side,
    SpecCounters,
    Started,
    Tokens,
    TopToken,
    Usage,
)
from specdemo.core.prompt import Prompt
from specdemo.errors import EngineError
from specdemo.runs.ports import ScoredToken

PROMPT_IDS = (1, 2, 3)


class Ticks:
    """A clock that moves by ``step`` seconds each time it is read."""

    def __init__(self, step: float = 0.01) -> None:
        self.now, self.step = 100.0, step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


@dataclass
class FakeEngine:
    """Fulfils runs.ports.Engine. ``bursts`` are the ids of each chunk; ``failure`` comes instead of the end.

    ``hold`` is awaited before chunk number ``hold_at``. ``journal`` is shared to see the order of calls across engines.
    """

    side: Side
    bursts: Sequence[Sequence[int]] = ((10,), (11,), (12,))
    failure: tuple[Any, str] | None = None
    finish_reason: str = "stop"
    prompt_ids: Sequence[int] | None = PROMPT_IDS
    known: EngineFacts | None = None
    clock: Any = field(default_factory=Ticks)
    hold: asyncio.Event | None = None
    hold_at: int = 1
    best: Sequence[TopToken] | EngineError = ()
    scores: Sequence[ScoredToken] | EngineError = ()
    tail: Sequence[Event] = ()
    journal: list[str] = field(default_factory=list)
    epoch: float | None = 1.0
    broken: Exception | None = None
    prompts: list[Prompt] = field(default_factory=list)
    salts: list[str | None] = field(default_factory=list)
    asked: list[tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=list)
    open_streams: int = 0
    most_open: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def model(self) -> str:
        return "fake"

    async def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        self.prompts.append(prompt)
        self.salts.append(cache_salt)
        self.journal.append(f"{self.side} opens")
        self.open_streams += 1
        self.most_open = max(self.most_open, self.open_streams)
        try:
            async for event in self._events(zero):
                yield event
        finally:
            await asyncio.sleep(0)  # closing a socket takes the loop a turn
            self.open_streams -= 1
            self.journal.append(f"{self.side} closes")

    async def _events(self, zero: float) -> AsyncIterator[Event]:
        yield Started(self.side, self.clock() - zero)
        self.started.set()
        for index, ids in enumerate(self.bursts):
            if self.hold is not None and index == self.hold_at:
                await self.hold.wait()
            await asyncio.sleep(0)
            text = "".join(f"<{token}>" for token in ids)
            yield Tokens(self.side, self.clock() - zero, ids=tuple(ids), text=text)
        if self.broken is not None:
            raise self.broken
        now = self.clock() - zero
        if self.failure is not None:
            yield Failed(self.side, now, *self.failure)
            return
        count = sum(len(ids) for ids in self.bursts)
        for event in self.tail:
            yield replace(event, at=now)
        if not self.tail:
            yield Finished(
                self.side,
                now,
                self.finish_reason,
                usage=Usage(len(self.prompt_ids or ()), count),
                speculation=self._speculation(),
                prompt_token_ids=tuple(self.prompt_ids) if self.prompt_ids is not None else None,
            )

    def _speculation(self) -> RequestSpeculation | None:
        accepted = tuple(len(ids) - 1 for ids in self.bursts if len(ids) > 1)
        if not accepted:
            return None
        return RequestSpeculation(
            len(accepted), 4 * len(accepted), sum(accepted), 4, None, accepted, (4,) * len(accepted)
        )

    async def facts(self) -> EngineFacts:
        if self.known is None:
            raise EngineError("nobody answers")
        return self.known

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        return tuple(self.prompt_ids) if self.prompt_ids is not None else None

    async def counters(self) -> SpecCounters | None:
        return SpecCounters(epoch=self.epoch)

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        self.asked.append((tuple(token_ids), tuple(wanted)))
        if isinstance(self.best, EngineError):
            raise self.best
        return tuple(self.best)

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        self.asked.append((tuple(prompt_ids), tuple(output_ids)))
        if isinstance(self.scores, EngineError):
            raise self.scores
        return tuple(self.scores)


def facts(side: Side, **more: Any) -> EngineFacts:
    """An engine that says the usual things of itself."""
    usual: dict[str, Any] = {"model": "fake", "version": "0.32.0", "max_model_len": 4096, "dtype": "float32"}
    if side is Side.SPECULATIVE:
        usual |= {"speculating": True, "method": "ngram", "k": 4}
    else:
        usual |= {"speculating": False}
    return EngineFacts(side, **(usual | more))


def pair(**both: Any) -> dict[Side, FakeEngine]:
    """Two engines that agree; the speculative one delivers a burst."""
    journal: list[str] = []
    clock = Ticks()
    common = {"journal": journal, "clock": clock, **both}
    standard = {"known": facts(Side.STANDARD)} | common
    speculative = {"known": facts(Side.SPECULATIVE), "bursts": ((10,), (11, 12))} | common
    return {
        Side.STANDARD: FakeEngine(Side.STANDARD, **standard),
        Side.SPECULATIVE: FakeEngine(Side.SPECULATIVE, **speculative),
    }
