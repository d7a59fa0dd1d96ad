"""What should be running: two engines, started in order or together, kept alive, and taken down without a trace.

Fulfils ``runs.ports.EngineControl``. Use it as an async context manager, or call ``open`` and ``aclose``. An
interpreter exit on any other path still kills the children (atexit); what that misses, ``orphans`` finds next time.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import secrets
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from specdemo.core.engine import EngineSpec, EngineState, EngineStatus
from specdemo.core.events import SIDES, Side
from specdemo.engines import orphans
from specdemo.engines.backoff import Backoff
from specdemo.engines.command import argv, environment
from specdemo.engines.drafts import check_spec, package_beside
from specdemo.engines.ledger import Ledger, start_key
from specdemo.engines.process import Launch
from specdemo.engines.safety import repaired
from specdemo.engines.slot import EngineSlot, Launcher, Surroundings, Timing
from specdemo.errors import ConfigError, EngineUnavailable

_log = logging.getLogger(__name__)

_SETTLED = (EngineState.READY, EngineState.FAILED, EngineState.DEAD, EngineState.STOPPED)


def vllm_launcher(python: Path, *, version: str | None = None, api_key: str | None = None) -> Launcher:
    """The launcher for real engines: checks the spec, then builds its command line and environment.

    ``version`` is the engine environment's vLLM, for rules that depend on it.
    """

    def launch(spec: EngineSpec, port: int) -> Launch:
        check_spec(spec, version=version, has_package=partial(package_beside, python))
        token = secrets.token_hex(16)
        return Launch(
            words=tuple(argv(spec, python=python, port=port)),
            environment=environment(spec, python=python, inherited=os.environ, token=token, api_key=api_key),
            port=port,
            token=token,
            secrets=tuple(word for word in (api_key, os.environ.get("HF_TOKEN")) if word),
        )

    return launch


class Supervisor:
    """Two engines under control. All methods belong to one event loop; ``statuses`` may be called from anywhere.

    ``parallel`` starts both at once (see benchmarks/results for when that is faster); engines that share a GPU must
    start one after the other, since each measures the free memory while it loads.
    """

    def __init__(
        self,
        standard: EngineSpec,
        speculative: EngineSpec,
        *,
        state_dir: Path,
        launcher: Launcher,
        parallel: bool = True,
        timing: Timing | None = None,
        backoff: Callable[[], Backoff] = Backoff,
        ports: Mapping[Side, int] | None = None,
        version: str | None = None,
        api_key: str | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        if (standard.side, speculative.side) != SIDES:
            raise ConfigError("A supervisor needs one spec for the standard and one for the speculative engine.")
        self.ledger = Ledger(state_dir)
        self.version = version
        self.api_key = api_key
        self._orphans: tuple[orphans.Orphan, ...] = ()
        self._key = partial(start_key, version=version, parallel=parallel)
        around = Surroundings(
            launcher=launcher,
            ledger=self.ledger,
            log_dir=state_dir / "logs",
            timing=timing or Timing(),
            clock=clock,
            sleep=sleep,
            gate=None if parallel else asyncio.Lock(),
            key=self._key,
            api_key=api_key,
        )
        self._slots = {
            spec.side: EngineSlot(spec, around, fixed_port=(ports or {}).get(spec.side), backoff=backoff())
            for spec in (standard, speculative)
        }
        self._open = False

    async def open(self) -> None:
        """Take the lock of the state folder and look for engines of a crashed earlier run.

        Raises ConfigError when another specdemo runs its engines from this folder.
        """
        if self._open:
            return
        await asyncio.to_thread(self.ledger.acquire)
        self._open = True
        atexit.register(self._last_resort)
        self._orphans = await asyncio.to_thread(orphans.find, self.ledger.folder)
        for orphan in self._orphans:
            _log.warning("found a %s; `specdemo doctor` tells how to remove it", orphan)

    async def aclose(self) -> None:
        """Stop both and give the lock back. Safe to call twice."""
        if not self._open:
            return
        await self.stop_all()
        self._open = False
        atexit.unregister(self._last_resort)
        self.ledger.release()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def start_all(self) -> None:
        """Want both running; returns at once, loading goes on behind it."""
        for side in SIDES:
            await self.start(side)

    async def stop_all(self) -> None:
        """Both process groups are gone when this returns, even if it is cancelled meanwhile."""
        stopping = asyncio.gather(*(slot.stop() for slot in self._slots.values()))
        try:
            await asyncio.shield(stopping)
        except asyncio.CancelledError:
            await stopping
            raise

    async def start(self, side: Side) -> None:
        await self.open()
        self._slots[side].start()

    async def stop(self, side: Side) -> None:
        await self._slots[side].stop()

    async def restart(self, side: Side) -> None:
        """Stop if need be, then start with a fresh count of restarts."""
        await self.stop(side)
        await self.start(side)

    async def reconfigure(self, spec: EngineSpec) -> None:
        """Restart one engine as another spec of its side; the other engine is not touched."""
        slot = self._slots[spec.side]
        await slot.stop()
        slot.spec = spec
        await self.start(spec.side)

    def expected_seconds(self, spec: EngineSpec) -> float | None:
        """Median seconds to ready of earlier starts of this spec here; None if it never was."""
        return self.ledger.expected_seconds(self._key(spec))

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        """Standard first. Never blocks."""
        return self._slots[Side.STANDARD].status(), self._slots[Side.SPECULATIVE].status()

    def status(self, side: Side) -> EngineStatus:
        return self._slots[side].status()

    def spec(self, side: Side) -> EngineSpec:
        return self._slots[side].spec

    def base_url(self, side: Side) -> str | None:
        """``http://127.0.0.1:port`` of a ready engine, else None. It changes with a restart."""
        return self._slots[side].base_url

    def repaired(self, side: Side) -> bool:
        """Whether this engine runs with the CPU sampling repair, so that temperature > 0 is right with speculation."""
        return self._slots[side].repaired and repaired(self.spec(side), self.status(side).version or self.version)

    @property
    def found_orphans(self) -> tuple[orphans.Orphan, ...]:
        """Engines of a crashed earlier run, as found at ``open``."""
        return self._orphans

    async def remove_orphans(self) -> int:
        """End them; returns how many processes ended."""
        found, self._orphans = self._orphans, ()
        return await asyncio.to_thread(orphans.remove, self.ledger.folder, found)

    async def wait_ready(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - promised to callers
        """Until both are ready. Raises EngineUnavailable with the first failure's sentence, or when time is up."""
        try:
            await asyncio.wait_for(self._until_settled(), timeout)
        except TimeoutError:
            waiting = [status for status in self.statuses() if status.state is not EngineState.READY]
            names = " and ".join(f"{status.side.value} ({status.stage or status.state.value})" for status in waiting)
            raise EngineUnavailable(f"Not ready after {timeout:g} s: {names}.") from None
        for status in self.statuses():
            if status.state is not EngineState.READY:
                raise EngineUnavailable(status.error or f"The {status.side.value} engine is {status.state.value}.")

    async def _until_settled(self) -> None:
        slots = tuple(self._slots.values())
        while any(slot.state not in _SETTLED for slot in slots):
            waits = [asyncio.create_task(slot.changed.wait()) for slot in slots if slot.state not in _SETTLED]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
            for slot in slots:
                slot.changed.clear()

    def _last_resort(self) -> None:
        for slot in self._slots.values():
            slot.kill_now()


@contextlib.contextmanager
def ends_on_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP cancel the current task, so that ``async with Supervisor`` cleans up before the process ends.

    SIGINT does so by itself under ``asyncio.run``. A web server that sets its own handlers keeps them: only signals
    that would end the process at once are taken over. Works in the main thread alone, elsewhere it does nothing.
    """
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    taken: list[signal.Signals] = []
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):  # Windows has no SIGHUP
        if task is None or signal.getsignal(number) is not signal.SIG_DFL:
            continue
        with contextlib.suppress(RuntimeError, ValueError, NotImplementedError):
            loop.add_signal_handler(number, task.cancel)
            taken.append(number)
    try:
        yield
    finally:
        for number in taken:
            loop.remove_signal_handler(number)
