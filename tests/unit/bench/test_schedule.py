"""The order of a benchmark."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.plan import BenchPlan, check_plan
from specdemo.bench.record import BenchHeader
from specdemo.bench.schedule import Quad, requests, schedule
from specdemo.bench.summary import summarise
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError
from specdemo.runs.bench_store import BenchFile, load
from tests.fakes.bench_samples import place, prompts, sample


def arms(quad: Quad) -> str:
    return "".join(block.arm for block in quad.blocks)


def test_each_prompt_gets_one_balanced_quad_a_repeat() -> None:
    """At level 1 every prompt has ABBA or BAAB, both orders equally often, and all keys differ."""
    quads = schedule(BenchPlan(prompts(10), repeats=2, control_prompts=0))
    assert Counter(map(arms, quads)) == {"ABBA": 10, "BAAB": 10}
    assert Counter(quad.blocks[0].items[0].prompt_id for quad in quads) == {p.id: 2 for p in prompts(10)}
    keys = [item.key for quad in quads for block in quad.blocks for item in block.items]
    assert len(set(keys)) == len(keys) == requests(quads) == 80


def test_same_seed_same_order_other_seed_other_order() -> None:
    """The order is random but repeatable."""
    plan = BenchPlan(prompts(12), levels=(1, 2, 4))
    assert schedule(plan) == schedule(plan)
    assert schedule(plan) != schedule(BenchPlan(prompts(12), levels=(1, 2, 4), seed=2))


def test_levels_come_in_random_order_each_as_a_whole() -> None:
    """Levels are not mixed, and their order changes with the seed."""
    orders = set()
    for seed in range(8):
        levels = [quad.level for quad in schedule(BenchPlan(prompts(4), levels=(1, 2, 4, 8), seed=seed))]
        runs = [level for i, level in enumerate(levels) if i == 0 or levels[i - 1] != level]
        assert sorted(runs) == [1, 2, 4, 8]
        orders.add(tuple(runs))
    assert len(orders) > 3


def test_blocks_under_load_hold_enough_requests_for_every_worker() -> None:
    """At level 8 a block has at least four requests a worker, and all four blocks ask the same."""
    for quad in schedule(BenchPlan(prompts(20), levels=(8,), load_prompts=None)):
        wanted = Counter(item.prompt_id for item in quad.blocks[0].items)
        assert sum(wanted.values()) >= 32
        assert all(Counter(item.prompt_id for item in block.items) == wanted for block in quad.blocks)


def test_load_prompts_are_a_share_of_each_workload() -> None:
    """Above level 1 the mix holds the same number of prompts of each workload."""
    plan = BenchPlan(prompts(10, "x") + prompts(10, "y"), levels=(2,), load_prompts=3)
    ids = {item.prompt_id for quad in schedule(plan) for item in quad.blocks[0].items}
    assert Counter(name.split("-")[0] for name in ids) == {"x": 3, "y": 3}
    apart = schedule(BenchPlan(prompts(10, "x") + prompts(10, "y"), levels=(2,), by_workload=True))
    assert {quad.workload for quad in apart} == {"x", "y"}


def test_control_quads_stand_among_the_others_but_not_in_a_null_test() -> None:
    """The A/A control has its prompts; in a null test the whole plan is one."""
    kinds = Counter(quad.kind for quad in schedule(BenchPlan(prompts(10), control_prompts=5)))
    assert kinds == {"measure": 10, "control": 5}
    assert Counter(quad.kind for quad in schedule(BenchPlan(prompts(10), null=True))) == {"measure": 10}


def test_under_a_budget_the_control_comes_early_and_nothing_is_lost() -> None:
    """A cut by time still leaves a control; all quads stay in the plan."""
    plain, timed = (schedule(BenchPlan(prompts(20), control_prompts=5, budget_s=b)) for b in (None, 60.0))
    assert [quad.kind for quad in timed[:10]].count("control") == 5
    assert {quad.id for quad in plain} == {quad.id for quad in timed}
    few = schedule(BenchPlan(prompts(2), control_prompts=5, budget_s=60.0))
    assert len(few) == 4


def test_open_mode_uses_one_timetable_for_all_four_blocks() -> None:
    """Both arms get the same intended starts, rising from 0, at about the rate."""
    quads = schedule(BenchPlan(prompts(200), rate=10.0, load_prompts=None))
    for quad in quads:
        tables = {tuple(item.at for item in block.items) for block in quad.blocks}
        assert len(tables) == 1
        starts = [at for at in tables.pop() if at is not None]
        assert starts[0] == 0.0
        assert starts == sorted(starts)
        assert 0.05 < starts[-1] / (len(starts) - 1) < 0.2


@pytest.mark.parametrize(
    "plan",
    [
        BenchPlan(()),
        BenchPlan((*prompts(1), *prompts(1))),
        BenchPlan(prompts(1), levels=()),
        BenchPlan(prompts(1), levels=(0,)),
        BenchPlan(prompts(1), levels=(2, 2)),
        BenchPlan(prompts(1), levels=(5000,)),
        BenchPlan(prompts(1), repeats=0),
        BenchPlan(prompts(1), sampling=Sampling(max_tokens=1)),
        BenchPlan(prompts(1), rate=0.0),
        BenchPlan(prompts(1), rate=1.0, levels=(1, 2)),
        BenchPlan(prompts(1), budget_s=0.0),
        BenchPlan(prompts(1), budget_s=float("nan")),
        BenchPlan(prompts(1), budget_s=float("inf")),
        BenchPlan(prompts(1), rate=1e-9),
        BenchPlan(prompts(1), rate=float("nan")),
        BenchPlan(prompts(1), levels=(2,), load_prompts=0),
        BenchPlan(prompts(1), levels=(2,), load_prompts=-1, by_workload=True),
        BenchPlan(prompts(1), control_prompts=-1),
        BenchPlan(prompts(1), warmup=-1),
        BenchPlan(prompts(1), seed=2**63),
        BenchPlan(prompts(1), sampling=Sampling(max_tokens=2**64)),
        BenchPlan(prompts(1), repeats=10**30),
    ],
)
def test_impossible_plans_are_refused_with_a_sentence(plan: BenchPlan) -> None:
    """What can't be run is said before anything is sent."""
    with pytest.raises(UsageError):
        check_plan(plan)


