"""What the textbook predicts for a run, beside what was measured, and the main cause of the gap.

Leviathan, Kalman, Matias 2023 (arXiv 2211.17192): if every drafted token is accepted with the same chance a, and one
drafted token costs c target steps, then with k drafted tokens

    E[tokens per step] = (1 - a^(k+1)) / (1 - a)        speedup = E / (k c + 1)

a is the truncated-geometric maximum-likelihood estimate A / (A + R), R = steps that rejected a draft; the acceptance
rate would be too low, since it counts drafts behind a rejection. Real engines draft only in a share q of their steps
and pay even when they do not, hence the corrected line

    speedup = tokens per step / ((1 - q) r0 + q rv)

with r0, rv = median gap of undrafted / drafted steps over the standard engine's median gap, and c = (rv - 1) / k.
All of it comes from the same run: an explanation and a consistency check, not a forecast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from statistics import median

from specdemo.core.events import Tokens
from specdemo.core.gtest import p_value
from specdemo.core.outcome import Outcome
from specdemo.core.results import SideMetrics, Theory

REJECTED_BELOW = 0.01
CLOSE = 0.05
"""A prediction within 5 % of the measurement needs no cause."""

_WAITING = "The prediction needs the engine's numbers per step."


def theory(
    standard: Outcome,
    speculative: Outcome,
    metrics: SideMetrics,
    *,
    measured: float | None,
    k: int | None = None,
) -> Theory:
    """The theory line of one pair. ``metrics`` are the speculative side's, ``measured`` is its decode speedup.

    ``k`` is the draft length if the engine's own number is missing. What cannot be estimated is None.
    """
    spec = speculative.finished.speculation if speculative.finished else None
    if spec is None:
        return Theory(k=k, measured_speedup=measured, reasons=(("a", _WAITING),))
    k = spec.max_draft or k
    if spec.steps <= 0 or spec.drafted <= 0 or k is None:
        reason = "No drafts were proposed." if k is not None else "The draft length is unknown."
        return Theory(k=k, measured_speedup=measured, reasons=(("a", reason),))
    per_step = tuple(zip(spec.accepted_per_step or (), spec.drafted_per_step or (), strict=False))
    rejected = _rejections(per_step, spec.histogram, spec.steps)
    a = spec.accepted / (spec.accepted + rejected) if rejected is not None and spec.accepted + rejected else None
    expected = expected_tokens(a, k) if a is not None else None
    decode_steps = metrics.steps - 1 if metrics.steps is not None else 0
    coverage = spec.steps / decode_steps if decode_steps >= spec.steps else None
    undrafted, drafted = None, None
    if coverage is not None:  # otherwise chunks are not steps
        undrafted, drafted = step_costs(standard, speculative, always_drafted=coverage == 1.0)
    per = metrics.tokens_per_step
    c = (drafted - 1.0) / k if drafted is not None else None
    textbook = expected / (k * c + 1.0) if expected is not None and c is not None else None
    corrected = corrected_speedup(per, coverage, undrafted, drafted)
    p = p_value(per_step, a) if a is not None else None
    found = _Factors(expected, 1.0 + spec.accepted / spec.steps, per, coverage, undrafted, drafted, textbook, corrected)
    return Theory(
        a=a,
        c=c,
        k=k,
        expected_tokens_per_step=expected,
        textbook_speedup=textbook,
        corrected_speedup=corrected,
        measured_speedup=measured,
        coverage=coverage,
        cause=cause(found, measured, rejected=p is not None and p < REJECTED_BELOW),
        tokens_per_step=per,
        undrafted_step_cost=undrafted,
        drafted_step_cost=drafted,
        iid_p_value=p,
        iid_rejected=None if p is None else p < REJECTED_BELOW,
    )


def expected_tokens(a: float, k: int) -> float:
    """Leviathan's E[tokens per step]; at a = 1 every step delivers k + 1."""
    return float(k + 1) if a >= 1.0 else (1.0 - a ** (k + 1)) / (1.0 - a)


def textbook_speedup(a: float, k: int, c: float) -> float:
    """Leviathan's speedup for acceptance ``a``, draft length ``k`` and draft cost ``c`` (in target steps)."""
    return expected_tokens(a, k) / (k * c + 1.0)


