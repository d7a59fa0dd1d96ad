"""Supervisors over fake children: what the tests of supervision share."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specdemo.core.engine import EngineSpec, EngineState, EngineStatus
from specdemo.core.events import Side
from specdemo.engines.command import TOKEN_VARIABLE
from specdemo.engines.process import Launch
from specdemo.engines.slot import Timing
from specdemo.engines.supervisor import Supervisor

PROGRAM = Path(__file__).with_name("engine_child.py")
FAST = Timing(load=60.0, loading_poll=0.01, ready_poll=0.02, silence=30.0, grace=5.0, memory_poll=0.0, warm_up=10.0)


def spec(side: Side) -> EngineSpec:
    """A spec whose command the fake launcher makes."""
    return EngineSpec(side=side, model="demo", served_name="demo", device="cpu")


def launch(port: int, *words: str, key: str | None = None, model: str = "demo") -> Launch:
    """The fake child as a Launch."""
    token = secrets.token_hex(8)
    environment = {"PATH": os.environ["PATH"], TOKEN_VARIABLE: token}
    if key is not None:
        environment["VLLM_API_KEY"] = key
    return Launch(
        words=(sys.executable, str(PROGRAM), "--port", str(port), "--model", model, *words),
        environment=environment,
        port=port,
        token=token,
        secrets=(key,) if key else (),
    )


@dataclass
class FakeEngines:
    """A launcher that gives each side its own behaviour; remembers every port it was asked for."""

    standard: tuple[str, ...] = ()
    speculative: tuple[str, ...] = ()
    before: Callable[[int], None] | None = None
    ports: list[int] = field(default_factory=list)

    def __call__(self, asked: EngineSpec, port: int) -> Launch:
        self.ports.append(port)
        if self.before is not None:
            self.before(port)
        return launch(port, *(self.standard if asked.side is Side.STANDARD else self.speculative))


@dataclass
class Sleeps:
    """An injected sleep: remembers what was asked for and ends when released."""

    asked: list[float] = field(default_factory=list)
    release: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, seconds: float) -> None:
        self.asked.append(seconds)
        await self.release.wait()


def supervisor(folder: Path, launcher: Any, **options: Any) -> Supervisor:
    """A supervisor over fake children with short waits."""
    options.setdefault("timing", FAST)
    return Supervisor(
        spec(Side.STANDARD), spec(Side.SPECULATIVE), state_dir=folder / "state", launcher=launcher, **options
    )


async def reaches(control: Supervisor, side: Side, *states: EngineState, stage: str | None = None) -> EngineStatus:
    """Wait until ``side`` is in one of ``states`` (and at ``stage``); fails with its log when that takes 30 s."""
    try:
        async with asyncio.timeout(30):
            while True:
                status = control.status(side)
                if status.state in states and (stage is None or status.stage == stage):
                    return status
                await asyncio.sleep(0.01)
    except TimeoutError:
        raise AssertionError(f"{side} is {control.status(side)}") from None
