"""The order of a benchmark: quads of blocks, alternating arms, levels at random, all from one seed. Pure.

A block is one arm's turn: one request at level 1, a closed loop of requests above, a timetable in open mode. A quad is
four blocks A B B A or B A A B, so that a linear drift cancels inside it. Run order of the quads is random.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Literal

from specdemo.bench.plan import BenchPlan, check_plan
from specdemo.bench.prompts import BenchPrompt

Arm = Literal["A", "B"]
Kind = Literal["measure", "control"]
SMALLEST_GROUP = 8


@dataclass(frozen=True, slots=True)
class Item:
    """One request. ``key`` is unique in the benchmark; ``at`` is its intended start in its block (s, open mode)."""

    key: str
    prompt_id: str
    copy: int = 0
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """One arm's turn inside a quad; ``slot`` 0..3."""

    slot: int
    arm: Arm
    items: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Quad:
    """Four blocks over the same prompts. ``workload`` is "" for a mix; a control quad has the standard engine twice."""

    id: str
    kind: Kind
    level: int
    workload: str
    blocks: tuple[Block, Block, Block, Block]


def schedule(plan: BenchPlan) -> tuple[Quad, ...]:
    """All quads in the order to run them. Raises UsageError for an impossible plan."""
    check_plan(plan)
    rng = random.Random(plan.seed)  # noqa: S311 - an order to be repeated, not a secret
    levels = list(plan.levels)
    rng.shuffle(levels)
    quads: list[Quad] = []
    turn = count()
    for level in levels:
        found = _single(plan, turn) if level == 1 and plan.rate is None else _loaded(plan, level, rng, turn)
        rng.shuffle(found)
        quads += found if plan.budget_s is None else _controls_early(found)
    return tuple(quads)


def _controls_early(quads: Sequence[Quad]) -> list[Quad]:
    """Under a time budget every other quad is a control until all are done, so that a cut leaves one."""
    controls = [quad for quad in quads if quad.kind == "control"]
    others = [quad for quad in quads if quad.kind != "control"]
    mixed = [quad for pair in zip(others, controls, strict=False) for quad in pair]
    return mixed + others[len(controls) :] + controls[len(others) :]


def _single(plan: BenchPlan, turn: count[int]) -> list[Quad]:
    """Level 1: one prompt a quad; the A/A control's quads among them."""
    quads = [
        _quad(plan, "measure", 1, prompt.workload, [prompt], 1, repeat, next(turn))
        for repeat in range(plan.repeats)
        for prompt in plan.prompts
    ]
    if not plan.null:
        chosen = _spread(plan.prompts, plan.control_prompts)
        quads += [_quad(plan, "control", 1, prompt.workload, [prompt], 1, 0, next(turn)) for prompt in chosen]
    return quads


def _loaded(plan: BenchPlan, level: int, rng: random.Random, turn: count[int]) -> list[Quad]:
    """Above level 1: blocks of many requests; a mix of workloads in one or two groups, or one workload a group."""
    kinds: dict[str, list[BenchPrompt]] = {}
    for prompt in plan.prompts:  # grouped in one go: a file may give every row a workload of its own
        kinds.setdefault(prompt.workload, []).append(prompt)
    kinds = {name: _spread(found, plan.load_prompts) for name, found in kinds.items()}
    chosen = [prompt for found in kinds.values() for prompt in found]
    if plan.by_workload:
        groups = list(kinds.items())
    else:
        parts = 2 if len(chosen) >= 2 * SMALLEST_GROUP else 1
        groups = [("", chosen[part::parts]) for part in range(parts)]
    quads = []
    for repeat in range(plan.repeats):
        for workload, group in groups:
            copies = 1 if plan.rate is not None else max(1, -(-plan.per_worker * level // len(group)))
            shuffled = rng.sample(group, len(group))
            quads.append(_quad(plan, "measure", level, workload, shuffled, copies, repeat, next(turn)))
    return quads


def _quad(
    plan: BenchPlan,
    kind: Kind,
    level: int,
    workload: str,
    prompts: Sequence[BenchPrompt],
    copies: int,
    repeat: int,
    turn: int,
) -> Quad:
    name = prompts[0].id if len(prompts) == 1 else f"{workload or 'mix'}-{len(prompts)}-{turn}"
    quad_id = f"{kind}/c{level}/{name}/r{repeat}"
    order: tuple[Arm, Arm, Arm, Arm] = ("A", "B", "B", "A") if turn % 2 == 0 else ("B", "A", "A", "B")
    starts = _timetable(plan, len(prompts) * copies, turn)
    blocks = []
    for slot, arm in enumerate(order):
        items = tuple(
            Item(
                f"{quad_id}/{slot}{arm}/{prompt.id}/{copy}",
                prompt.id,
                copy,
                starts[copy * len(prompts) + place] if starts else None,
            )
            for copy in range(copies)
            for place, prompt in enumerate(prompts)
        )
        blocks.append(Block(slot, arm, items))
    return Quad(quad_id, kind, level, workload, (blocks[0], blocks[1], blocks[2], blocks[3]))


def _timetable(plan: BenchPlan, requests: int, turn: int) -> list[float]:
    """Intended starts of an open-mode block: Poisson arrivals, the same for all four blocks of a quad."""
    if plan.rate is None:
        return []
    rng = random.Random(f"{plan.seed}/{turn}")  # noqa: S311 - arrivals to be repeated, not a secret
    at, starts = 0.0, []
    for _ in range(requests):
        starts.append(at)
        at += rng.expovariate(plan.rate)
    return starts


def _spread(prompts: Sequence[BenchPrompt], limit: int | None) -> list[BenchPrompt]:
    """At most ``limit`` prompts, taken evenly from the list."""
    if limit is None or limit >= len(prompts):
        return list(prompts)
    return [prompts[i * len(prompts) // limit] for i in range(limit)]


def requests(quads: Sequence[Quad]) -> int:
    """How many requests the quads hold, warm-up not counted."""
    return sum(len(block.items) for quad in quads for block in quad.blocks)
