"""Long work: one at a time, alone on the engines, owned by its starter, kept whatever ends it; in virtual time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from specdemo.bench.estimate import paces_of
from specdemo.bench.plan import BenchPlan
from specdemo.bench.sampling.settings import SamplingConfig, ValidationPlan
from specdemo.core.events import Side
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.errors import EngineUnavailable, SpecDemoError, UsageError
from specdemo.runs.bench_job import BenchJob, Point, SweepJob
from specdemo.runs.bench_store import load
from specdemo.runs.jobs import Jobs, Workshop
from specdemo.runs.kept import benchmark_path, benchmarks, validations
from specdemo.runs.registry import Registry
from specdemo.runs.validation_job import ValidationJob, measure_pace
from tests.fakes import virtual_time
from tests.fakes.bench_samples import prompts
from tests.fakes.sampled_engine import TEXTS, SampledEngine
from tests.fakes.sim_engine import SimEngine, pair

SHORT = Sampling(max_tokens=31, ignore_eos=True)
PLAN = BenchPlan(prompts(4), sampling=SHORT, control_prompts=1)


class Tuner:
    """Writes down what it was asked for; ``broken`` settings do not start."""

    methods = ("ngram",)

    def __init__(self, broken: tuple[int, ...] = ()) -> None:
        self.asked: list[tuple[str | None, int | None]] = []
        self.broken = broken

    async def speculate(self, method: str | None, k: int | None) -> None:
        self.asked.append((method, k))
        await asyncio.sleep(5)
        if k in self.broken:
            raise EngineUnavailable("out of memory")


def world(folder: Path, engines: Mapping[Side, Any] | None, **more: Any) -> tuple[Registry, Jobs]:
    """A registry and jobs over some engines."""
    registry = Registry(lambda: engines, clock=virtual_time.clock)
    shop = Workshop(lambda: engines, folder, clock=virtual_time.clock, wall=lambda: 1.8e9, **more)
    return registry, Jobs(registry, shop)


def run(work: Callable[[], Awaitable[Any]]) -> Any:
    """Run a test's body in virtual time."""

    async def body() -> Any:
        return await work()

    return virtual_time.run(body())


async def until(jobs: Jobs, samples: int) -> BenchJob:
    """Wait until the benchmark has so many requests."""
    job = jobs.live
    assert isinstance(job, BenchJob)
    while len(job.samples) < samples:
        await asyncio.sleep(0.1)
    return job


def test_a_job_outlives_its_page_and_is_found_again(tmp_path: Path) -> None:
    """Nobody waits for it, and it ends by itself; its file is the one that the command line would have written."""

    async def body() -> None:
        _, jobs = world(tmp_path, pair())
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        assert jobs.last("bench") is jobs.live
        await jobs.finished()
        job = jobs.last("bench")
        assert isinstance(job, BenchJob)
        assert (job.live, job.error) == (False, None)
        assert job.ending is not None
        assert job.ending.state == "complete"
        [kept] = benchmarks(tmp_path)
        assert kept.name == job.name
        assert load(benchmark_path(tmp_path, kept.name)).finished
        assert paces_of(job.samples) is not None

    run(body)


def test_races_are_refused_meanwhile_and_taken_again_afterwards(tmp_path: Path) -> None:
    """A run that is asked for during a benchmark gets a sentence at once; a second job too; later both may come."""

    async def body() -> None:
        registry, jobs = world(tmp_path, pair())
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        await until(jobs, 5)
        with pytest.raises(EngineUnavailable, match=r"A benchmark has the engines for itself, for about \d+ min more"):
            registry.start(RunPlan(prompt=chat("hi")))
        with pytest.raises(UsageError, match="try again after it"):
            jobs.start(BenchJob("bob", jobs.shop, PLAN))
        await jobs.finished()
        live = registry.start(RunPlan(prompt=chat("hi"), warmup=False))
        await registry.finished(live)
        assert live.error is None

    run(body)


