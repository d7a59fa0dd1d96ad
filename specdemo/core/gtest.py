"""Does one fixed acceptance chance describe a run? A G-test on accepted tokens per step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import erfc, exp, log, pi, sqrt

SMALLEST_CELL = 5.0
"""Cells with a smaller expected count are pooled with their neighbour; below it the test is not trustworthy."""


MOST_DRAFTED = 1024
"""Longest draft that is tested; no engine drafts more in a step, and the work grows with it."""


def expected_counts(per_step: Sequence[tuple[int, int]], a: float) -> list[float]:
    """Steps expected to accept 0, 1, … tokens if each drafted token is accepted with chance ``a``.

    ``per_step``: (accepted, drafted). A step that drafted d accepts exactly j < d with chance (1-a) a^j, all d with
    chance a^d.
    """
    longest = max((drafted for _, drafted in per_step), default=0)
    counts = [0.0] * (longest + 1)
    for drafted, steps in Counter(drafted for _, drafted in per_step).items():
        chance = float(steps)
        for j in range(drafted):
            counts[j] += chance * (1.0 - a)
            chance *= a
        counts[drafted] += chance
    return counts


def p_value(per_step: Sequence[tuple[int, int]], a: float) -> float | None:
    """Chance of a histogram at least this unlike the fitted one; None with too few steps to test, or drafts
    of a length that cannot be.

    ``a`` was estimated from the same steps, which costs one degree of freedom beside the fixed total.
    """
    if max((drafted for _, drafted in per_step), default=0) > MOST_DRAFTED:
        return None
    expected = expected_counts(per_step, a)
    observed = [0.0] * len(expected)
    for accepted, drafted in per_step:
        observed[min(accepted, drafted)] += 1.0
    cells = _pooled(observed, expected)
    freedom = len(cells) - 2
    if freedom < 1:
        return None
    statistic = 2.0 * sum(seen * log(seen / wanted) for seen, wanted in cells if seen > 0.0)
    return chi2_tail(max(0.0, statistic), freedom)


def _pooled(observed: Sequence[float], expected: Sequence[float]) -> list[tuple[float, float]]:
    """Neighbouring cells joined until each expects at least SMALLEST_CELL; a small rest joins the last cell."""
    cells: list[tuple[float, float]] = []
    seen = wanted = 0.0
    for count, mean in zip(observed, expected, strict=True):
        seen, wanted = seen + count, wanted + mean
        if wanted >= SMALLEST_CELL:
            cells.append((seen, wanted))
            seen = wanted = 0.0
    if wanted > 0.0 and cells:
        last = cells.pop()
        cells.append((last[0] + seen, last[1] + wanted))
    return cells


def chi2_tail(x: float, freedom: int) -> float:
    """P(chi-squared with ``freedom`` degrees > x), by the finite sums for whole degrees (Abramowitz, Stegun 26.4.4)."""
    half = x / 2.0
    if freedom % 2:
        total = erfc(sqrt(half))
        term = exp(-half) * sqrt(2.0 * x / pi)
        for n in range(1, freedom // 2 + 1):
            total += term
            term *= x / (2 * n + 1)
        return min(1.0, total)
    total = term = exp(-half)
    for n in range(1, freedom // 2):
        term *= half / n
        total += term
    return min(1.0, total)
