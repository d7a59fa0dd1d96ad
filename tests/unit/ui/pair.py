"""Two engines inside the test's own process: they say what they are told, at the pace they are told, and know if they were cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace

from specdemo.core.engine import EngineFacts, EngineState, EngineStatus
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
from specdemo.runs.ports import ScoredToken
from specdemo.runs.registry import Bounds, Registry
from specdemo.ui.services import Services


@dataclass
class ScriptedEngine:
    """Bursts of (token id, text). ``gate`` holds the stream after each burst until it is set; None never holds."""

    side: Side
    bursts: Sequence[Sequence[tuple[int, str]]]
    model: str = "scripted"
    pause: float = 0.0
    gate: asyncio.Event | None = None
    fail_after: int | None = None
    method: str = "ngram"
    k: int = 4
    open_streams: int = 0
    asked: list[Prompt] = field(default_factory=list)

    async def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        clock = asyncio.get_running_loop().time
        self.asked.append(prompt)
        self.open_streams += 1
        try:
            yield Started(self.side, clock() - zero)
            for number, burst in enumerate(self.bursts):
                if self.fail_after == number:
                    yield Failed(self.side, clock() - zero, "interrupted", "The engine closed the stream.")
                    return
                await asyncio.sleep(self.pause)
                yield Tokens(
                    self.side,
                    clock() - zero,
                    ids=tuple(token for token, _ in burst),
                    text="".join(text for _, text in burst),
                    pieces=tuple(text for _, text in burst),
                )
                if self.gate is not None and not prompt.sampling.ignore_eos:  # warm-ups ignore the end token
                    await self.gate.wait()
            count = sum(len(burst) for burst in self.bursts)
            yield Finished(self.side, clock() - zero, "stop", usage=Usage(7, count), speculation=self._account())
        finally:
            self.open_streams -= 1

    def _account(self) -> RequestSpeculation | None:
        if self.side is Side.STANDARD:
            return None
        later = [len(burst) for burst in self.bursts[1:]]
        taken = tuple(size - 1 for size in later)
        return RequestSpeculation(
            steps=len(later), drafted=self.k * len(later), accepted=sum(taken), max_draft=self.k,
            accepted_per_step=taken, drafted_per_step=(self.k,) * len(later),
        )  # fmt: skip

    async def facts(self) -> EngineFacts:
        speculating = self.side is Side.SPECULATIVE
        return EngineFacts(
            side=self.side, model=self.model, version="0.32.0", max_model_len=2048, speculating=speculating,
            method=self.method if speculating else None, k=self.k if speculating else None, device_key="cpu:0-1@host",
        )  # fmt: skip

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        return (1, 2, 3, 4, 5, 6, 7)

    async def counters(self) -> SpecCounters | None:
        return None

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        return ()

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        return ()


class Control:
    """An EngineControl whose states are set by the test; commands are written down."""

    def __init__(
        self, state: EngineState = EngineState.READY, *, eta_s: float | None = None, managed: bool = True
    ) -> None:
        self.states = dict.fromkeys(Side, state)
        self.eta_s = eta_s
        self.managed = managed
        self.commands: list[tuple[str, Side]] = []
        self.says = ""

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        first, second = (
            EngineStatus(
                side=side, state=self.states[side], managed=self.managed, stage="loading weights", seconds=3.0,
                eta_s=self.eta_s, model="scripted", method="ngram" if side is Side.SPECULATIVE else None,
                k=4 if side is Side.SPECULATIVE else None, version="0.32.0", pid=904711409, memory_bytes=3 * 2**30,
                command="vllm serve scripted", log_tail=("loading <weights>", "10 %"), base_url="http://127.0.0.1:9",
            )
            for side in Side
        )  # fmt: skip
        if self.says:
            words: dict[str, str] = dict.fromkeys(
                ("stage", "model", "method", "version", "command", "last_line"), self.says
            )
            first, second = (replace(status, log_tail=(self.says,), **words) for status in (first, second))  # type: ignore[arg-type]
        return first, second

    async def start(self, side: Side) -> None:
        self.commands.append(("start", side))

    async def stop(self, side: Side) -> None:
        self.commands.append(("stop", side))

    async def restart(self, side: Side) -> None:
        self.commands.append(("restart", side))


WORDS = [(i, f" w{i}") for i in range(1, 61)]


def bursts(side: Side, words: Sequence[tuple[int, str]] = WORDS) -> list[list[tuple[int, str]]]:
    """One token a step for the standard engine, up to four for the speculative one."""
    if side is Side.STANDARD:
        return [[word] for word in words]
    return [list(words[:1]), *[list(words[i : i + 4]) for i in range(1, len(words), 4)]]


@dataclass
class World:
    """A page's services over two scripted engines."""

    services: Services
    engines: dict[Side, ScriptedEngine]
    control: Control


def world(
    *, pause: float = 0.0, gate: asyncio.Event | None = None, control: Control | None = None, **more: object
) -> World:
    """A ready pair, and services that know it. ``more`` goes to Services."""
    engines = {side: ScriptedEngine(side, bursts(side), pause=pause, gate=gate) for side in Side}
    registry = Registry(lambda: engines, bounds=Bounds(max_tokens=2048, prompt_chars=32_000))
    held = control or Control()
    return World(Services(registry=registry, mode="managed", control=held, **more), engines, held)  # type: ignore[arg-type]
