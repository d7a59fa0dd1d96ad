"""All runs of this process: start, look up, stop, list; bounded in number, memory and age.

A run goes on when its viewers leave; it ends when its starter stops it, when it is done, or when its time is up.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from specdemo.core.events import Side
from specdemo.core.run import RunPlan, RunRecord
from specdemo.core.sentences import sentence
from specdemo.errors import EngineUnavailable, SpecDemoError, UsageError
from specdemo.runs.gate import Gate, Ticket
from specdemo.runs.log import RunLog
from specdemo.runs.ports import Clock, Engine
from specdemo.runs.race import Surroundings, new_id, run
from specdemo.runs.request import check_request

_logger = logging.getLogger(__name__)

State = Literal["waiting", "running", "done"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the registry; see the settings of the same names. ``None`` sets no limit."""

    max_tokens: int | None = None
    prompt_chars: int | None = None
    races_at_once: int = 1
    waiting_runs: int = 32
    kept_runs: int = 64
    kept_s: float = 3600.0
    kept_size: int = 64_000_000


@dataclass(eq=False, slots=True)
class LiveRun:
    """One run as others see it. ``error`` is set when it could not begin; a failed engine is an event instead.

    ``owner`` is whose it is; ``shared`` shows it to whoever has its link. ``keep`` asks for a place in the store, and
    ``unkept`` says in one sentence why it got none.
    """

    id: str
    plan: RunPlan
    log: RunLog
    created_at: float
    ended_at: float | None = None
    error: SpecDemoError | None = None
    recorded: bool = False
    owner: str = ""
    shared: bool = False
    keep: bool = True
    unkept: str | None = None
    ticket: Ticket | None = field(default=None, repr=False)
    task: asyncio.Task[None] | None = field(default=None, repr=False)


