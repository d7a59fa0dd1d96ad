"""A benchmark at an open rate: its level is 1, but its requests share the engine, and no number may say otherwise."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord
from specdemo.bench.report.content import document
from specdemo.bench.report.markdown import render
from specdemo.bench.sample import Place, measure
from specdemo.bench.summary import summarise
from specdemo.core.events import CountersRead, Finished, Side, SpecCounters, Started, Tokens, Usage
from specdemo.core.prompt import Sampling
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.benchmark import BenchAround, Benchmark
from tests.fakes import virtual_time
from tests.fakes.bench_samples import prompts, session
from tests.fakes.sim_engine import SimEngine, pair

OPEN = BenchPlan(prompts(8), rate=10.0, load_prompts=None, repeats=2)


def test_different_prompts_are_no_noise() -> None:
    """The spread is that of one prompt's repeats, not that between the prompts of a block."""
    summary = summarise(OPEN, session(OPEN, 1.5, noise=0.01), planned=1)
    assert summary.control.sigma_a is not None
    assert summary.control.sigma_a < 0.03
    assert not summary.control.noisy


def test_identity_is_not_judged_by_requests_that_shared_their_engine() -> None:
    """Other requests change the rounding, so nothing is said of identity."""
    summary = summarise(OPEN, session(OPEN, 1.5), planned=1)
    assert summary.identity.word == "not_tested"
    closed = replace(OPEN, rate=None, repeats=1)
    assert summarise(closed, session(closed, 1.5), planned=1).identity.word == "identical"


def test_the_report_does_not_say_that_each_engine_was_alone() -> None:
    """The rate stands where a closed loop has its concurrency."""
    record = BenchRecord(BenchHeader("b", 0.0, OPEN), samples=tuple(session(OPEN, 1.5)))
    text = render(document(record, record.summary()))
    assert "Each engine alone" not in text
    assert text.count("Requests start at 10 a second") == 2


@pytest.mark.parametrize("opened", [False, True])
def test_whole_engine_counters_are_of_no_single_request(opened: bool) -> None:
    """Counters that other requests moved too are dropped (A12)."""
    side = Side.SPECULATIVE
    before, after = SpecCounters(1, 3, 1), SpecCounters(2, 6, 2)
    events = (
        Started(side, 0.0),
        CountersRead(side, 0.0, before),
        Tokens(side, 0.1, (1,), "a"),
        Tokens(side, 0.2, (2, 3), "bc"),
        CountersRead(side, 0.3, after),
        Finished(side, 0.3, "length", Usage(3, 3)),
    )
    place = Place("k", "q", 0, "B", "measure", 1, "w", "p")
    assert (measure(place, side, events, intended_at=0.0, opened=opened).drafted is None) == opened


class _File:
    """A benchmark in a file, run in virtual time."""

    def __init__(self, folder: Path, plan: BenchPlan) -> None:
        self.record = BenchRecord(BenchHeader("b", 0.0, plan))
        self.file = BenchFile.create(folder / "b.jsonl", self.record.header)

    def run(self, engines: dict[Side, SimEngine]) -> BenchRecord:
        around = BenchAround(clock=virtual_time.clock, wall=lambda: 5.0)
        virtual_time.run(Benchmark(self.record, self.file, engines, around).run())
        self.file.close()
        return load(self.file.path)


def test_a_block_is_not_repeated_because_its_prompts_differ(tmp_path: Path) -> None:
    """Gaps of requests that overlap more or less differ; that is the load, not a disturbance."""
    plan = BenchPlan(prompts(12), rate=8.0, sampling=Sampling(max_tokens=31, ignore_eos=True), load_prompts=None)
    found = _File(tmp_path, plan).run(dict(pair(load_cost=0.6)))
    assert len(found.samples) == 48
    assert {sample.place.attempt for sample in found.samples} == {0}
    assert found.splits == ()


def test_a_dead_engine_gets_no_further_request(tmp_path: Path) -> None:
    """The timetable ends with the engine, instead of running out for hours."""
    plan = BenchPlan(prompts(50), rate=0.01, load_prompts=None, sampling=Sampling(max_tokens=31, ignore_eos=True))
    engines = dict(pair(fate=lambda n: "exited" if n >= 5 else None))
    found = _File(tmp_path, plan).run(engines)
    assert found.endings[-1].state == "engine_lost"
    assert len(engines[Side.SPECULATIVE].asked) < 10


@pytest.mark.parametrize("late, opened, said", [(0.2, True, True), (0.2, False, False), (0.004, True, False)])
def test_a_start_behind_its_timetable_is_our_own_fault_and_told(late: float, opened: bool, said: bool) -> None:
    """A load client that is the bottleneck itself says so beside the numbers."""
    side = Side.STANDARD
    events = (Started(side, late), Tokens(side, 1.0, (1,), "a"), Finished(side, 1.0, "length", Usage(3, 1)))
    place = Place("k", "q", 0, "A", "measure", 1, "w", "p")
    assert ("overloaded" in measure(place, side, events, intended_at=0.0, opened=opened).notes) == said
