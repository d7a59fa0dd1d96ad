"""The benchmark runner, in virtual time against simulated engines."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Ending
from specdemo.core.events import Side, TopToken
from specdemo.core.prompt import Sampling
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.benchmark import BenchAround, Benchmark, Progress
from tests.fakes import virtual_time
from tests.fakes.bench_samples import prompts
from tests.fakes.sim_engine import SimEngine, pair

SHORT = Sampling(max_tokens=31, ignore_eos=True)


class Session:
    """A benchmark in a file, run and read back."""

    def __init__(self, folder: Path, plan: BenchPlan, engines: Mapping[Side, SimEngine]) -> None:
        self.path = folder / "bench.jsonl"
        self.plan = plan
        self.engines = engines
        self.progress: list[Progress] = []
        self.runner: Benchmark | None = None
        self.busy: list[float] = []

    def run(self, *, after: int | None = None, action: str = "") -> Ending:
        """One session; ``action`` is called on the runner after ``after`` requests."""
        if self.path.exists():
            record, file = load(self.path), BenchFile.reopen(self.path)
        else:
            record = BenchRecord(BenchHeader("b1", 0.0, self.plan))
            file = BenchFile.create(self.path, record.header)

        async def work() -> Ending:
            def tell(progress: Progress) -> None:
                self.progress.append(progress)
                if after is not None and progress.done == after and self.runner is not None:
                    getattr(self.runner, action)()

            async def others() -> float | None:
                return self.busy.pop(0) if self.busy else 0.0

            around = BenchAround(clock=virtual_time.clock, wall=lambda: 5.0, busy=others, on_progress=tell)
            self.runner = Benchmark(record, file, self.engines, around)
            return await self.runner.run()

        try:
            return virtual_time.run(work())
        finally:
            file.close()

    @property
    def record(self) -> BenchRecord:
        """What the file holds."""
        return load(self.path)


def test_a_whole_benchmark_finds_the_simulated_speedup(tmp_path: Path) -> None:
    """Three tokens in 30 ms against one in 20 ms is 2x; everything in the file gives the same numbers again."""
    session = Session(tmp_path, BenchPlan(prompts(6), sampling=SHORT), pair())
    ending = session.run()
    assert ending.state == "complete"
    summary = session.record.summary()
    assert summary.suite is not None
    assert summary.suite.speedup is not None
    assert summary.suite.speedup.estimate == pytest.approx(2.0)
    assert summary.done == summary.planned == 4 * 6 + 4 * 5
    assert summary.identity.word == "identical"
    assert summary.control.interval is not None
    assert summary.control.interval.estimate == pytest.approx(1.0)
    assert summary.certified


def test_requests_are_alone_carry_own_salts_and_the_run_settings(tmp_path: Path) -> None:
    """At level 1 one request is open at a time over both engines; every salt is new (D10)."""
    engines = pair()
    Session(tmp_path, BenchPlan(prompts(4), sampling=SHORT), engines).run()
    assert [engine.most_open for engine in engines.values()] == [1, 1]
    salts = [salt for engine in engines.values() for salt in engine.salts]
    assert len(set(salts)) == len(salts)
    assert None not in salts
    kept = [p for engine in engines.values() for p in engine.asked]
    assert {p.sampling.ignore_eos for p in kept} == {True}


def test_warm_up_is_the_same_on_both_sides_and_not_counted(tmp_path: Path) -> None:
    """Two requests an engine are thrown away before the first quad (D19)."""
    engines = pair()
    plan = BenchPlan(prompts(3), sampling=SHORT, control_prompts=0)
    session = Session(tmp_path, plan, engines)
    session.run()
    assert [len(engine.asked) for engine in engines.values()] == [2 + 6, 2 + 6]
    assert len(session.record.samples) == 12
    assert session.record.sessions[0].warmups == 2


def test_closed_loop_keeps_exactly_the_level_in_flight(tmp_path: Path) -> None:
    """At level 4 four requests are open, and more load makes the simulated gain fall (A34)."""
    engines = pair(load_cost=0.6)
    plan = BenchPlan(prompts(8), levels=(1, 4), sampling=SHORT, load_prompts=None)
    session = Session(tmp_path, plan, engines)
    session.run()
    assert [engine.most_open for engine in engines.values()] == [4, 4]
    levels = session.record.summary().levels
    gains = [r.speedup.estimate for r in levels if r.speedup]
    assert gains[0] == pytest.approx(2.0)
    assert gains[1] < 0.9
    assert levels[1].arm_a.steady_tokens_per_s is not None


def test_open_mode_times_from_the_intended_start(tmp_path: Path) -> None:
    """Requests start on the timetable even when earlier ones still run, and waiting counts into their time."""
    engines = {side: SimEngine(side, step_s=0.05) for side in Side}
    plan = BenchPlan(prompts(20), rate=5.0, sampling=SHORT, load_prompts=None)
    session = Session(tmp_path, plan, engines)
    session.run()
    assert engines[Side.STANDARD].most_open > 3
    for sample in session.record.samples:
        assert sample.started_at == pytest.approx(sample.intended_at)


def test_refusals_are_counted_not_hidden(tmp_path: Path) -> None:
    """Every third speculative request is refused: kept as failed with its reason, no retry (D12, D13)."""
    engines = pair(fate=lambda n: "rejected" if n % 3 == 2 else None)
    session = Session(tmp_path, BenchPlan(prompts(6), sampling=SHORT, control_prompts=0), engines)
    assert session.run().state == "complete"
    summary = session.record.summary()
    assert summary.suite is not None
    assert summary.suite.arm_b.failed == 4
    assert summary.suite.arm_b.failures == (("rejected", 4),)
    assert not summary.certified
    assert len(engines[Side.SPECULATIVE].asked) == 2 + 12


def test_a_dead_engine_ends_the_session_and_a_resume_completes_it(tmp_path: Path) -> None:
    """Death in mid-run: what was measured stays, the dying request is not counted, the resume makes the rest."""
    engines = pair(fate=lambda n: "exited" if n == 20 else None)
    plan = BenchPlan(prompts(20), sampling=SHORT, control_prompts=0)
    session = Session(tmp_path, plan, engines)
    ending = session.run()
    assert ending.state == "engine_lost"
    assert "The engine process ended." in ending.reason
    kept = session.record.samples
    assert 30 <= len(kept) < 80
    assert all(sample.ok for sample in kept)
    assert f"{len(kept)} finished requests are kept" in ending.reason
    assert not session.record.finished

    still_dead = session.run()
    assert still_dead.state == "engine_lost"
    engines[Side.SPECULATIVE].dead = False
    engines[Side.SPECULATIVE].fate = lambda n: None
    assert session.run().state == "complete"
    record = session.record
    assert record.finished
    assert len(record.samples) == 80
    assert record.samples[: len(kept)] == kept
    assert {sample.place.session for sample in record.samples} == {0, 1} or len(record.sessions) == 2


def test_stop_closes_streams_and_keeps_finished_samples(tmp_path: Path) -> None:
    """Stop under load: streams in flight are closed at once, finished requests stay, a resume redoes the block."""
    engines = pair()
    plan = BenchPlan(prompts(8), levels=(4,), sampling=SHORT, load_prompts=None)
    session = Session(tmp_path, plan, engines)
    ending = session.run(after=10, action="stop")
    assert ending.state == "stopped"
    assert sum(engine.open for engine in engines.values()) == 0
    assert sum(engine.closed_early for engine in engines.values()) >= 1
    assert 10 <= len(session.record.samples) < 20
    assert session.run().state == "complete"
    summary = session.record.summary()
    assert summary.done == summary.planned
    blocks = Counter((s.place.quad, s.place.slot, s.place.attempt) for s in session.record.samples)
    assert max(blocks.values()) == 16


def test_cancelling_closes_streams_and_writes_an_ending(tmp_path: Path) -> None:
    """A cancelled session leaves no open stream and a file that says how it ended."""
    engines = pair()
    plan = BenchPlan(prompts(8), levels=(4,), sampling=SHORT, load_prompts=None)
    path = tmp_path / "b.jsonl"
    file = BenchFile.create(path, BenchHeader("b", 0.0, plan))

    async def work() -> None:
        runner = Benchmark(BenchRecord(BenchHeader("b", 0.0, plan)), file, engines, BenchAround(virtual_time.clock))
        task = asyncio.ensure_future(runner.run())
        while len(runner.samples) < 5:
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    virtual_time.run(work())
    file.close()
    assert sum(engine.open for engine in engines.values()) == 0
    assert load(path).endings[-1].state == "stopped"
    assert len(load(path).samples) >= 5


def test_pause_holds_and_resume_goes_on(tmp_path: Path) -> None:
    """While paused no request is started; after resume all are made."""
    engines = pair()
    plan = BenchPlan(prompts(4), sampling=SHORT, control_prompts=0)
    file = BenchFile.create(tmp_path / "b.jsonl", BenchHeader("b", 0.0, plan))

    async def work() -> tuple[int, int, str]:
        runner = Benchmark(BenchRecord(BenchHeader("b", 0.0, plan)), file, engines, BenchAround(virtual_time.clock))
        task = asyncio.ensure_future(runner.run())
        while len(runner.samples) < 3:
            await asyncio.sleep(0.01)
        runner.pause()
        await asyncio.sleep(60)
        first = len(runner.samples)
        await asyncio.sleep(600)
        second = len(runner.samples)
        runner.resume()
        return first, second, (await task).state

    first, second, state = virtual_time.run(work())
    file.close()
    assert first == second <= 4
    assert state == "complete"


def test_time_budget_leaves_whole_quads_and_says_what_is_missing(tmp_path: Path) -> None:
    """Under a budget each level gets its share, no quad is cut in two, and the ending names what was not made."""
    plan = BenchPlan(prompts(30), levels=(1, 2), sampling=SHORT, budget_s=60.0, control_prompts=0)
    session = Session(tmp_path, plan, pair())
    ending = session.run()
    assert ending.state == "budget"
    assert "were not made" in ending.reason
    per_quad = Counter(s.place.quad for s in session.record.samples)
    singles = {count for quad, count in per_quad.items() if "/c1/" in quad}
    assert singles == {4}
    assert {s.place.level for s in session.record.samples} == {1, 2}


def test_what_a_level_leaves_of_its_share_goes_to_the_others(tmp_path: Path) -> None:
    """A budget that is enough for the whole plan is enough, however unequal its levels are."""
    plan = BenchPlan(prompts(30), levels=(1, 2), sampling=SHORT, control_prompts=0)
    (tmp_path / "free").mkdir()
    free = Session(tmp_path / "free", plan, pair())
    needed = free.run().seconds
    by_level = Counter(s.place.level for s in free.record.samples)
    assert by_level[1] > 1.5 * by_level[2]
    assert Session(tmp_path, replace(plan, budget_s=1.1 * needed), pair()).run().state == "complete"


def test_a_disturbed_quad_is_repeated_once_by_rule(tmp_path: Path) -> None:
    """A run twice as slow as its twin makes the whole quad run again; the number of re-runs is reported."""
    engines = pair()
    slow = engines[Side.STANDARD]
    normal = slow.step_s

    def disturb(n: int) -> None:
        slow.step_s = normal * (3 if n == 4 else 1)

    slow.fate = disturb  # type: ignore[func-returns-value]
    session = Session(tmp_path, BenchPlan(prompts(5), sampling=SHORT, control_prompts=0), engines)
    session.run()
    summary = session.record.summary()
    assert summary.reruns == 1
    assert len(session.record.samples) == 24
    assert summary.suite is not None
    assert summary.suite.speedup is not None
    assert summary.suite.speedup.estimate == pytest.approx(2.0)


def test_a_busy_host_is_waited_for(tmp_path: Path) -> None:
    """Other programs on the cores make a quad wait, and the waits are counted."""
    session = Session(tmp_path, BenchPlan(prompts(2), sampling=SHORT, control_prompts=0), pair())
    session.busy = [0.9, 0.8, 0.1]
    assert session.run().busy_waits == 2
    assert any(progress.state == "waiting" for progress in session.progress)


def test_splits_are_weighed_by_the_standard_engine(tmp_path: Path) -> None:
    """A speculative engine that answers otherwise once: the standard engine is asked, and a near tie is told from a fault."""

    def swap(prompt: object, ids: list[int]) -> list[int]:
        return [*ids[:10], 7, *ids[11:]] if "work 2" in repr(prompt) else ids

    plan = BenchPlan(prompts(6), sampling=SHORT)
    near = Session(tmp_path, plan, pair(ids=swap))
    near.run()
    found = near.record.summary().identity
    assert found.word == "identical_up_to_near_ties"
    assert found.splits[0][0].position == 10

    (tmp_path / "two").mkdir()
    engines = pair(ids=swap)
    first = near.record.splits[0].standard_id
    engines[Side.STANDARD].best = [TopToken(first, "a", -0.1), TopToken(7, "b", -3.0)]
    far = Session(tmp_path / "two", plan, engines)
    far.run()
    assert far.record.summary().identity.word == "mismatch"


def test_null_test_uses_the_standard_engine_twice(tmp_path: Path) -> None:
    """With null the speculative engine is never asked, and the result is no difference."""
    engines = pair()
    session = Session(tmp_path, BenchPlan(prompts(6), sampling=SHORT, null=True), engines)
    session.run()
    assert engines[Side.SPECULATIVE].asked == []
    assert session.record.summary().null_passed is True


def test_progress_tells_how_much_is_left(tmp_path: Path) -> None:
    """Done rises to planned, and the time left falls to 0."""
    session = Session(tmp_path, BenchPlan(prompts(5), sampling=SHORT, control_prompts=0), pair())
    session.run()
    assert session.progress[-1].done == session.progress[-1].planned == 20
    assert session.progress[-1].left_s == pytest.approx(0.0)
    lefts = [p.left_s for p in session.progress if p.left_s is not None]
    assert lefts == sorted(lefts, reverse=True)


def test_a_torn_last_line_is_left_out_and_cut_off_by_a_resume(tmp_path: Path) -> None:
    """A crash in mid-write costs one sample, not the file."""
    session = Session(tmp_path, BenchPlan(prompts(3), sampling=SHORT, control_prompts=0), pair())
    session.run(after=6, action="stop")
    with session.path.open("ab") as handle:
        handle.write(b'{"type":"sample","pla')
    assert session.record.torn == 1
    assert session.run().state == "complete"
    assert session.record.torn == 0
    assert len({s.place.key for s in session.record.samples}) == 12
