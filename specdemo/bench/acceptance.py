"""Acceptance over many requests, three ways, and the speedup that it predicts. Pure.

rate              accepted / drafted, pooled (sum over sum, never a mean of rates)
mean_length       1 + accepted / drafting steps (vLLM's acceptance length: tokens per *drafted* step)
tokens_per_step   tokens / all decode steps, drafting or not: this one drives the speed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from specdemo.bench.sample import Sample
from specdemo.core.theory import corrected_speedup

NO_DRAFTS = "No drafts were proposed."
NO_NUMBERS = "The engine sent no numbers per request."


@dataclass(frozen=True, slots=True)
class PooledAcceptance:
    """Pooled over ``requests`` requests of arm B. ``coverage`` is the share of decode steps that had a draft.

    ``per_token`` is the acceptance of one drafted token, drafts behind a rejection not counted (the textbook's a).
    ``per_position[j]`` is the share of drafting steps that accepted more than j. ``undrafted_cost`` and
    ``drafted_cost`` are step times relative to arm A's; ``predicted`` is tokens_per_step over the mean cost.
    """

    requests: int = 0
    rate: float | None = None
    mean_length: float | None = None
    tokens_per_step: float | None = None
    coverage: float | None = None
    per_token: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    per_position: tuple[float, ...] = ()
    undrafted_cost: float | None = None
    drafted_cost: float | None = None
    predicted: float | None = None
    reason: str | None = None


def pooled(arm_a: Sequence[Sample], arm_b: Sequence[Sample]) -> PooledAcceptance:
    """Acceptance of arm B's finished requests; step costs against arm A's requests for the same prompts."""
    good = [sample for sample in arm_b if sample.ok]
    stepped = [sample for sample in good if sample.tokens_per_step is not None]
    decode_steps = sum((sample.steps or 1) - 1 for sample in stepped)
    per_step = sum(sample.decode_tokens or 0 for sample in stepped) / decode_steps if decode_steps else None
    told = [s for s in good if s.drafted is not None and s.accepted is not None and s.drafting_steps is not None]
    if not told:
        return PooledAcceptance(len(good), tokens_per_step=per_step, reason=NO_NUMBERS)
    drafted = sum(sample.drafted or 0 for sample in told)
    accepted = sum(sample.accepted or 0 for sample in told)
    steps = sum(sample.drafting_steps or 0 for sample in told)
    if not drafted or not steps:
        return PooledAcceptance(
            len(told),
            tokens_per_step=per_step,
            coverage=0.0 if decode_steps else None,
            drafted=0,
            accepted=0,
            reason=NO_DRAFTS,
        )
    both = [sample for sample in told if sample.tokens_per_step is not None]
    all_steps = sum((sample.steps or 1) - 1 for sample in both)
    coverage = min(1.0, sum(sample.drafting_steps or 0 for sample in both) / all_steps) if all_steps else None
    rejected = [sample.rejected_steps for sample in told]
    refusals = sum(count for count in rejected if count is not None) if None not in rejected else None
    undrafted, with_draft = _costs(arm_a, told)
    return PooledAcceptance(
        len(told),
        accepted / drafted,
        1.0 + accepted / steps,
        per_step,
        coverage,
        accepted / (accepted + refusals) if refusals is not None and accepted + refusals else None,
        drafted,
        accepted,
        _positions([sample.histogram for sample in told], steps),
        undrafted,
        with_draft,
        corrected_speedup(per_step, coverage, undrafted, with_draft),
    )


def _positions(histograms: Sequence[tuple[int, ...]], steps: int) -> tuple[float, ...]:
    longest = max((len(histogram) for histogram in histograms), default=0)
    total = [sum(h[i] for h in histograms if i < len(h)) for i in range(longest)]
    return tuple(sum(total[j:]) / steps for j in range(1, longest))


def _costs(arm_a: Sequence[Sample], arm_b: Sequence[Sample]) -> tuple[float | None, float | None]:
    """Median over requests of (B's step gap / A's step gap for the same prompt), without and with a draft."""
    gaps: dict[str, list[float]] = {}
    for sample in arm_a:
        if sample.ok and sample.gap_s:
            gaps.setdefault(sample.place.prompt_id, []).append(sample.gap_s)
    base = {name: median(values) for name, values in gaps.items()}
    plain = [
        s.gap_undrafted_s / base[s.place.prompt_id] for s in arm_b if s.gap_undrafted_s and s.place.prompt_id in base
    ]
    drafted = [
        s.gap_drafted_s / base[s.place.prompt_id] for s in arm_b if s.gap_drafted_s and s.place.prompt_id in base
    ]
    return median(plain) if plain else None, median(drafted) if drafted else None
