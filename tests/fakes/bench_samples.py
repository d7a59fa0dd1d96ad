"""Samples of an imagined benchmark, for tests of what is computed from them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace

from specdemo.bench.plan import BenchPlan
from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.sample import Place, Sample
from specdemo.bench.schedule import Item, Quad, schedule
from specdemo.core.events import Side
from specdemo.core.prompt import Message

TOKENS = 101


def prompts(count: int, workload: str = "work") -> tuple[BenchPrompt, ...]:
    """Prompts named p0, p1, … of one workload."""
    return tuple(BenchPrompt(f"{workload}-p{i}", workload, (Message("user", f"{workload} {i}"),)) for i in range(count))


def place(quad: Quad, slot: int, item: Item, **more: object) -> Place:
    """The place of an item of a quad."""
    block = quad.blocks[slot]
    found = Place(item.key, quad.id, slot, block.arm, quad.kind, quad.level, quad.workload, item.prompt_id, item.copy)
    return replace(found, **more)  # type: ignore[arg-type]


def sample(where: Place, seconds_per_token: float, *, start: float = 0.0, null: bool = False, **more: object) -> Sample:
    """A finished request of 101 tokens with the given decode time per token, 0.1 s to the first."""
    arm_b = where.arm == "B" and where.kind == "measure" and not null
    decode = seconds_per_token * (TOKENS - 1)
    ended = start + 0.1 + decode
    made = Sample(
        where,
        Side.SPECULATIVE if arm_b else Side.STANDARD,
        "finished",
        start,
        start,
        ended,
        prompt_tokens=20,
        output_tokens=TOKENS,
        ttft_s=0.1,
        tpot_s=seconds_per_token,
        e2el_s=0.1 + decode,
        decode_s=decode,
        decode_tokens=TOKENS - 1,
        steps=51 if arm_b else TOKENS,
        drafting_steps=40 if arm_b else None,
        drafted=120 if arm_b else None,
        accepted=50 if arm_b else None,
        rejected_steps=30 if arm_b else None,
        histogram=(10, 20, 5, 5, 0) if arm_b else (),
        gap_s=seconds_per_token,
        gap_drafted_s=seconds_per_token * 2 if arm_b else None,
        gap_undrafted_s=seconds_per_token * 1.1 if arm_b else None,
        token_ids=tuple(range(TOKENS)),
        finish_reason="length",
    )
    return replace(made, **more)  # type: ignore[arg-type]


def session(
    plan: BenchPlan, speedup: Callable[[str, int], float] | float, *, noise: float = 0.01, seed: int = 1
) -> list[Sample]:
    """All samples of a plan: ``speedup`` by prompt id and level, log-normal run noise, blocks one after another."""
    rng = random.Random(seed)
    base = {prompt.id: 0.02 * math.exp(rng.gauss(0, 0.3)) for prompt in plan.prompts}
    found: list[Sample] = []
    clock = 0.0
    for quad in schedule(plan):
        for slot, block in enumerate(quad.blocks):
            ends = []
            for item in block.items:
                gain = speedup if isinstance(speedup, float) else speedup(item.prompt_id, quad.level)
                faster = gain if block.arm == "B" and quad.kind == "measure" and not plan.null else 1.0
                seconds = base[item.prompt_id] / faster * math.exp(rng.gauss(0, noise))
                made = sample(place(quad, slot, item), seconds, start=clock, null=plan.null)
                found.append(made)
                ends.append(made.ended_at)
            clock = max(ends)
    return found


def failed(one: Sample, kind: str = "rejected") -> Sample:
    """The sample as a failure of that kind."""
    return Sample(one.place, one.side, "failed", one.intended_at, one.started_at, one.started_at, kind, "no")  # type: ignore[arg-type]


def only(samples: Sequence[Sample], arm: str) -> list[Sample]:
    """The samples of one arm."""
    return [one for one in samples if one.place.arm == arm]
