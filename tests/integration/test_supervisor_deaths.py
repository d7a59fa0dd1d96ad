"""A ready engine that dies, falls ill, or will not end: noticed, said, restarted with growing delays, and removed whole."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import httpx
import psutil

from specdemo.core.engine import EngineState
from specdemo.core.events import Side
from specdemo.engines.backoff import Backoff
from specdemo.engines.process import session_members
from specdemo.engines.slot import Timing
from tests.fakes.supervised import FakeEngines, Sleeps, reaches, supervisor

STANDARD, READY, DEAD = Side.STANDARD, EngineState.READY, EngineState.DEAD


async def test_a_killed_child_is_dead_then_restarted(tmp_path: Path) -> None:
    """A23: a child killed mid-way is "dead" with the reason and a delayed restart; then it is ready again, elsewhere."""
    sleeps = Sleeps()
    async with supervisor(tmp_path, FakeEngines(), sleep=sleeps) as control:
        await control.start_all()
        await control.wait_ready(30)
        before = control.status(STANDARD)
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        dead = await reaches(control, STANDARD, DEAD)
        assert dead.error == (
            "The standard engine died: it was killed (signal 9), most often because the machine ran out of memory."
        )
        assert dead.stage == "starts again in 3 s"
        assert control.base_url(STANDARD) is None
        assert control.status(Side.SPECULATIVE).state is READY
        sleeps.release.set()
        again = await reaches(control, STANDARD, READY)
        assert sleeps.asked == [3.0]
        assert again.restarts == 1
        assert again.error is None
        assert again.pid not in (None, before.pid)


async def test_a_person_need_not_wait_for_the_delay(tmp_path: Path) -> None:
    """Start, asked for while a restart is delayed, starts the engine at once."""
    sleeps = Sleeps()
    async with supervisor(tmp_path, FakeEngines(), sleep=sleeps) as control:
        await control.start(STANDARD)
        ready = await reaches(control, STANDARD, READY)
        assert ready.pid is not None
        os.kill(ready.pid, signal.SIGKILL)
        await reaches(control, STANDARD, DEAD, stage="starts again in 3 s")
        while not sleeps.asked:
            await asyncio.sleep(0.01)
        await control.start(STANDARD)
        assert (await reaches(control, STANDARD, READY)).restarts == 1
        assert not sleeps.release.is_set()


async def test_the_reason_is_the_engines_own(tmp_path: Path) -> None:
    """A23: when the log tells why the engine core died, that is the shown reason."""
    async with supervisor(tmp_path, FakeEngines(), sleep=Sleeps()) as control:
        await control.start(STANDARD)
        ready = await reaches(control, STANDARD, READY)
        async with httpx.AsyncClient(trust_env=False) as client:
            with contextlib.suppress(httpx.HTTPError):
                await client.post(f"{ready.base_url}/control/exit")
        dead = await reaches(control, STANDARD, DEAD)
        assert dead.error == "The standard engine died: RuntimeError: index 49152 is out of bounds"


async def test_an_engine_that_calls_itself_dead_is_replaced(tmp_path: Path) -> None:
    """/health 503 while the process still runs: dead at once, its whole group is taken down before the restart."""
    sleeps = Sleeps()
    async with supervisor(tmp_path, FakeEngines(), sleep=sleeps) as control:
        await control.start(STANDARD)
        ready = await reaches(control, STANDARD, READY)
        async with httpx.AsyncClient(trust_env=False) as client:
            await client.post(f"{ready.base_url}/control/sick")
        dead = await reaches(control, STANDARD, DEAD)
        assert dead.error == "The standard engine died: it answers that its engine core is gone"
        sleeps.release.set()
        again = await reaches(control, STANDARD, READY)
        assert ready.pid is not None
        assert not session_members(ready.pid)
        assert again.pid != ready.pid


async def test_restarts_have_a_cap(tmp_path: Path) -> None:
    """After the allowed number of deaths it stays dead and says so; a person's restart begins a fresh count."""
    sleeps = Sleeps()
    sleeps.release.set()
    async with supervisor(tmp_path, FakeEngines(), sleep=sleeps, backoff=lambda: Backoff(limit=1)) as control:
        await control.start(STANDARD)
        for _ in range(2):
            ready = await reaches(control, STANDARD, READY)
            assert ready.pid is not None
            os.kill(ready.pid, signal.SIGKILL)
            await reaches(control, STANDARD, DEAD, EngineState.LOADING)
        dead = await reaches(control, STANDARD, DEAD, stage="died too often; start it again by hand")
        assert dead.restarts == 1
        await control.restart(STANDARD)
        assert (await reaches(control, STANDARD, READY)).restarts == 0


