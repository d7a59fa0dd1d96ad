"""An engine in virtual time that keeps the promises of runs.ports.Engine: speed, drafts, load and death as told."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from specdemo.core.engine import EngineFacts
from specdemo.core.events import (
    Event,
    Failed,
    FailureKind,
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
from specdemo.errors import EngineUnavailable
from specdemo.runs.ports import ScoredToken
from tests.fakes.virtual_time import clock


@dataclass
class SimEngine:
    """``step_s`` a step, ``burst`` tokens a step (1 is a standard engine), ``load_cost`` more time per other request.

    ``ids`` may change what a prompt is answered with; ``fate`` may name a failure for the n-th request (from 0);
    after "exited" the engine is dead until ``dead`` is reset.
    """

    side: Side
    step_s: float = 0.02
    first_s: float = 0.1
    burst: int = 1
    load_cost: float = 0.0
    ids: Callable[[Prompt, list[int]], list[int]] = lambda prompt, ids: ids
    fate: Callable[[int], FailureKind | None] = lambda n: None
    best: Sequence[TopToken] = ()
    model: str = "sim"
    dead: bool = False
    open: int = 0
    most_open: int = 0
    asked: list[Prompt] = field(default_factory=list)
    salts: list[str | None] = field(default_factory=list)
    closed_early: int = 0

    async def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        turn = len(self.asked)
        self.asked.append(prompt)
        self.salts.append(cache_salt)
        yield Started(self.side, clock() - zero)
        if self.dead:
            yield Failed(self.side, clock() - zero, "unavailable", "Nobody answers.")
            return
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        ended = False
        try:
            async for event in self._answer(prompt, zero, self.fate(turn)):
                ended = isinstance(event, Finished | Failed)
                yield event
        finally:
            self.open -= 1
            self.closed_early += not ended

    async def _answer(self, prompt: Prompt, zero: float, fate: FailureKind | None) -> AsyncIterator[Event]:
        if fate == "rejected":
            yield Failed(self.side, clock() - zero, "rejected", "Too busy.")
            return
        count = prompt.sampling.max_tokens
        start = zlib.crc32(repr((prompt.messages, prompt.text)).encode()) % 1000
        ids = self.ids(prompt, [start + i for i in range(count)])
        await asyncio.sleep(self.first_s)
        yield Tokens(self.side, clock() - zero, tuple(ids[:1]), "x")
        at, accepted, drafted = 1, [], []
        while at < len(ids):
            await asyncio.sleep(self.step_s * (1 + self.load_cost * (self.open - 1)))
            if fate is not None and at > count // 2:
                self.dead = fate == "exited"
                yield Failed(self.side, clock() - zero, fate, "The engine process ended.")
                return
            piece = ids[at : at + self.burst]
            at += len(piece)
            if self.burst > 1:
                accepted.append(min(self.burst - 1, len(piece)))
                drafted.append(self.burst - 1)
            yield Tokens(self.side, clock() - zero, tuple(piece), "x" * len(piece))
        speculation = None
        if self.side is Side.SPECULATIVE:
            lists = (tuple(accepted), tuple(drafted)) if accepted else (None, None)
            speculation = RequestSpeculation(len(accepted), sum(drafted), sum(accepted), 4, None, *lists)
        usage = Usage(20, len(ids))
        yield Finished(self.side, clock() - zero, "length", None, usage, speculation, None, tuple(range(20)))

    async def facts(self) -> EngineFacts:
        if self.dead:
            raise EngineUnavailable(f"The {self.side} engine does not answer.")
        return EngineFacts(self.side, self.model, "0.32.0", 2048, self.side is Side.SPECULATIVE, dtype="float32")

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        return tuple(range(20))

    async def counters(self) -> SpecCounters | None:
        return None

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        if self.best:
            return tuple(self.best)
        return tuple(TopToken(token, f"t{token}", -0.5 - 0.0001 * rank) for rank, token in enumerate(wanted))

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        raise NotImplementedError


def pair(**speculative: object) -> dict[Side, SimEngine]:
    """A standard engine at 20 ms a token, and a speculative one with three tokens in 30 ms unless told otherwise."""
    told: dict[str, object] = {"step_s": 0.03, "burst": 3, **speculative}
    return {Side.STANDARD: SimEngine(Side.STANDARD), Side.SPECULATIVE: SimEngine(Side.SPECULATIVE, **told)}  # type: ignore[arg-type]