def test_a_job_waits_for_the_run_before_it(tmp_path: Path) -> None:
    """What runs already is not disturbed: the job begins when it is over."""

    async def body() -> None:
        engines = pair()
        registry, jobs = world(tmp_path, engines)
        live = registry.start(RunPlan(prompt=chat("hi", sampling=Sampling(max_tokens=200)), warmup=False))
        await asyncio.sleep(0.5)
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        await asyncio.sleep(0.5)
        assert jobs.live is not None
        assert jobs.live.state == "waiting"
        await registry.finished(live)
        await jobs.finished()
        assert live.error is None
        assert max(engine.most_open for engine in engines.values()) == 1

    run(body)


def test_only_the_starter_may_pause_and_stop(tmp_path: Path) -> None:
    """Others get a sentence; the starter pauses, goes on and stops, and what was measured is kept."""

    async def body() -> None:
        _, jobs = world(tmp_path, pair())
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        job = await until(jobs, 3)
        for act in (jobs.pause, jobs.resume, jobs.stop):
            with pytest.raises(UsageError, match="Somebody else started this"):
                act("bob")
        jobs.pause("ann")
        await asyncio.sleep(30)
        held = len(job.samples)
        await asyncio.sleep(30)
        assert (job.state, len(job.samples)) == ("paused", held)
        jobs.resume("ann")
        await until(jobs, held + 2)
        jobs.stop("ann")
        await jobs.finished()
        assert job.ending is not None
        assert job.ending.state == "stopped"
        assert len(load(job.path).samples) >= held + 2
        jobs.stop("ann")  # again is harmless

    run(body)


def test_a_dead_engine_leaves_a_benchmark_that_can_go_on(tmp_path: Path) -> None:
    """What was measured before the death is kept, the next job completes the same file, and a complete one is refused."""

    async def body() -> None:
        engines = pair(fate=lambda n: "exited" if n == 8 else None)
        _, jobs = world(tmp_path, engines)
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        await jobs.finished()
        first = jobs.last("bench")
        assert isinstance(first, BenchJob)
        assert first.ending is not None
        assert first.ending.state == "engine_lost"
        kept = len(load(first.path).samples)
        assert 0 < kept < first.progress.planned  # type: ignore[union-attr]
        engines[Side.SPECULATIVE].dead = False
        jobs.start(BenchJob.resumed("ann", jobs.shop, first.path))
        await jobs.finished()
        record = load(first.path)
        assert record.finished
        assert len(record.sessions) == 2
        with pytest.raises(UsageError, match="complete"):
            BenchJob.resumed("ann", jobs.shop, first.path)

    run(body)


def test_a_job_that_has_not_begun_is_stopped_without_a_trace(tmp_path: Path) -> None:
    """Stop while it waits: no file, the engines are free."""

    async def body() -> None:
        registry, jobs = world(tmp_path, pair())
        live = registry.start(RunPlan(prompt=chat("hi", sampling=Sampling(max_tokens=200)), warmup=False))
        await asyncio.sleep(0.5)
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        jobs.stop("ann")
        await jobs.finished()
        assert jobs.live is None
        await registry.finished(live)
        assert benchmarks(tmp_path) == ()
        await registry.finished(registry.start(RunPlan(prompt=chat("hi"), warmup=False)))

    run(body)


def test_no_engines_no_job(tmp_path: Path) -> None:
    """Without engines the start is refused."""

    async def body() -> None:
        _, jobs = world(tmp_path, None)
        with pytest.raises(EngineUnavailable):
            jobs.start(BenchJob("ann", jobs.shop, PLAN))

    run(body)


def test_the_end_of_the_process_keeps_what_was_measured(tmp_path: Path) -> None:
    """Closing stops the job as its owner would."""

    async def body() -> None:
        _, jobs = world(tmp_path, pair())
        jobs.start(BenchJob("ann", jobs.shop, PLAN))
        job = await until(jobs, 4)
        await jobs.aclose()
        assert not job.live
        assert load(job.path).endings[-1].state == "stopped"

    run(body)