async def test_a_silent_engine_is_dead_after_the_limit(tmp_path: Path) -> None:
    """A hung engine (alive, answering nothing) is dead once the limit has passed on the clock, not before."""
    now = [0.0]
    timing = Timing(loading_poll=0.01, ready_poll=0.02, silence=30.0, grace=0.2)
    async with supervisor(tmp_path, FakeEngines(), timing=timing, clock=lambda: now[0], sleep=Sleeps()) as control:
        await control.start(STANDARD)
        ready = await reaches(control, STANDARD, READY)
        assert ready.pid is not None
        os.kill(ready.pid, signal.SIGSTOP)
        now[0] = 29.0
        assert control.status(STANDARD).state is READY
        now[0] = 100.0
        dead = await reaches(control, STANDARD, DEAD)
        assert dead.error == "The standard engine stopped answering for 30 s."


async def test_a_child_that_ignores_sigterm_is_killed_with_its_own_children(tmp_path: Path) -> None:
    """A hung child and what it started are gone after stop, although both ignore SIGTERM."""
    engines = FakeEngines(standard=("--behaviour", "stubborn"))
    timing = Timing(loading_poll=0.01, ready_poll=0.02, grace=0.2)
    async with supervisor(tmp_path, engines, timing=timing) as control:
        await control.start(STANDARD)
        ready = await reaches(control, STANDARD, READY)
        assert ready.pid is not None
        members = session_members(ready.pid)
        assert len(members) == 2
        await control.stop(STANDARD)
        assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in members)
        assert control.status(STANDARD).state is EngineState.STOPPED


async def test_an_engine_that_dies_warming_up_never_was_ready(tmp_path: Path) -> None:
    """The first requests are part of loading: a death there is a failed start with its reason."""
    async with supervisor(tmp_path, FakeEngines(standard=("--behaviour", "dies-warming-up"))) as control:
        await control.start(STANDARD)
        failed = await reaches(control, STANDARD, EngineState.FAILED)
        assert failed.error == "The standard engine did not start: RuntimeError: index 49152 is out of bounds"
        assert failed.restarts == 0


async def test_earlier_starts_give_an_estimate(tmp_path: Path) -> None:
    """The time to ready is estimated from earlier starts of the same spec, and unknown before the first."""
    flag = tmp_path / "go"
    now = [0.0]
    engines = FakeEngines(standard=("--behaviour", "wait", "--flag", str(flag)))
    async with supervisor(tmp_path, engines, clock=lambda: now[0]) as control:
        await control.start(STANDARD)
        first = await reaches(control, STANDARD, EngineState.LOADING, stage="loading the weights")
        assert first.eta_s is None
        now[0] = 40.0
        flag.touch()
        await reaches(control, STANDARD, READY)
        flag.unlink()
        await control.restart(STANDARD)
        again = await reaches(control, STANDARD, EngineState.LOADING, stage="loading the weights")
        assert again.eta_s == 40.0
        now[0] = 50.0
        assert control.status(STANDARD).eta_s == 30.0
        now[0] = 500.0
        assert control.status(STANDARD).eta_s == 0.0
