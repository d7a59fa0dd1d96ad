"""The benchmark runner at its edges, in virtual time: pauses under a budget, a disk that is full, other engines."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord
from specdemo.bench.sample import Sample
from specdemo.core.prompt import Sampling
from specdemo.errors import StoreError, UsageError
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.benchmark import BenchAround, Benchmark, Progress
from tests.fakes import virtual_time
from tests.fakes.bench_samples import prompts
from tests.fakes.sim_engine import pair

SHORT = Sampling(max_tokens=31, ignore_eos=True)


def test_a_pause_uses_up_no_budget(tmp_path: Path) -> None:
    """A pause longer than the time budget changes neither what is measured nor the time that is told to be left."""

    def measured(folder: Path, pause_s: float) -> tuple[int, float]:
        plan = BenchPlan(prompts(8), sampling=SHORT, control_prompts=0, warmup=0, budget_s=20)
        file = BenchFile.create(folder / "b.jsonl", BenchHeader("b", 0.0, plan))
        told: list[Progress] = []

        async def work() -> int:
            around = BenchAround(clock=virtual_time.clock, wall=lambda: 5.0, on_progress=told.append)
            runner = Benchmark(BenchRecord(BenchHeader("b", 0.0, plan)), file, pair(), around)
            running = asyncio.ensure_future(runner.run())
            await asyncio.sleep(2)
            runner.pause()
            await asyncio.sleep(pause_s)
            runner.resume()
            await running
            return len(runner.samples)

        count = virtual_time.run(work())
        file.close()
        return count, told[-1].elapsed_s

    (tmp_path / "with").mkdir()
    count, seconds = measured(tmp_path, 0)
    longer, same = measured(tmp_path / "with", 500)
    assert longer == count
    assert same == pytest.approx(seconds, abs=2)


@pytest.mark.parametrize("level", [1, 2])
def test_a_full_disk_is_one_sentence(tmp_path: Path, level: int) -> None:
    """What can't be kept is not measured on: the file's own error is raised, not a group of them."""
    plan = BenchPlan(prompts(4), levels=(level,), sampling=SHORT, control_prompts=0)
    file = BenchFile.create(tmp_path / "b.jsonl", BenchHeader("b", 0.0, plan))
    append = file.append

    def full(entry: object) -> None:
        if isinstance(entry, Sample):
            raise StoreError("no space left")
        append(entry)  # type: ignore[arg-type]

    file.append = full  # type: ignore[method-assign]
    around = BenchAround(clock=virtual_time.clock, wall=lambda: 5.0)
    with pytest.raises(StoreError, match="no space left"):
        virtual_time.run(Benchmark(BenchRecord(BenchHeader("b", 0.0, plan)), file, pair(), around).run())
    file.close()


@pytest.mark.parametrize("other, same", [("other", False), ("sim", True)])
def test_a_resume_on_other_engines_is_refused(tmp_path: Path, other: str, same: bool) -> None:
    """Times of two models in one benchmark make no pairs; nothing is written, so the right engines can go on."""
    path = tmp_path / "b.jsonl"
    header = BenchHeader("b", 0.0, BenchPlan(prompts(4), sampling=SHORT, control_prompts=0, budget_s=1))
    file = BenchFile.create(path, header)
    around = BenchAround(clock=virtual_time.clock, wall=lambda: 5.0)
    virtual_time.run(Benchmark(BenchRecord(header), file, pair(), around).run())
    file.close()
    before = path.read_bytes()
    file = BenchFile.reopen(path)
    again = Benchmark(load(path), file, pair(model=other), around)
    if same:
        virtual_time.run(again.run())
    else:
        with pytest.raises(UsageError, match="the speculative engine's model was sim, now it is other"):
            virtual_time.run(again.run())
    file.close()
    assert (path.read_bytes() == before) != same