def corrected_speedup(
    tokens_per_step: float | None, coverage: float | None, undrafted: float | None, drafted: float | None
) -> float | None:
    """Tau / ((1-q) r0 + q rv); a cost that no step has is not needed."""
    if tokens_per_step is None or coverage is None:
        return None
    cost = 0.0
    for share, price in ((1.0 - coverage, undrafted), (coverage, drafted)):
        if share > 0.0:
            if price is None:
                return None
            cost += share * price
    return tokens_per_step / cost if cost > 0.0 else None


def _rejections(
    per_step: Sequence[tuple[int, int]], histogram: tuple[int, ...] | None, steps: int
) -> int | None:
    """Steps that rejected a draft. Without step lists every step is taken to have drafted the longest length."""
    if per_step:
        return sum(accepted < drafted for accepted, drafted in per_step)
    if histogram:
        return steps - histogram[-1]
    return None


def step_costs(
    standard: Outcome, speculative: Outcome, *, always_drafted: bool = False
) -> tuple[float | None, float | None]:
    """(r0, rv): median gap of undrafted and of drafted steps, in median gaps of the standard engine.

    A refused draft cannot be told from no draft in a stream, so single tokens stand for undrafted steps and bursts for
    drafted ones, unless every step drafted.
    """
    gaps = [after.at - before.at for before, after in pairwise(_chunks(standard))]
    base = median(gaps) if gaps else 0.0
    if base <= 0.0:
        return None, None
    single: list[float] = []
    burst: list[float] = []
    for before, after in pairwise(_chunks(speculative)):
        (burst if always_drafted or len(after.ids) > 1 else single).append(after.at - before.at)
    return _over(single, base), _over(burst, base)


def _chunks(outcome: Outcome) -> list[Tokens]:
    return [chunk for chunk in outcome.chunks if chunk.ids]


def _over(gaps: list[float], base: float) -> float | None:
    return median(gaps) / base if gaps else None


@dataclass(frozen=True, slots=True)
class _Factors:
    """The numbers between the textbook's speedup and the measured one."""

    expected: float | None
    length: float
    tokens_per_step: float | None
    coverage: float | None
    undrafted: float | None
    drafted: float | None
    textbook: float | None
    corrected: float | None


def cause(found: _Factors, measured: float | None, *, rejected: bool) -> str:
    """One sentence: why measured and textbook speedup differ. Names the factor that moves the prediction most.

    measured / textbook =
    (mean length / E) · (tokens per step / mean length) · (rv / step cost) · (measured / corrected)
    """
    textbook, corrected = found.textbook, found.corrected
    if not textbook or not corrected or not measured or not found.expected or not found.tokens_per_step:
        return "Too little is known of this run to explain the difference."
    ratio = measured / textbook
    if abs(log(ratio)) <= log(1.0 + CLOSE):
        return f"As predicted: measured {measured:.2f}x, textbook {textbook:.2f}x."
    share = found.coverage or 0.0
    cost = found.tokens_per_step / corrected
    factors = {
        "iid": found.length / found.expected,
        "coverage": found.tokens_per_step / found.length,
        "cost": (found.drafted or cost) / cost,
        "rest": measured / corrected,
    }
    down = ratio < 1.0
    name = min(factors, key=lambda key: factors[key]) if down else max(factors, key=lambda key: factors[key])
    lead = f"Measured {measured:.2f}x against {textbook:.2f}x in the textbook, mainly because "
    uneven = " (one fixed acceptance chance is rejected for this run)" if rejected else ""
    return lead + {
        "iid": (
            f"acceptance is uneven: {found.length:.2f} tokens per drafting step where {found.expected:.2f} were "
            f"expected{uneven}."
        ),
        "coverage": (
            f"only {share:.0%} of the decode steps had a draft to check, so a step gave {found.tokens_per_step:.2f} "
            f"tokens and not {found.length:.2f}."
        ),
        "cost": (
            f"steps without a draft cost {found.undrafted or 1.0:.2f} standard steps, and steps with one "
            f"{found.drafted or 1.0:.2f}."
        ),
        "rest": (
            f"single steps varied: step counts and median step times explain {corrected:.2f}x, the rest is noise or "
            "stalls."
        ),
    }[name]

