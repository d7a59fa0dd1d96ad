"""Samples → results: speedup with intervals per workload, per load level and for the suite; control; identity. Pure.

The same function makes the live view, the final summary, the report rebuilt from a stored file, and the gate's numbers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal

from specdemo.bench.acceptance import PooledAcceptance, pooled
from specdemo.bench.arms import ArmTotals, totals
from specdemo.bench.identity import Identity, Split, identity
from specdemo.bench.plan import BenchPlan
from specdemo.bench.reliability import Reliability, reliability
from specdemo.bench.sample import Sample, latest
from specdemo.bench.statistics import (
    CONTROL_HALF_WIDTH,
    NOISY_SIGMA,
    NOTHING_SHARED,
    Interval,
    Shared,
    SpeedVerdict,
    break_even,
    depends_on_mix,
    exponential,
    geometric_mean,
    is_flat,
    ratio_of_totals,
    repeat_sigma,
    speed_verdict,
)

FAILURE_SHARE = 0.05
"""More failed requests than this on an arm at any level, and no winner is named."""
UNBOUNDED = "the prompts' times differ too much for an interval"
CONTROL_SHORT = "the A/A control has too little data"


@dataclass(frozen=True, slots=True)
class Result:
    """A comparison over some prompts at one level. Ratios above 1 mean that B is faster.

    ``speedup``: geometric mean of decode time per token, with ``narrow`` its 90 % interval; ``totals``: ratio of the
    seconds for the same tokens; ``whole``: geometric mean of whole request time per token, first token included.
    ``points`` are the prompts' own (id, ratio). ``caveats`` stand beside the verdict.
    """

    scope: Literal["suite", "workload", "level"]
    name: str
    level: int
    prompts: int
    speedup: Interval | None
    narrow: Interval | None
    verdict: SpeedVerdict
    totals: Interval | None
    whole: Interval | None
    depends_on_mix: bool
    throughput_ratio: float | None
    arm_a: ArmTotals
    arm_b: ArmTotals
    acceptance: PooledAcceptance
    points: tuple[tuple[str, float], ...]
    lengths_differ: int
    caveats: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """The A/A control: the standard engine against itself, and the run-to-run spread.

    ``passed``: interval holds 1 and is narrow enough; None when there was no control.
    """

    interval: Interval | None
    passed: bool | None
    sigma_a: float | None
    sigma_b: float | None
    noisy: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Summary:
    """All results. ``done`` and ``planned`` count requests. ``certified``: the speedup may be quoted as such."""

    null: bool
    null_passed: bool | None
    done: int
    planned: int
    suite: Result | None
    workloads: tuple[Result, ...]
    levels: tuple[Result, ...]
    break_even: int | None
    steps_flat: bool | None
    control: Control
    identity: Identity
    certified: bool
    why_not_certified: tuple[str, ...]
    reruns: int
    notes: tuple[tuple[str, int], ...]
    reliability: tuple[Reliability, ...] = ()


def summarise(
    plan: BenchPlan,
    samples: Iterable[Sample],
    *,
    planned: int,
    splits: Mapping[str, Split] | None = None,
    tolerance: float = 1e-3,
) -> Summary:
    """Results of what is there so far; nothing beyond the data is claimed."""
    every = list(samples)
    kept = latest(every)
    measured = [sample for sample in kept if sample.place.kind == "measure"]
    control = _control(kept)
    first = min(plan.levels)
    opened = plan.rate is not None
    base = [sample for sample in measured if sample.place.level == first]
    suite = _result("suite", "", first, base, opened=opened)
    names = {prompt.id: prompt.workload for prompt in plan.prompts}
    kinds: dict[str, list[Sample]] = {name: [] for name in plan.workloads}
    for sample in base:  # sorted in one go: a file may give every row a workload of its own
        kinds[names[sample.place.prompt_id]].append(sample)
    workloads = [_result("workload", name, first, found, opened=opened) for name, found in kinds.items()]
    levels = _levels(measured, opened=opened)
    found = identity(
        kept,
        splits or {},
        tolerance=tolerance,
        greedy=plan.sampling.greedy,
        drafted=_drafted(measured),
        opened=opened,
    )
    counted = reliability(kept)
    doubts = _doubts(suite, control, plan, counted)
    remarks: dict[str, int] = defaultdict(int)
    for sample in kept:
        for note in sample.notes:
            remarks[note] += 1
    steps = [r.acceptance.tokens_per_step for r in levels if r.acceptance.tokens_per_step is not None]
    return Summary(
        null=plan.null,
        null_passed=_null_passed(suite) if plan.null else None,
        done=len(kept),
        planned=planned,
        suite=suite,
        workloads=tuple(result for result in workloads if result is not None),
        levels=tuple(levels),
        break_even=break_even([(r.level, r.speedup) for r in levels]) if levels else None,
        steps_flat=is_flat(steps) if len(steps) > 1 else None,
        control=control,
        identity=found,
        certified=not doubts,
        why_not_certified=tuple(doubts),
        reruns=len({(s.place.quad, s.place.attempt) for s in every if s.place.attempt > 0}),
        notes=tuple(sorted(remarks.items())),
        reliability=counted,
    )


def _result(
    scope: Literal["suite", "workload", "level"], name: str, level: int, samples: Sequence[Sample], *, opened: bool
) -> Result | None:
    """``opened``: requests came at an open rate, so they shared their engine whatever the level says."""
    if not samples:
        return None
    arm_a = [sample for sample in samples if sample.place.arm == "A"]
    arm_b = [sample for sample in samples if sample.place.arm == "B"]
    shared = _shared(samples) if level > 1 or opened else NOTHING_SHARED
    decode = _pairs(samples, "decode")
    whole = _pairs(samples, "whole")
    logs = [math.log(a) - math.log(b) for _, a, b, _ in decode]
    wide, narrow = geometric_mean(logs, shared=shared), geometric_mean(logs, level=0.90, shared=shared)
    ratio = ratio_of_totals([a * n for _, a, _, n in decode], [b * n for _, _, b, n in decode], shared=shared)
    a, b = totals(arm_a), totals(arm_b)
    lengths = _lengths_differ(samples)
    return Result(
        scope=scope,
        name=name,
        level=level,
        prompts=len(decode),
        speedup=wide,
        narrow=narrow,
        verdict=speed_verdict(wide, narrow),
        totals=ratio,
        whole=geometric_mean([math.log(x) - math.log(y) for _, x, y, _ in whole], shared=shared),
        depends_on_mix=depends_on_mix(wide, ratio),
        throughput_ratio=exponential(math.log(b.tokens_per_s) - math.log(a.tokens_per_s))
        if a.tokens_per_s and b.tokens_per_s
        else None,
        arm_a=a,
        arm_b=b,
        acceptance=pooled(arm_a, arm_b),
        points=tuple((prompt, x / y) for prompt, x, y, _ in decode),
        lengths_differ=lengths,
        caveats=tuple(_caveats(a, b, lengths, arm_b[0].side.value if arm_b else "speculative")),
    )


def _pairs(samples: Sequence[Sample], measure: Literal["decode", "whole"]) -> list[tuple[str, float, float, float]]:
    """(prompt, geometric mean s/token A, the same B, mean tokens) for prompts that both arms answered."""
    times: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"A": [], "B": []})
    tokens: dict[str, list[int]] = defaultdict(list)
    for sample in samples:
        value = sample.seconds_per_token if measure == "decode" else sample.whole_seconds_per_token
        if value is not None and 0.0 < value < math.inf:
            times[sample.place.prompt_id][sample.place.arm].append(math.log(value))
            tokens[sample.place.prompt_id].append(sample.output_tokens or 0)
    return [
        (prompt, math.exp(fmean(arms["A"])), math.exp(fmean(arms["B"])), fmean(tokens[prompt]))
        for prompt, arms in sorted(times.items())
        if arms["A"] and arms["B"] and exponential(fmean(arms["A"]) - fmean(arms["B"])) is not None
    ]


def _shared(samples: Sequence[Sample]) -> Shared:
    """What the blocks of a quad have in common beyond their prompts: from each arm's two blocks in a quad."""
    blocks: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        value = sample.seconds_per_token
        if value is not None and 0.0 < value < math.inf:
            blocks[sample.place.quad, sample.place.arm][sample.place.slot].append(math.log(value))
    quads = {quad for quad, _ in blocks}
    squares = []
    for turns in blocks.values():
        means = [fmean(values) for values in turns.values()]
        if len(means) == 2:
            squares.append((means[0] - means[1]) ** 2 / 2)
    if not squares or not quads:
        return NOTHING_SHARED
    return Shared(fmean(squares) / len(quads), len(squares))