@pytest.mark.parametrize(
    "plan",
    [
        BenchPlan(prompts(1), seed=-(2**63), budget_s=366 * 86400.0),
        BenchPlan(prompts(1), seed=2**63 - 1, rate=0.001, warmup=200_000),
        BenchPlan(prompts(1), levels=(2,), load_prompts=1, sampling=Sampling(max_tokens=10_000_000)),
    ],
)
def test_a_plan_at_its_limits_can_be_kept_and_read_again(tmp_path: Path, plan: BenchPlan) -> None:
    """What is accepted does not fail when its file is opened, which would be after the engines were loaded."""
    BenchFile.create(tmp_path / "b.jsonl", BenchHeader("b", 0.0, plan)).close()
    check_plan(plan)
    assert load(tmp_path / "b.jsonl").header.plan == plan


def test_thousands_of_workloads_are_laid_out_and_counted_soon() -> None:
    """A file may name a workload in each row: no work grows with rows times workloads."""
    own = tuple(replace(prompt, workload=prompt.id) for prompt in prompts(2_000))
    began = time.process_time()
    plan = BenchPlan(own, control_prompts=0)
    found = [sample(place(quad, 0, quad.blocks[0].items[0]), 0.02) for quad in schedule(plan)]
    schedule(replace(plan, levels=(2,)))
    assert len(summarise(plan, found, planned=1).workloads) == 2_000
    assert time.process_time() - began < 10.0  # it was minutes


def test_a_plan_of_too_many_requests_is_refused() -> None:
    """A typo in the repeats does not start a run of days."""
    with pytest.raises(UsageError, match="200,000"):
        schedule(BenchPlan(prompts(10), repeats=100_000))
