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

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from specdemo.core.cause import cause
from specdemo.core.events import RequestSpeculation, Tokens
from specdemo.core.gtest import p_value
from specdemo.core.outcome import Outcome
from specdemo.core.results import SideMetrics, Theory
from specdemo.core.sentences import sentence

REJECTED_BELOW = 0.01
"""A run this unlikely under one fixed acceptance chance rejects it."""

_WAITING = sentence("needs_steps")


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
    if spec is None or spec.steps is None:
        return Theory(k=k, measured_speedup=measured, reasons=(("a", _WAITING),))
    k = spec.max_draft or k
    if spec.steps <= 0 or spec.drafted <= 0 or k is None:
        reason = sentence("no_drafts_proposed" if k is not None else "k_unknown")
        return Theory(k=k, measured_speedup=measured, reasons=(("a", reason),))
    per_step = _per_step(spec)
    rejected = _rejections(per_step, spec.histogram, spec.steps, k)
    a = spec.accepted / (spec.accepted + rejected) if rejected is not None and spec.accepted + rejected else None
    expected = expected_tokens(a, k) if a is not None else None
    decode_steps = metrics.steps - 1 if metrics.steps is not None else 0
    coverage = spec.steps / decode_steps if decode_steps >= spec.steps else None
    undrafted, drafted = None, None
    if coverage is not None:  # otherwise chunks are not steps
        undrafted, drafted = step_costs(standard, speculative, always_drafted=coverage == 1.0)
    per = metrics.tokens_per_step
    c = (drafted - 1.0) / k if drafted is not None else None
    # Steps that arrive all at once cost nothing here, and a speedup over nothing is none.
    textbook = expected / (k * c + 1.0) if expected is not None and c is not None and drafted else None
    corrected = corrected_speedup(per, coverage, undrafted, drafted)
    p = p_value(per_step, a) if a is not None else None
    rejects = None if p is None else p < REJECTED_BELOW
    return Theory(
        a=a,
        c=c,
        k=k,
        expected_tokens_per_step=expected,
        textbook_speedup=textbook,
        corrected_speedup=corrected,
        measured_speedup=measured,
        coverage=coverage,
        cause=cause(
            measured,
            textbook=textbook,
            corrected=corrected,
            expected=expected,
            length=1.0 + spec.accepted / spec.steps,
            tokens_per_step=per,
            coverage=coverage,
            undrafted=undrafted,
            drafted=drafted,
            rejected=bool(rejects),
        ),
        tokens_per_step=per,
        undrafted_step_cost=undrafted,
        drafted_step_cost=drafted,
        iid_p_value=p,
        iid_rejected=rejects,
    )


def expected_tokens(a: float, k: int) -> float:
    """Leviathan's E[tokens per step]; at a = 1 every step delivers k + 1."""
    return float(k + 1) if a >= 1.0 else (1.0 - a ** (k + 1)) / (1.0 - a)


def textbook_speedup(a: float, k: int, c: float) -> float:
    """Leviathan's speedup for acceptance ``a``, draft length ``k`` and draft cost ``c`` (in target steps)."""
    return expected_tokens(a, k) / (k * c + 1.0)


def modelled_speedup(
    a: float, k: int, c: float, *, coverage: float = 1.0, batch: int = 1, room: float = math.inf
) -> float:
    """The textbook with two things that it leaves out: steps without a draft, and a batch that fills the device.

    ``coverage`` is the share of steps with a draft. ``room`` is how many tokens one pass carries before arithmetic and
    not memory limits it (a roofline): a pass over n tokens then costs max(1, n / room). With coverage 1 and room for
    all it is Leviathan's speedup.
    """
    plain = max(1.0, batch / room)
    verified = max(1.0, batch * (k + 1) / room)
    tokens = (1.0 - coverage) + coverage * expected_tokens(a, k)
    return tokens * plain / ((1.0 - coverage) * plain + coverage * (verified + k * c * plain))


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


def _per_step(spec: RequestSpeculation) -> tuple[tuple[int, int], ...]:
    """(accepted, drafted) of each step; () where one list is missing or the two do not belong together."""
    taken, offered = spec.accepted_per_step or (), spec.drafted_per_step or ()
    return tuple(zip(taken, offered, strict=True)) if len(taken) == len(offered) else ()


def _rejections(
    per_step: Sequence[tuple[int, int]], histogram: tuple[int, ...] | None, steps: int, k: int
) -> int | None:
    """Steps that rejected a draft. Without step lists every step is taken to have drafted all ``k`` tokens.

    A histogram may end at the last length that occurred; one that does not add up to the steps tells nothing.
    """
    if per_step:
        return sum(accepted < drafted for accepted, drafted in per_step)
    if histogram and sum(histogram) == steps:
        return steps - sum(histogram[k:])
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
    return max(0.0, median(gaps)) / base if gaps else None  # rounded stamps may step back