def _levels(measured: Sequence[Sample], *, opened: bool) -> list[Result]:
    """One result a level over the prompts that every level has, so that levels differ by load and nothing else."""
    seen: dict[int, set[str]] = defaultdict(set)
    for sample in measured:
        seen[sample.place.level].add(sample.place.prompt_id)
    if not seen:
        return []
    common = set.intersection(*seen.values())
    found = [
        _result(
            "level",
            str(level),
            level,
            [s for s in measured if s.place.level == level and s.place.prompt_id in common],
            opened=opened,
        )
        for level in sorted(seen)
    ]
    return [result for result in found if result is not None]


def _lengths_differ(samples: Sequence[Sample]) -> int:
    lengths: dict[str, dict[str, set[int]]] = defaultdict(lambda: {"A": set(), "B": set()})
    for sample in samples:
        if sample.ok:
            lengths[sample.place.prompt_id][sample.place.arm].add(sample.output_tokens or 0)
    return sum(1 for arms in lengths.values() if arms["A"] and arms["B"] and arms["A"] != arms["B"])


def _caveats(a: ArmTotals, b: ArmTotals, lengths: int, other: str = "speculative") -> list[str]:
    found = []
    for name, arm in (("standard", a), (other, b)):
        if arm.failed:
            reasons = ", ".join(f"{count} {reason}" for reason, count in arm.failures)
            found.append(f"{arm.failed} of {arm.requests} requests failed on the {name} arm ({reasons})")
        if arm.cached_tokens:
            found.append(f"{arm.cached_tokens} prompt tokens came from a prefix cache on the {name} arm")
    if lengths:
        found.append(f"outputs differ in length on {lengths} prompts; times are per token")
    return found