def test_a_sweep_measures_each_setting_and_puts_the_engine_back(tmp_path: Path) -> None:
    """One benchmark a setting, a setting that does not start is left out and named, the last call restores."""

    async def body() -> None:
        tuner = Tuner(broken=(4,))
        _, jobs = world(tmp_path, pair(), tuner=tuner)
        jobs.start(SweepJob("ann", jobs.shop, PLAN, (Point(None, 2), Point(None, 4), Point(None, 8))))
        await jobs.finished()
        job = jobs.last("sweep")
        assert isinstance(job, SweepJob)
        assert job.error is None
        assert tuner.asked == [(None, 2), (None, 4), (None, 8), (None, None)]
        assert [record.header.id.split("/")[1] for record in job.records] == ["set-k2", "set-k8"]
        assert [(one.point.name, one.reason) for one in job.failed] == [("set-k4", "out of memory")]
        [kept] = benchmarks(tmp_path)
        assert kept.is_sweep

    run(body)


def test_a_sweep_stops_while_an_engine_loads(tmp_path: Path) -> None:
    """Stop does not wait for the engine that is being restarted."""

    async def body() -> None:
        tuner = Tuner()
        _, jobs = world(tmp_path, pair(), tuner=tuner)
        jobs.start(SweepJob("ann", jobs.shop, PLAN, (Point(None, 2), Point(None, 4))))
        await asyncio.sleep(1)
        jobs.stop("ann")
        await jobs.finished()
        assert tuner.asked == [(None, 2), (None, None)]

    run(body)


def test_a_sweep_needs_engines_of_our_own(tmp_path: Path) -> None:
    """Attached engines can't be restarted."""
    _, jobs = world(tmp_path, pair())
    with pytest.raises(UsageError, match="engines that specdemo starts"):
        SweepJob("ann", jobs.shop, PLAN, (Point(None, 2),))


SAMPLED = ValidationPlan(TEXTS[:2], (SamplingConfig("plain"),), draws=3, tokens=4)


def sampled() -> dict[Side, SampledEngine]:
    return {side: SampledEngine(side) for side in Side}


def test_a_validation_grows_and_is_kept(tmp_path: Path) -> None:
    """Evidence is told after every round, the result is a file of strict JSON; it can't be paused."""

    async def body() -> None:
        _, jobs = world(tmp_path, sampled())
        job = ValidationJob("ann", jobs.shop, SAMPLED)
        jobs.start(job)
        while job.progress is None:
            await asyncio.sleep(0.05)
        assert job.progress.speculative[0].tokens == 8
        with pytest.raises(UsageError, match="only stopped"):
            jobs.pause("ann")
        assert job.state == "running"
        await jobs.finished()
        assert job.result is not None
        assert job.result.rounds == 3
        [kept] = validations(tmp_path)
        assert json.loads(kept.path.read_text())["rounds"] == 3

    run(body)


@pytest.mark.parametrize("anyway", [False, True])
def test_an_engine_that_may_die_of_it_is_tested_on_request_only(tmp_path: Path, anyway: bool) -> None:
    """Without the repair on the CPU the test is refused with the reason, unless it was asked for."""

    async def body() -> None:
        _, jobs = world(tmp_path, sampled(), refuse=lambda prompt, facts: "This vLLM samples wrongly.")
        job = ValidationJob("ann", jobs.shop, SAMPLED, anyway=anyway)
        jobs.start(job)
        await jobs.finished()
        assert (job.result is not None) is anyway
        assert anyway or "samples wrongly" in str(job.error)

    run(body)


def test_the_pace_of_both_engines(tmp_path: Path) -> None:
    """The second of two short requests to each tells seconds to the first token and a token after it."""

    async def body() -> None:
        engines = pair()
        registry, _ = world(tmp_path, engines)
        standard, speculative = await measure_pace(registry, engines)
        assert standard.first_s == pytest.approx(0.1)
        assert standard.token_s == pytest.approx(0.02)
        assert speculative.token_s == pytest.approx(0.01, rel=0.1)
        assert [len(engine.asked) for engine in engines.values()] == [2, 2]
        dead = {**engines, Side.STANDARD: SimEngine(Side.STANDARD, dead=True)}
        with pytest.raises(SpecDemoError, match="standard engine did not answer"):
            await measure_pace(registry, dead)
        await registry.finished(registry.start(RunPlan(prompt=chat("hi"), warmup=False)))

    run(body)
