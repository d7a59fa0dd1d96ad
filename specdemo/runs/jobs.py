"""Long work on both engines: a benchmark, a sweep or a sampling validation; one at a time, alone, owned by its starter.

A job goes on when its page is closed or loaded again. It ends when it is done, when its owner stops it, or with the
process; what it has measured until then is kept.
"""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from specdemo.core.events import Side
from specdemo.errors import EngineUnavailable, SpecDemoError, UsageError
from specdemo.runs.ports import Clock, Engine
from specdemo.runs.preflight import Refusal
from specdemo.runs.registry import Registry

_log = logging.getLogger(__name__)

Kind = Literal["bench", "sweep", "validation"]
JobState = Literal["waiting", "running", "paused", "stopping", "done"]
STOP_S = 10.0
"""How long a stop may take at the end of the process before the job is cancelled."""


class Tuner(Protocol):
    """Engines of our own whose speculation can be changed while the process lives."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The speculation presets that these settings can run."""
        ...

    async def speculate(self, method: str | None, k: int | None) -> None:
        """Restart the speculative engine with this preset and draft length (None: as set) and wait until it is ready.

        Raises SpecDemoError with what went wrong.
        """
        ...


@dataclass(frozen=True, slots=True)
class Workshop:
    """What jobs need besides the registry.

    ``folder`` keeps their results. ``commands`` and ``memory`` are both engines', standard first. ``busy`` tells other
    programs' share of the cores; None where the engines run elsewhere. ``refuse`` says which request would harm an
    engine. ``tuner`` is None unless the engines are our own.
    """

    engines: Callable[[], Mapping[Side, Engine] | None]
    folder: Path
    version: str = ""
    hardware: str | None = None
    commands: Callable[[], tuple[str | None, str | None]] = lambda: (None, None)
    memory: Callable[[], tuple[int | None, int | None]] = lambda: (None, None)
    busy: Callable[[], Awaitable[float | None]] | None = None
    refuse: Refusal | None = None
    tuner: Tuner | None = None
    clock: Clock = time.monotonic
    wall: Clock = time.time


class Job(ABC):
    """One piece of long work. Times in s; ``error`` is one sentence when it could not do its work."""

    kind: ClassVar[Kind]

    def __init__(self, name: str, owner: str) -> None:
        self.name = name
        self.owner = owner
        self.state: JobState = "waiting"
        self.error: str | None = None

    @property
    def live(self) -> bool:
        """Whether it is not over."""
        return self.state != "done"

    @property
    @abstractmethod
    def left_s(self) -> float | None:
        """How long it will still take, None while that is unknown."""

    @abstractmethod
    async def work(self, engines: Mapping[Side, Engine]) -> None:
        """All of it. Raises SpecDemoError when it can't go on."""

    @abstractmethod
    def end(self) -> None:
        """Come to an early end soon; what was measured is kept."""

    def hold(self) -> None:
        """Pause. Raises UsageError where the job can't."""
        raise UsageError("This can't be paused, only stopped.")

    def go_on(self) -> None:
        """Go on after a pause. Raises UsageError where the job can't be paused."""
        raise UsageError("This can't be paused, only stopped.")

    def sentence(self) -> str:
        """What others are told who want the engines meanwhile."""
        names = {"bench": "A benchmark", "sweep": "A sweep", "validation": "A sampling validation"}
        left = "" if self.left_s is None else f", for about {max(1, round(self.left_s / 60))} min more"
        return f"{names[self.kind]} has the engines for itself{left}, so that its numbers hold; try again after it."


class Jobs:
    """The job that runs, and the last one of each kind."""

    def __init__(self, registry: Registry, shop: Workshop) -> None:
        self.shop = shop
        self._registry = registry
        self._jobs: dict[str, Job] = {}
        self._task: asyncio.Task[None] | None = None

    @property
    def live(self) -> Job | None:
        """The job that is not over."""
        return next((job for job in self._jobs.values() if job.live), None)

    def last(self, *kinds: Kind) -> Job | None:
        """The running job of these kinds, else the one that ended last."""
        found = [job for job in self._jobs.values() if job.kind in kinds]
        return next((job for job in found if job.live), found[-1] if found else None)

    def start(self, job: Job) -> None:
        """Queue it and return at once. Raises UsageError while another runs, EngineUnavailable without engines."""
        running = self.live
        if running is not None:
            raise UsageError(running.sentence())
        if self.shop.engines() is None:
            raise EngineUnavailable("No engines are connected, so nothing can be measured.")
        self._jobs.pop(job.kind, None)
        self._jobs[job.kind] = job
        self._task = asyncio.get_running_loop().create_task(self._run(job), name=f"{job.kind} {job.name}")
        self._task.add_done_callback(lambda _: self._settle(job))

    def pause(self, owner: str) -> None:
        """Pause the running job. Raises UsageError for anybody but its owner."""
        job = self._own(owner)
        if job.state == "running":
            job.hold()
            job.state = "paused"

    def resume(self, owner: str) -> None:
        """Go on. Raises UsageError for anybody but its owner."""
        job = self._own(owner)
        if job.state == "paused":
            job.go_on()
            job.state = "running"

    def stop(self, owner: str) -> None:
        """End the running job early; harmless when none runs. Raises UsageError for anybody but its owner."""
        if self.live is None:
            return
        self._end(self._own(owner))

    async def finished(self) -> None:
        """Wait until no job runs."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def aclose(self) -> None:
        """End what runs and wait for it; it is cancelled when that takes too long."""
        job = self.live
        if job is None or self._task is None:
            return
        self._end(job)
        await asyncio.wait([self._task], timeout=STOP_S)
        self._task.cancel()
        await asyncio.wait([self._task])

    def _own(self, owner: str) -> Job:
        job = self.live
        if job is None:
            raise UsageError("Nothing runs at the moment.")
        if job.owner != owner:
            raise UsageError("Somebody else started this, so only they can pause or stop it.")
        return job

    def _end(self, job: Job) -> None:
        if job.state == "waiting" and self._task is not None:
            self._task.cancel()  # it has not begun, so there is nothing to keep
        elif job.live:
            job.state = "stopping"
            job.end()

    async def _run(self, job: Job) -> None:
        try:
            async with self._registry.alone(job.sentence):
                engines = self.shop.engines()
                if engines is None:
                    raise EngineUnavailable("The engines are gone.")
                job.state = "running"
                await job.work(engines)
        except SpecDemoError as error:
            job.error = str(error)
        except asyncio.CancelledError:
            job.error = job.error or "Stopped before it began."
        except Exception:  # noqa: BLE001 - a background task: what is not kept here is lost
            _log.exception("%s %s broke inside specdemo", job.kind, job.name)
            job.error = "specdemo failed during this; its log has the details."

    def _settle(self, job: Job) -> None:
        # Also for a task that was cancelled before its first step.
        if job.state == "waiting":
            job.error = job.error or "Stopped before it began."
        job.state = "done"