def _control(kept: Sequence[Sample]) -> Control:
    pairs = _pairs([sample for sample in kept if sample.place.kind == "control"], "decode")
    interval = geometric_mean([math.log(a) - math.log(b) for _, a, b, _ in pairs])
    sigma_a, sigma_b = (_sigma(kept, arm) for arm in ("A", "B"))
    noisy = any(sigma is not None and sigma > NOISY_SIGMA for sigma in (sigma_a, sigma_b))
    if interval is None or interval.half_width is None:
        ran = any(sample.place.kind == "control" for sample in kept)
        sentence = "The A/A control has too little data." if ran else "No A/A control was run."
        return Control(interval, None, sigma_a, sigma_b, noisy, sentence)
    passed = interval.holds(1.0) and interval.half_width <= CONTROL_HALF_WIDTH
    outcome = "passed" if passed else "did not pass"
    sentence = (
        f"The standard engine against itself gives {interval.estimate:.3f}x ±{interval.half_width:.1%} "
        f"on {interval.n} prompts: the control {outcome} (must hold 1 within ±{CONTROL_HALF_WIDTH:.0%})."
    )
    return Control(interval, passed, sigma_a, sigma_b, noisy, sentence)


def _sigma(kept: Sequence[Sample], arm: str) -> float | None:
    """Run-to-run spread of one arm's decode time, from the two runs of a prompt in each quad at level 1."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for sample in kept:
        value = sample.seconds_per_token
        if sample.place.arm == arm and sample.place.kind == "measure" and sample.place.level == 1 and value:
            groups[sample.place.quad, sample.place.prompt_id].append(value)
    return repeat_sigma(list(groups.values()))


def _drafted(measured: Sequence[Sample]) -> bool | None:
    told = [sample.drafted for sample in measured if sample.place.arm == "B" and sample.drafted is not None]
    return any(told) if told else None


def _doubts(suite: Result | None, control: Control, plan: BenchPlan, counted: Sequence[Reliability] = ()) -> list[str]:
    failed = [
        f"{one.failed} of {one.requests} requests failed {one.where('arm', levels=len(plan.levels) > 1)}"
        for one in counted
        if one.over(FAILURE_SHARE)
    ]
    if suite is None or suite.speedup is None:
        return ["no prompt was measured on both arms", *failed]
    found = []
    if suite.verdict.word == "not_enough_data":
        few = suite.prompts < 2
        found.append("fewer than two prompts were measured on both arms" if few else UNBOUNDED)
    found += failed
    if control.noisy:
        worst = max(sigma for sigma in (control.sigma_a, control.sigma_b) if sigma is not None)
        found.append(f"noisy host: repeats of one prompt differ by {worst:.0%} (limit {NOISY_SIGMA:.0%})")
    if not plan.null and control.passed is None:
        ran = any(one.kind == "control" for one in counted)
        found.append(CONTROL_SHORT if ran else "there was no A/A control")
    if not plan.null and control.passed is False:
        found.append("the A/A control did not pass")
    return found


def _null_passed(suite: Result | None) -> bool | None:
    if suite is None or suite.verdict.word == "not_enough_data":
        return None
    return suite.verdict.word not in ("faster", "slower")


def with_memory(result: Result, a: int | None, b: int | None) -> Result:
    """The result with both engines' memory beside their totals."""
    return replace(result, arm_a=replace(result.arm_a, memory_bytes=a), arm_b=replace(result.arm_b, memory_bytes=b))
