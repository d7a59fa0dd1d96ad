"""The engines of a running ``specdemo serve``, told to other commands of the same user by a small file.

The file holds addresses on loopback, engine specs and the process id, no secret. It is believed only while that
process lives, and the engines must answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from specdemo.compose.attached import limits
from specdemo.compose.managed import ManagedPair, SpecPair, completed
from specdemo.compose.texts import token_texts
from specdemo.core.codec import decode, encode
from specdemo.core.engine import EngineFacts, EngineSpec, EngineStatus
from specdemo.core.events import SIDES, Side
from specdemo.engines.attached import AttachedControl, Target
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from specdemo.engines.probe import Probe
from specdemo.runs.ports import Engine
from specdemo.settings import Settings

NAME = "running.json"
_EVERY_S = 0.5


@dataclass(frozen=True, slots=True)
class Running:
    """One running serve: its process, and its engines, standard first: address, spec, whether sampling is repaired."""

    pid: int
    started: float
    addresses: tuple[str, str]
    specs: SpecPair
    repaired: tuple[bool, bool] = (False, False)


def find_running(data: Path) -> Running | None:
    """What the file tells, if its process lives; None otherwise, whatever is in the file."""
    try:
        told = json.loads((data / NAME).read_text(encoding="utf-8"))
        first, second = (decode(EngineSpec, spec) for spec in told["specs"])
        left, right = (str(address) for address in told["addresses"])
        mended = (told["repaired"][0] is True, told["repaired"][1] is True)
        running = Running(int(told["pid"]), float(told["started"]), (left, right), (first, second), mended)
        alive = abs(psutil.Process(running.pid).create_time() - running.started) < 1.0
    except (OSError, ValueError, KeyError, TypeError, psutil.Error):
        return None
    local = all(address.startswith("http://127.0.0.1:") for address in running.addresses)
    return running if alive and local else None


@asynccontextmanager
async def open_running(
    running: Running, settings: Settings
) -> AsyncIterator[tuple[Mapping[Side, Engine], AttachedControl]]:
    """Clients for them, as if attached, but knowing their specs."""
    async with AsyncExitStack() as stack:
        engines: dict[Side, Engine] = {}
        targets = []
        for side, address, spec, mended in zip(SIDES, running.addresses, running.specs, running.repaired, strict=True):
            engine = _Known(side, address, spec, limits(settings), repaired=mended)
            stack.push_async_callback(engine.aclose)
            engines[side] = engine
            targets.append(Target(side, address, Probe(address), spec.served_name))
        control = AttachedControl(*targets)
        stack.push_async_callback(control.aclose)
        await control.open()
        yield engines, control


async def running_statuses(data: Path, settings: Settings) -> tuple[EngineStatus, ...]:
    """How the engines of a running serve are; none when there is no such process."""
    running = find_running(data)
    if running is None:
        return ()
    async with open_running(running, settings) as (_, control):
        return control.statuses()


class _Known(VllmEngine):
    """A client that knows what its engine was started with."""

    def __init__(self, side: Side, address: str, spec: EngineSpec, limits: Limits, *, repaired: bool) -> None:
        texts = token_texts(spec.model)
        super().__init__(side, address, model=spec.served_name, spec=spec, limits=limits, splitter=texts)
        self._repaired = repaired

    async def facts(self) -> EngineFacts:
        """As the engine says, completed by how it was started."""
        return completed(await super().facts(), repaired=self._repaired)


@asynccontextmanager
async def keep_announced(pair: ManagedPair, data: Path) -> AsyncIterator[None]:
    """Tell other commands about our engines while they are ready, and no longer."""
    task = asyncio.create_task(_announce(pair, data / NAME), name="announce engines")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        _withdraw(data / NAME)


async def _announce(pair: ManagedPair, path: Path) -> None:
    told: dict[str, Any] | None = None
    started = psutil.Process().create_time()
    while True:
        addresses, specs = [pair.base_url(side) for side in SIDES], pair.specs
        now = None
        if specs is not None and all(addresses):
            now = {
                "pid": os.getpid(),
                "started": started,
                "addresses": addresses,
                "specs": [encode(spec) for spec in specs],
                "repaired": [pair.repaired(side) for side in SIDES],
            }
        if now != told:
            told = now
            if now is None:
                _withdraw(path)
            else:
                with contextlib.suppress(OSError):  # without the file other commands start engines of their own
                    _write(path, now)
        await asyncio.sleep(_EVERY_S)


def _write(path: Path, told: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(told, file)
    fresh.replace(path)


def _withdraw(path: Path) -> None:
    """Remove the file if it is ours: another serve may have written its own meanwhile."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        if json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid():
            path.unlink()
