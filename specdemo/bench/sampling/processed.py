"""The distribution that a sampled token must come from, out of the reference's best raw logprobs. Pure.

vLLM's order: divide by temperature, keep top_k, renormalise, keep the smallest set with mass >= top_p (a token stays if
the mass before it is below top_p), renormalise. Candidates that are not listed form one cell, the tail, whose mass is
known at temperature 1 without top_k; whatever is computed from these cells is exact, only coarser than token by token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specdemo.bench.sampling.settings import SamplingConfig
from specdemo.core.events import TopToken


@dataclass(frozen=True, slots=True)
class Expected:
    """Cells best first: ``ids``, their probabilities after processing, and their raw logprobs (nats).

    ``tail`` is the probability of all tokens not listed, scored as ``tail_logprob`` (that of the last one listed).
    ``kth_logprob``: the worst logprob that top_k keeps, None if off or beyond the list. ``before`` is the mass before
    each listed token ahead of the top_p cut (also for those that it removes), for the violation check.
    """

    ids: tuple[int, ...]
    probs: tuple[float, ...]
    logprobs: tuple[float, ...]
    tail: float
    tail_logprob: float
    kth_logprob: float | None
    before: tuple[tuple[int, float], ...]


def expected(candidates: Sequence[TopToken], config: SamplingConfig, listed: int) -> Expected | None:
    """The cells for one position, or None if the list can't give them (decided by the context alone, so unbiased)."""
    best = [c for c in sorted(candidates, key=lambda c: -c.logprob) if c.id is not None][:listed]
    if not best:
        return None
    cut = config.top_k if 0 < config.top_k <= len(best) else 0
    if config.top_k and not cut:
        return None
    if not cut and config.temperature != 1.0:
        return None
    kept = best[:cut] if cut else best
    if cut:
        top = kept[0].logprob / config.temperature
        weights = [math.exp(c.logprob / config.temperature - top) for c in kept]
        total = sum(weights)
        masses, tail = [w / total for w in weights], 0.0
    else:
        masses = [math.exp(c.logprob) for c in kept]
        tail = max(0.0, 1.0 - sum(masses))
    before, running = [], 0.0
    for candidate, mass in zip(kept, masses, strict=True):
        before.append((candidate.id or 0, running))
        running += mass
    if config.top_p < 1.0:
        nucleus = sum(mass < config.top_p for _, mass in before)
        if tail > 0.0 and nucleus == len(kept) and running < config.top_p:
            return None  # the nucleus reaches beyond the list
        kept, masses, tail = kept[:nucleus], masses[:nucleus], 0.0
    total = sum(masses) + tail
    return Expected(
        tuple(c.id or 0 for c in kept),
        tuple(mass / total for mass in masses),
        tuple(c.logprob for c in kept),
        tail / total,
        best[-1].logprob,
        best[cut - 1].logprob if cut else None,
        tuple(before),
    )


def violates(
    found: Expected, token: int, logprob: float, config: SamplingConfig, tolerances: tuple[float, float]
) -> bool:
    """Whether a sampled token lies outside what top_k or top_p allow, by more than rounding.

    ``tolerances``: of a logprob (nats), and of probability mass.
    """
    logprob_tolerance, mass_tolerance = tolerances
    if found.kth_logprob is not None and logprob < found.kth_logprob - logprob_tolerance:
        return True
    if config.top_p >= 1.0:
        return False
    mass = next((before for known, before in found.before if known == token), None)
    if mass is None:
        return found.tail == 0.0 and logprob < found.logprobs[-1] - logprob_tolerance
    return mass >= config.top_p + mass_tolerance