class Registry:
    """``engines`` is asked at every start, so that engines may come and go while the process lives."""

    def __init__(
        self,
        engines: Callable[[], Mapping[Side, Engine] | None],
        *,
        around: Surroundings | None = None,
        bounds: Bounds | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._engines = engines
        self._around = around or Surroundings()
        self._bounds = bounds or Bounds()
        self._clock = clock
        self._gate = Gate(together=self._bounds.races_at_once, waiting=self._bounds.waiting_runs)
        self._runs: dict[str, LiveRun] = {}
        self._measured = 0
        self._held: Callable[[], str] | None = None

    def start(self, plan: RunPlan, *, title: str | None = None, owner: str = "", keep: bool = True) -> LiveRun:
        """Queue a run, return at once. Raises PromptError, UsageError or EngineUnavailable if it cannot be queued."""
        check_request(plan.prompt, prompt_chars=self._bounds.prompt_chars, max_tokens=self._bounds.max_tokens)
        engines = self._engines()
        if engines is None:
            raise EngineUnavailable("No engines are connected; only recorded runs can be played.")
        if self._held is not None:
            raise EngineUnavailable(self._held())
        self._forget()
        alone = plan.mode == "measure" or plan.control
        if plan.mode == "measure":
            plan = self._alternated(plan)
        ticket = self._gate.ticket(alone=alone)
        live = LiveRun(new_id(), plan, RunLog(), self._clock(), ticket=ticket, owner=owner, keep=keep)
        self._runs[live.id] = live
        live.task = asyncio.get_running_loop().create_task(self._run(live, ticket, engines, title))
        live.task.add_done_callback(lambda _: self._settle(live, ticket))
        return live

    @asynccontextmanager
    async def alone(self, why: Callable[[], str]) -> AsyncIterator[None]:
        """Hold the engines for the block, after the runs that were here before it.

        No run can be started meanwhile; ``why`` gives the sentence that it gets. Raises UsageError when the engines are
        held already or the queue is full.
        """
        if self._held is not None:
            raise UsageError(self._held())
        ticket = self._gate.ticket(alone=True)
        self._held = why
        try:
            async with self._gate.turn(ticket):
                yield
        finally:
            self._held = None

    def show(self, record: RunRecord) -> LiveRun:
        """Put a recorded run beside the live ones, so that the same viewers can play it."""
        self._forget()
        live = self._runs.get(record.header.id)
        if live is None or not live.recorded:
            now = self._clock()
            run_id = new_id() if live is not None else record.header.id
            live = LiveRun(run_id, record.header.plan, RunLog.recorded(record), now, ended_at=now, recorded=True)
            self._runs[run_id] = live
        return live

    def get(self, run_id: str) -> LiveRun | None:
        """The run, or None when it is unknown or forgotten."""
        self._forget()
        return self._runs.get(run_id)

    def state(self, live: LiveRun) -> State:
        """Waiting for the engines, running, or done."""
        if live.ended_at is not None:
            return "done"
        return "waiting" if self.position(live) else "running"

    def position(self, live: LiveRun) -> int:
        """Place in the queue from 1; 0 when it runs or is done."""
        return self._gate.position(live.ticket) if live.ticket else 0

    def live(self) -> tuple[LiveRun, ...]:
        """The runs that are not done, oldest first."""
        return tuple(run for run in self._runs.values() if run.ended_at is None)

    def all(self) -> tuple[LiveRun, ...]:
        """All runs in memory, oldest first."""
        self._forget()
        return tuple(self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def drop(self, run_id: str) -> None:
        """Forget a finished run at once; a running one stays."""
        live = self._runs.get(run_id)
        if live is not None and live.ended_at is not None:
            del self._runs[run_id]

    async def stop(self, run_id: str) -> bool:
        """Stop a run and wait until both its streams are closed; False if it was not running."""
        task = self.end(run_id)
        if task is None:
            return False
        await asyncio.wait([task])
        return True

    def end(self, run_id: str) -> asyncio.Task[None] | None:
        """Begin to stop a run, and return the task that ends with it; None if it was not running."""
        live = self._runs.get(run_id)
        if live is None or live.task is None or live.task.done():
            return None
        live.task.cancel()
        return live.task

    @asynccontextmanager
    async def engines_free(self) -> AsyncIterator[None]:
        """Have the engines for oneself while they are changed; no run can be started meanwhile.

        Raises UsageError while a run has them or waits for them: nothing is stopped for this.
        """
        if self._held is not None:
            raise UsageError(self._held())
        if not self._gate.idle:
            raise UsageError(sentence("method_run"))
        async with self.alone(lambda: sentence("method_under_way")):
            yield

    async def finished(self, live: LiveRun) -> None:
        """Wait until the run is done, without stopping it when the waiter is cancelled."""
        if live.task is not None:
            await asyncio.wait([live.task])

    async def aclose(self) -> None:
        """Stop everything."""
        # Newest first: nobody who waits may begin now.
        for live in reversed(self.live()):
            await self.stop(live.id)

    async def _run(self, live: LiveRun, ticket: Ticket, engines: Mapping[Side, Engine], title: str | None) -> None:
        try:
            async with self._gate.turn(ticket):
                await run(live.plan, engines, log=live.log, around=self._around, run_id=live.id, title=title)
        except SpecDemoError as error:
            live.error = error
        except asyncio.CancelledError:
            pass  # a Stop: the log already says so
        except Exception:
            _logger.exception("Run %s broke inside specdemo", live.id)
            live.error = SpecDemoError("specdemo failed during this run; its log has the details.")
        finally:
            live.log.close()
            live.ended_at = self._clock()

    def _settle(self, live: LiveRun, ticket: Ticket) -> None:
        # A task that is cancelled before its first step never reaches its own finally; its place must not stay taken.
        self._gate.leave(ticket)
        live.log.close()
        if live.ended_at is None:
            live.ended_at = self._clock()

    def _alternated(self, plan: RunPlan) -> RunPlan:
        """Every second measurement begins with the other side, so that drift favours neither."""
        self._measured += 1
        return plan if self._measured % 2 else replace(plan, order=(plan.order[1], plan.order[0]))

    def _forget(self) -> None:
        """Drop finished runs that are too old, too many or too large; running ones always stay."""
        now, bounds = self._clock(), self._bounds
        done = [(live.ended_at, live) for live in self._runs.values() if live.ended_at is not None]
        size = sum(live.log.size for _, live in done)
        excess = len(done) - bounds.kept_runs + 1
        for ended_at, live in sorted(done, key=lambda pair: pair[0]):
            if excess <= 0 and size <= bounds.kept_size and now - ended_at <= bounds.kept_s:
                break
            del self._runs[live.id]
            excess -= 1
            size -= live.log.size
