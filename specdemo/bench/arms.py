"""One arm's plain numbers: tokens, time, throughput, latency percentiles, failures by reason. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from specdemo.bench.sample import Sample
from specdemo.bench.statistics import Percentile, percentile

LATENCIES = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True)
class ArmTotals:
    """Sums over an arm's requests at one level.

    ``seconds`` adds up the blocks' walls (first start to last end), ``tokens_per_s`` = tokens / seconds, ramp and
    tail included; ``steady_tokens_per_s`` counts only while all workers were busy (a request's tokens are spread
    evenly over its decoding for that), None at level 1. Latencies are over finished requests only, in s;
    ``ttft`` counts from the intended start.
    """

    requests: int
    finished: int
    failed: int
    failures: tuple[tuple[str, int], ...]
    tokens: int
    seconds: float
    tokens_per_s: float | None
    steady_tokens_per_s: float | None
    ttft: tuple[Percentile, ...]
    tpot: tuple[Percentile, ...]
    cached_tokens: int | None
    memory_bytes: int | None = None


def totals(samples: Sequence[Sample]) -> ArmTotals:
    """The arm's numbers; ``samples`` are of one arm and one level."""
    good = [sample for sample in samples if sample.ok]
    empty = sum(1 for sample in samples if sample.state == "finished" and not sample.ok)
    reasons = Counter(str(sample.failure) for sample in samples if sample.state == "failed")
    if empty:
        reasons["empty"] = empty
    blocks: dict[tuple[str, int, int, int], list[Sample]] = defaultdict(list)
    for sample in samples:
        place = sample.place
        blocks[place.quad, place.slot, place.attempt, place.session].append(sample)
    seconds = sum(_wall(block) for block in blocks.values())
    tokens = sum(sample.output_tokens or 0 for sample in good)
    cached = [sample.cached_tokens for sample in good if sample.cached_tokens is not None]
    return ArmTotals(
        requests=len(samples),
        finished=len(good),
        failed=len(samples) - len(good),
        failures=tuple(sorted(reasons.items())),
        tokens=tokens,
        seconds=seconds,
        tokens_per_s=tokens / seconds if tokens and seconds > 0.0 else None,
        steady_tokens_per_s=_steady(list(blocks.values())),
        ttft=tuple(percentile(_first_tokens(good), q) for q in LATENCIES),
        tpot=tuple(percentile([s.tpot_s for s in good if s.tpot_s is not None], q) for q in LATENCIES),
        cached_tokens=sum(cached) if cached else None,
    )


def _wall(block: Sequence[Sample]) -> float:
    return max(sample.ended_at for sample in block) - min(sample.intended_at for sample in block)


def _first_tokens(samples: Sequence[Sample]) -> list[float]:
    return [s.ttft_s + s.started_at - s.intended_at for s in samples if s.ttft_s is not None]


def _steady(blocks: Sequence[Sequence[Sample]]) -> float | None:
    """Tokens per second while ``level`` requests were in flight, over blocks with more requests than workers."""
    tokens = seconds = 0.0
    for block in blocks:
        level = block[0].place.level
        if level < 2 or len(block) <= level:
            continue
        for start, end in _busy(block, level):
            seconds += end - start
            tokens += sum(_tokens_between(sample, start, end) for sample in block if sample.ok)
    return tokens / seconds if seconds > 0.0 else None


def _busy(block: Sequence[Sample], level: int) -> list[tuple[float, float]]:
    """The stretch with ``level`` requests in flight; the hand-over between two requests is no gap."""
    starts = sorted(s.started_at for s in block)
    ends = sorted(s.ended_at for s in block)
    if len(block) < level:
        return []
    ramp_over, tail_begins = starts[level - 1], ends[len(block) - level]
    return [(ramp_over, tail_begins)] if tail_begins > ramp_over else []


def _tokens_between(sample: Sample, start: float, end: float) -> float:
    first = sample.started_at + (sample.ttft_s or 0.0)
    length = sample.ended_at - first
    tokens = float(sample.output_tokens or 0)
    if length <= 0.0:
        return tokens if start <= sample.ended_at <= end else 0.0
    return tokens * max(0.0, min(end, sample.ended_at) - max(start, first)) / length
