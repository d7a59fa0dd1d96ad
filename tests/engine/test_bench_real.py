"""Benchmark and sampling validation on real engines; before test_sampling_repair, which kills the unrepaired engine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord
from specdemo.bench.sampling.drafts import Lookup
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.settings import PLAIN, TRUNCATED, SamplingConfig, ValidationPlan
from specdemo.bench.workloads import choose, sampling_prompts
from specdemo.core.events import Side
from specdemo.core.prompt import Sampling
from specdemo.engines.client import VllmEngine
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.benchmark import Benchmark
from specdemo.runs.validate import ValidationAround, validate
from tests.engine.conftest import SERVED_NAME, RealPair


async def checked(standard: str, speculative: str, configs: Sequence[SamplingConfig], draws: int) -> ValidationResult:
    engines = {
        Side.STANDARD: VllmEngine(Side.STANDARD, standard, model=SERVED_NAME),
        Side.SPECULATIVE: VllmEngine(Side.SPECULATIVE, speculative, model=SERVED_NAME),
    }
    try:
        plan = ValidationPlan(sampling_prompts()[:5], tuple(configs), draws=draws)
        return await validate(plan, engines, ValidationAround(lookup=Lookup()))
    finally:
        for engine in engines.values():
            await engine.aclose()


def test_the_cpu_sampling_fault_is_found_without_the_repair(real_pair: RealPair, unrepaired_url: str) -> None:
    """The quick size is enough: drafted positions take garbage for a temperature, and the verdict is 'differs'.

    What the garbage is depends on the process's memory, so how far the temperature is off, and on which side, does too.
    """
    found = real_pair.loop.run(checked(real_pair.url(Side.STANDARD), unrepaired_url, (PLAIN,), 32), 900)
    assert found.method == "scores"
    assert found.verdict.word == "differs", (found.verdict.sentence, found.speculative, found.verdict.findings)
    assert found.exit_code == 1
    assert found.standard[0].violations == 0
    assert any(finding.decides for finding in found.verdict.findings)


def test_no_fault_is_found_with_the_repair(real_pair: RealPair) -> None:
    """The repaired engine is not accused, under both usual settings; the quick size certifies nothing."""
    url = real_pair.url
    found = real_pair.loop.run(checked(url(Side.STANDARD), url(Side.SPECULATIVE), (PLAIN, TRUNCATED), 8), 900)
    assert found.verdict.word == "not_enough_data", found.verdict.sentence
    assert all(arm.violations == 0 for arm in (*found.standard, *found.speculative))
    assert real_pair.supervisor.status(Side.SPECULATIVE).restarts == 0


def test_a_small_benchmark_on_real_engines(real_pair: RealPair, tmp_path: Path) -> None:
    """Greedy outputs are identical, drafts are made on a copying workload, and every number can be recomputed."""
    plan = BenchPlan(
        choose(["code_editing"], languages=["en"], limit=3),
        levels=(1, 2),
        sampling=Sampling(max_tokens=40, ignore_eos=True),
        control_prompts=1,
        per_worker=2,
    )
    header = BenchHeader("real", 0.0, plan)
    file = BenchFile.create(tmp_path / "b.jsonl", header)

    urls = {side: real_pair.url(side) for side in Side}

    async def go() -> str:
        engines = {side: VllmEngine(side, urls[side], model=SERVED_NAME) for side in Side}
        try:
            return (await Benchmark(BenchRecord(header), file, engines).run()).state
        finally:
            for engine in engines.values():
                await engine.aclose()

    assert real_pair.loop.run(go(), 900) == "complete"
    file.close()
    summary = load(file.path).summary()
    assert summary.done == summary.planned
    assert summary.identity.word == "identical", summary.identity
    assert summary.suite is not None
    pool = summary.suite.acceptance
    assert pool.drafted
    assert pool.tokens_per_step is not None
    assert pool.tokens_per_step > 1.2
    assert summary.suite.arm_a.failed == summary.suite.arm_b.failed == 0
