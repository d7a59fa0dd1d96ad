"""All runs of a process: queue, stop, bounds."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from specdemo.core.events import SIDES, Failed
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.errors import EngineUnavailable, PromptError, UsageError
from specdemo.runs.registry import Bounds, LiveRun, Registry
from tests.fakes.engines import FakeEngine, pair

STD, SPEC = SIDES
PLAN = RunPlan(chat("hello"), warmup=False)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def registry(engines: dict[object, FakeEngine] | None = None, **bounds: object) -> tuple[Registry, Clock]:
    clock = Clock()
    engines = pair() if engines is None else engines  # type: ignore[assignment]
    return Registry(lambda: engines, bounds=Bounds(**bounds), clock=clock), clock  # type: ignore[arg-type, return-value]


async def done(runs: Registry, plan: RunPlan = PLAN) -> LiveRun:
    live = runs.start(plan)
    await runs.finished(live)
    return live


async def test_start_get_and_end() -> None:
    """A started run can be looked up by an id nobody can guess, and is done when its log is closed."""
    runs, _ = registry()
    live = runs.start(PLAN)

    assert live is runs.get(live.id)
    assert (live,) == runs.live()
    assert len(live.id) >= 16
    await runs.finished(live)
    assert (runs.state(live), live.log.closed, runs.live(), live.error) == ("done", True, (), None)
    assert live.id == live.log.record().header.id
    assert runs.get("unknown") is None


async def test_stop_ends_both_streams() -> None:
    """One visitor's stop closes both streams, and the run is done when stop returns; again it does nothing."""
    engines = pair(hold=asyncio.Event())
    runs, _ = registry(engines)
    live = runs.start(PLAN)
    await engines[STD].started.wait()
    await engines[SPEC].started.wait()

    assert await runs.stop(live.id)
    assert (engines[STD].open_streams, engines[SPEC].open_streams, runs.state(live)) == (0, 0, "done")
    assert [event.kind for event in live.log.since(0) if isinstance(event, Failed)] == ["cancelled"] * 2
    assert not await runs.stop(live.id)
    assert not await runs.stop("unknown")


async def test_a_viewer_that_leaves_stops_nothing() -> None:
    """Cancelling the wait for a run leaves the run alone."""
    engines = pair(hold=asyncio.Event())
    runs, _ = registry(engines)
    live = runs.start(PLAN)
    viewer = asyncio.create_task(runs.finished(live))
    await engines[STD].started.wait()
    viewer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await viewer
    assert runs.state(live) == "running"
    await runs.aclose()
    assert runs.state(live) == "done"


async def test_waiting_position() -> None:
    """Runs wait for their turn with a known position, and a stopped one gives up its place without touching an engine."""
    engines = pair(hold=asyncio.Event())
    runs, _ = registry(engines)
    first, second, third = (runs.start(PLAN) for _ in range(3))
    await engines[STD].started.wait()

    assert [(runs.state(live), runs.position(live)) for live in (first, second, third)] == [
        ("running", 0),
        ("waiting", 1),
        ("waiting", 2),
    ]
    await runs.stop(second.id)
    assert runs.position(third) == 1
    assert second.log.header is None
    assert second.log.closed
    engines[STD].hold.set()  # type: ignore[union-attr]
    await runs.finished(third)
    assert len(engines[STD].prompts) == 2


async def test_measurements_alternate() -> None:
    """Every second measurement begins with the other side, so that drift favours neither."""
    runs, _ = registry()
    orders = [(await done(runs, replace(PLAN, mode="measure"))).plan.order for _ in range(3)]

    assert orders == [SIDES, (SPEC, STD), SIDES]


async def test_measurement_excludes_races() -> None:
    """A measurement shares the engines with nobody, even where races may share."""
    engines = pair(hold=asyncio.Event())
    runs, _ = registry(engines, races_at_once=4)
    measured = runs.start(replace(PLAN, mode="measure"))
    race = runs.start(PLAN)
    await engines[STD].started.wait()

    assert (runs.state(measured), runs.state(race)) == ("running", "waiting")
    engines[STD].hold.set()  # type: ignore[union-attr]
    await runs.finished(race)
    assert engines[STD].most_open == 1


async def test_refusals() -> None:
    """What cannot be run is refused at once: over a limit, no engines, a full queue."""
    runs, _ = registry(pair(hold=asyncio.Event()), max_tokens=10, prompt_chars=5, waiting_runs=1)
    small = RunPlan(chat("hi", sampling=Sampling(max_tokens=5)), warmup=False)
    with pytest.raises(PromptError, match="At most 10 output tokens"):
        runs.start(RunPlan(chat("hi")))
    with pytest.raises(PromptError, match="at most 5 are allowed"):
        runs.start(RunPlan(chat("hello!", sampling=Sampling(max_tokens=5))))
    runs.start(small)
    runs.start(small)
    with pytest.raises(UsageError, match="waiting"):
        runs.start(small)
    assert len(runs) == 2
    await runs.aclose()
    with pytest.raises(EngineUnavailable, match="No engines"):
        Registry(lambda: None).start(PLAN)


async def test_run_that_cannot_begin() -> None:
    """A prompt that does not fit is the run's error; viewers find a closed log without a header."""
    runs, _ = registry(pair(prompt_ids=tuple(range(5000))))
    live = await done(runs)

    assert isinstance(live.error, PromptError)
    assert await live.log.opened() is None


async def test_bug_is_an_error_of_the_run() -> None:
    """A fault of specdemo itself ends the run with a sentence instead of vanishing in a task."""
    engines = pair()

    async def broken(*_: object) -> None:
        raise RuntimeError("bug")

    engines[STD].tokenize = broken  # type: ignore[method-assign, assignment]
    runs, _ = registry(engines)
    live = await done(runs)

    assert "specdemo failed" in str(live.error)


async def test_number_of_kept_runs() -> None:
    """Only so many finished runs are kept, the latest ones."""
    runs, clock = registry(kept_runs=3)
    lives = []
    for _ in range(6):
        clock.now += 1
        lives.append(await done(runs))

    assert [runs.get(live.id) for live in lives[:3]] == [None, None, None]
    assert len(runs) <= 3


async def test_age_and_size_of_kept_runs() -> None:
    """Finished runs are forgotten when they are old, or when all of them are too large together."""
    runs, clock = registry(kept_s=10.0)
    live = await done(runs)
    clock.now = 9.0
    assert live is runs.get(live.id)
    clock.now = 11.0
    assert runs.get(live.id) is None

    tight, clock = registry(kept_size=20)
    older = await done(tight)
    clock.now = 1.0
    newer = await done(tight)
    assert (tight.get(older.id), tight.get(newer.id)) == (None, None)


async def test_recorded_runs() -> None:
    """A recorded run is put beside the live ones once, and is done."""
    runs, _ = registry()
    record = (await done(runs)).log.record()
    elsewhere, _ = registry()
    shown = elsewhere.show(record)

    assert (record.header.id, "done", record) == (shown.id, elsewhere.state(shown), shown.log.record())
    assert shown is elsewhere.show(record)
    other = runs.show(record)
    assert record.header.id != other.id
