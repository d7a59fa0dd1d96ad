"""One side of a supervised pair: its wanted state, its child, and the loop that brings the two together.

    wanted ─► (wait for the turn) ─► LOADING ─► READY ─► (child gone or unhealthy) DEAD ─► backoff ─► LOADING …
                                       └─► FAILED: never became ready; trying again would end the same way

The loop is the only one that changes the state. Everything shown is copied from here by ``status``.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from specdemo.core.engine import EngineSpec, EngineState, EngineStatus
from specdemo.core.events import Side
from specdemo.core.sentences import sentence
from specdemo.engines.backoff import Backoff
from specdemo.engines.command import display
from specdemo.engines.diagnosis import exit_sentence
from specdemo.engines.ledger import ChildRecord, Ledger
from specdemo.engines.ports import HOST, PortReservation, PortTakenError
from specdemo.engines.probe import Probe
from specdemo.engines.process import EngineProcess, Launch
from specdemo.errors import EngineExited, EngineUnavailable, SpecDemoError

_LAST_WORDS_S = 5.0  # from the first sign of a death to the process being gone, so that its own reason is shown


@dataclass(frozen=True, slots=True)
class Timing:
    """All waits, in seconds. ``load`` limits launch to ready; ``silence`` is how long a busy engine may not answer."""

    load: float = 600.0
    loading_poll: float = 0.25
    ready_poll: float = 1.0
    silence: float = 30.0
    grace: float = 10.0
    memory_poll: float = 3.0
    warm_up: float = 180.0


class Launcher(Protocol):
    """Makes the command of one start: (spec, port) → Launch. Raises SpecDemoError if it cannot work."""

    def __call__(self, spec: EngineSpec, port: int) -> Launch: ...


@dataclass(slots=True)
class Surroundings:
    """What a slot is given by its supervisor."""

    launcher: Launcher
    ledger: Ledger
    log_dir: Path
    timing: Timing
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    gate: asyncio.Lock | None  # held while loading when engines start one after the other
    key: Callable[[EngineSpec], str]
    api_key: str | None = None
    port_attempts: int = 4


@dataclass(slots=True)
class EngineSlot:
    """One engine. ``fixed_port`` None lets the slot draw a free one at each start."""

    spec: EngineSpec
    around: Surroundings
    fixed_port: int | None = None
    backoff: Backoff = field(default_factory=Backoff)
    state: EngineState = EngineState.STOPPED
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    process: EngineProcess | None = None
    _since: float = 0.0
    _stage: str = ""
    _error: str | None = None
    _version: str | None = None
    _command: str | None = None
    _memory: int | None = None
    _restarts: int = 0
    _eta_total: float | None = None
    _task: asyncio.Task[None] | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def side(self) -> Side:
        return self.spec.side

    @property
    def base_url(self) -> str | None:
        """``http://127.0.0.1:port`` while the engine is ready."""
        if self.state is EngineState.READY and self.process is not None:
            return f"http://{HOST}:{self.process.launch.port}"
        return None

    @property
    def repaired(self) -> bool:
        """Whether the engine itself said that the CPU sampling repair is in place."""
        return self.process is not None and self.process.view.repaired

    def status(self) -> EngineStatus:
        """A snapshot; never blocks."""
        view = self.process.view if self.process is not None else None
        seconds = max(0.0, self.around.clock() - self._since)
        loading = self.state is EngineState.LOADING
        log_stage = view.stage if view is not None and loading and not self._stage else self._stage
        speculation = self.spec.speculation
        return EngineStatus(
            side=self.side,
            state=self.state,
            managed=True,
            stage=log_stage,
            seconds=seconds,
            fraction=view.fraction if view is not None and loading and not self._stage else None,
            eta_s=max(0.0, self._eta_total - seconds) if loading and self._eta_total is not None else None,
            last_line=view.last_line if view is not None else "",
            log_tail=tuple(view.tail) if view is not None else (),
            error=self._error,
            base_url=self.base_url,
            model=self.spec.served_name,
            method=speculation.method if speculation is not None else None,
            k=speculation.k if speculation is not None else None,
            version=self._version,
            pid=self.process.pid if self.process is not None and self.process.alive else None,
            memory_bytes=self._memory,
            restarts=self._restarts,
            command=self._command,
        )

    def start(self) -> None:
        """Want it running: at once if a restart is being delayed. Does nothing if it runs or loads."""
        self._wake.set()
        if self._task is None or self._task.done():
            self.backoff.reset()
            self._error, self._restarts = None, 0
            self._set(EngineState.WAITING)
            self._task = asyncio.create_task(self._run(), name=f"{self.side} engine")

    async def stop(self) -> None:
        """Want it stopped; returns when its whole process group is gone."""
        if self._task is not None and not self._task.done():
            self._set(EngineState.STOPPING)
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({self._task})
        self._task = None
        self._error, self._memory = None, None
        self._set(EngineState.STOPPED)

    def kill_now(self) -> None:
        """Last resort without a loop (interpreter exit)."""
        if self.process is not None:
            self.process.kill_now()

    def _set(self, state: EngineState, stage: str = "") -> None:
        if state is not self.state:
            self._since = self.around.clock()
        self.state, self._stage = state, stage
        self.changed.set()

    async def _run(self) -> None:
        try:
            while await self._one_life():
                self._restarts += 1
        except SpecDemoError as error:
            self._error = str(error)
            self._set(EngineState.FAILED)
        except OSError as error:  # no file handles, no disk, no processes left
            self._error = f"The {self.side.value} engine could not be started: {error.strerror or error}."
            self._set(EngineState.FAILED)
        finally:
            await self._remove()

    async def _one_life(self) -> bool:
        """Load, watch until death, wait; False when it shall not be started again by itself."""
        await self._load_in_turn()
        self._error = await self._watch()
        self._memory = None
        delay = self.backoff.next_delay(self.around.clock())
        if delay is None:
            self._set(EngineState.DEAD, "died too often; start it again by hand")
            return False
        self._set(EngineState.DEAD, f"starts again in {delay:g} s")
        await self._remove()
        await self._pause(delay)
        return True

    async def _pause(self, delay: float) -> None:
        """The delay before a restart, cut short when a person asks for the start."""
        self._wake.clear()
        waits = {asyncio.ensure_future(self.around.sleep(delay)), asyncio.ensure_future(self._wake.wait())}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _load_in_turn(self) -> None:
        gate = self.around.gate
        if gate is None:
            await self._load()
            return
        if gate.locked():
            self._set(EngineState.WAITING, "waits until the other engine has loaded")
        async with gate:
            await self._load()

    async def _load(self) -> None:
        """From nothing to READY. Raises SpecDemoError if it never becomes ready; the child is gone then."""
        key = self.around.key(self.spec)
        self._eta_total = self.around.ledger.expected_seconds(key)
        began = self.around.clock()
        self._set(EngineState.LOADING)
        for attempt in range(self.around.port_attempts):
            reservation = PortReservation(self.fixed_port)
            try:
                await self._launch(reservation.port)
                await self._until_ready(began)
            except PortTakenError:
                await self._remove()
                if self.fixed_port is not None or attempt + 1 == self.around.port_attempts:
                    raise
            except BaseException:
                await self._remove()
                raise
            else:
                self.around.ledger.remember_start(key, self.around.clock() - began)
                self._error = None
                self._child().view.forgive()
                self._set(EngineState.READY)
                return
            finally:
                reservation.close()

    async def _launch(self, port: int) -> None:
        launch = self.around.launcher(self.spec, port)
        self._command = display(launch.words)
        self.process = EngineProcess(
            launch, log_path=self.around.log_dir / f"{self.side.value}.log", clock=self.around.clock
        )
        await self.process.start()
        pid, created = self.process.pid, self.process.create_time
        if pid is not None and created is not None:
            self.around.ledger.record(
                ChildRecord(
                    side=self.side.value, pid=pid, create_time=created, token=launch.token, port=port,
                    served_name=self.spec.served_name, program=launch.words[0],
                )
            )  # fmt: skip

    async def _until_ready(self, began: float) -> None:
        """Ready: our own child lives, holds the port, /health says 200, and the expected model is listed."""
        process = self._child()
        exit_task = asyncio.create_task(process.wait())
        probe = Probe(f"http://{HOST}:{process.launch.port}", api_key=self.around.api_key)
        try:
            while not await self._answers(probe, exit_task):
                if self.around.clock() - began > self.around.timing.load:
                    seconds, line = f"{self.around.timing.load:g}", process.view.last_line or "none"
                    raise EngineUnavailable(sentence("engine_slow", side=self.side.value, seconds=seconds, line=line))
            self._set(EngineState.LOADING, "warming up")
            warm_up = asyncio.create_task(probe.warm_up(self.spec, timeout_s=self.around.timing.warm_up))
            try:
                await asyncio.wait({warm_up, exit_task}, return_when=asyncio.FIRST_COMPLETED)
                problem = warm_up.result() if warm_up.done() else None
            finally:
                warm_up.cancel()
            if problem is not None and await probe.health() != "ok":
                await asyncio.wait({exit_task}, timeout=_LAST_WORDS_S)
            if exit_task.done():
                raise self._exited(exit_task.result(), ready_before=False)
            if problem is not None and await probe.health() != "ok":
                raise EngineUnavailable(f"The {self.side.value} engine did not survive its first request: {problem}")
            self._version = await probe.version()
            self._memory = await asyncio.to_thread(process.memory_bytes)
        finally:
            exit_task.cancel()
            await probe.aclose()

    async def _answers(self, probe: Probe, exit_task: asyncio.Task[int]) -> bool:
        """One look while loading; waits the poll interval when it is not ready yet."""
        process = self._child()
        done, _ = await asyncio.wait({exit_task}, timeout=self.around.timing.loading_poll)
        self.changed.set()
        if done:
            if process.view.port_taken:
                raise PortTakenError(process.launch.port)
            raise self._exited(exit_task.result(), ready_before=False)
        if await probe.health() == "silent":
            return False
        if await asyncio.to_thread(process.listens) is False:
            raise PortTakenError(process.launch.port)  # somebody answers there, but it is none of our processes
        return await probe.health() == "ok" and self.spec.served_name in (await probe.models() or ())

    async def _watch(self) -> str:
        """Until the ready engine dies; returns why, as a sentence."""
        process, timing, clock = self._child(), self.around.timing, self.around.clock
        exit_task = asyncio.create_task(process.wait())
        probe = Probe(f"http://{HOST}:{process.launch.port}", api_key=self.around.api_key)
        heard = measured = clock()
        try:
            while True:
                done, _ = await asyncio.wait({exit_task}, timeout=timing.ready_poll)
                if done:
                    return str(self._exited(exit_task.result(), ready_before=True))
                health = await probe.health()
                if health == "dead":
                    detail = process.view.problem or "it answers that its engine core is gone"
                    return exit_sentence(self.spec, None, detail, ready_before=True)
                heard = clock() if health == "ok" else heard
                if clock() - heard > timing.silence:
                    return sentence("engine_silent", side=self.side.value, seconds=f"{timing.silence:g}")
                if clock() - measured > timing.memory_poll:
                    self._memory, measured = await asyncio.to_thread(process.memory_bytes), clock()
        finally:
            exit_task.cancel()
            await probe.aclose()

    async def _remove(self) -> None:
        """Take the child's whole group down, cancelled or not, and strike it off the record."""
        if self.process is None:
            return
        removal = asyncio.create_task(self.process.stop(grace_s=self.around.timing.grace))
        cancelled = False
        while not removal.done():
            try:
                await asyncio.shield(removal)
            except asyncio.CancelledError:
                cancelled = True
        if self.process.pid is not None:
            self.around.ledger.forget(self.process.pid)
        if cancelled:
            raise asyncio.CancelledError

    def _child(self) -> EngineProcess:
        if self.process is None:
            raise EngineUnavailable(f"The {self.side.value} engine has no process.")
        return self.process

    def _exited(self, code: int, *, ready_before: bool) -> SpecDemoError:
        problem = self._child().view.problem
        return EngineExited(exit_sentence(self.spec, code, problem, ready_before=ready_before))
