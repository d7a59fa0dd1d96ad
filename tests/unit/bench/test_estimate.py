"""How long a plan will take, told before it begins."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdemo.bench.estimate import Pace, estimate, estimate_validation, paces_of
from specdemo.bench.plan import BenchPlan
from specdemo.bench.sampling.settings import SamplingConfig, ValidationPlan
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError
from tests.fakes.bench_samples import prompts

PACES = (Pace(0.1, 0.02), Pace(0.1, 0.01))
PLAN = BenchPlan(prompts(4), sampling=Sampling(max_tokens=101), warmup=0, control_prompts=0)


def test_one_at_a_time_is_a_sum() -> None:
    """Four prompts, each twice on either engine: 8 x 2.1 s and 8 x 1.1 s."""
    found = estimate(PLAN, PACES)
    assert (found.requests, found.tokens) == (16, 16 * 101)
    assert found.low_s == found.high_s == pytest.approx(8 * 2.1 + 8 * 1.1)
    assert not found.cut


def test_without_a_pace_only_the_size_is_told() -> None:
    """No time is made up."""
    found = estimate(PLAN, None)
    assert (found.requests, found.low_s, found.high_s) == (16, None, None)


def test_under_load_it_is_a_range() -> None:
    """From perfect batching to none at all."""
    found = estimate(replace(PLAN, levels=(4,), per_worker=1), PACES)
    assert found.low_s is not None
    assert found.high_s == pytest.approx(4 * found.low_s)


def test_warm_up_control_and_null_count() -> None:
    """A null test asks the standard engine alone; warm-up requests are short."""
    null = estimate(replace(PLAN, null=True), PACES)
    assert null.high_s == pytest.approx(16 * 2.1)
    more = estimate(replace(PLAN, warmup=2, control_prompts=1), PACES)
    base = estimate(PLAN, PACES)
    assert more.high_s == pytest.approx((base.high_s or 0) + 4 * 2.1 + 2 * (0.1 + 31 * 0.02) + 2 * (0.1 + 31 * 0.01))


def test_the_budget_caps_it() -> None:
    """A budget shorter than the plan is what it will take."""
    found = estimate(replace(PLAN, budget_s=10), PACES)
    assert (found.low_s, found.high_s, found.cut) == (10, 10, True)


def test_open_mode_lasts_as_long_as_its_timetable() -> None:
    """Slow arrivals decide, not the engine."""
    found = estimate(replace(PLAN, rate=0.01), PACES)
    assert found.low_s is not None
    assert found.low_s > 100


def test_impossible_plans_are_refused() -> None:
    """As everywhere else."""
    with pytest.raises(UsageError):
        estimate(replace(PLAN, levels=()), PACES)


def test_a_validation_counts_draws_and_scores() -> None:
    """2 prompts x 10 draws on both engines, each read once more by the standard one."""
    plan = ValidationPlan(prompts(2), (SamplingConfig("plain"),), draws=10, tokens=11, concurrency=4)
    found = estimate_validation(plan, PACES)
    assert found.requests == 40
    assert found.high_s == pytest.approx(20 * (0.3 + 0.2 + 0.2))
    assert found.low_s == pytest.approx((found.high_s or 0) / 4)
    assert estimate_validation(plan, None).high_s is None


def test_no_pace_from_nothing() -> None:
    """Without requests of both engines there is no pace."""
    assert paces_of(()) is None
