"""Speedup against draft length and method: which setting is best, by how much, and what the textbook says. Pure.

Each point is a benchmark of its own over the same prompts (the standard engine is measured anew beside it, so points
are paired by prompt). The best is named only with its paired interval against the next: often several are as good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from specdemo.bench.acceptance import PooledAcceptance
from specdemo.bench.record import BenchRecord
from specdemo.bench.statistics import Interval, SpeedVerdict, geometric_mean, speed_verdict
from specdemo.core.theory import textbook_speedup


@dataclass(frozen=True, slots=True)
class SweepPoint:
    """One setting. ``textbook`` is Leviathan's line from the reference point of its method, None without one."""

    method: str
    k: int
    id: str
    speedup: Interval | None
    verdict: SpeedVerdict
    acceptance: PooledAcceptance
    points: tuple[tuple[str, float], ...]
    textbook: float | None = None

    @property
    def label(self) -> str:
        """Method and draft length."""
        return f"{self.method} k={self.k}"


@dataclass(frozen=True, slots=True)
class Sweep:
    """All points by method and k. ``lead`` is best over next, prompt by prompt; ``as_good``: not clearly worse."""

    points: tuple[SweepPoint, ...]
    best: SweepPoint | None
    next: SweepPoint | None
    lead: Interval | None
    as_good: tuple[str, ...]


def sweep(records: Sequence[BenchRecord]) -> Sweep:
    """Order the points, draw the textbook line, name the best."""
    points = sorted((_point(record) for record in records), key=lambda point: (point.method, point.k))
    drawn = tuple(_with_textbook(point, points) for point in points)
    ranked = sorted((p for p in drawn if p.speedup is not None), key=_estimate, reverse=True)
    if not ranked:
        return Sweep(drawn, None, None, None, ())
    best = ranked[0]
    others = [(point, _paired(best, point)) for point in ranked[1:]]
    as_good = tuple(point.label for point, lead in others if lead is None or lead.holds(1.0))
    second = others[0] if others else (None, None)
    return Sweep(drawn, best, second[0], second[1], as_good)


def _estimate(point: SweepPoint) -> float:
    return point.speedup.estimate if point.speedup else 0.0


def _point(record: BenchRecord) -> SweepPoint:
    facts, suite = record.facts[1], record.summary().suite
    method = (facts.method if facts else None) or "speculative"
    k = (facts.k if facts else None) or 0
    if suite is None:
        return SweepPoint(method, k, record.header.id, None, SpeedVerdict("not_enough_data"), PooledAcceptance(), ())
    verdict = speed_verdict(suite.speedup, suite.narrow)
    return SweepPoint(method, k, record.header.id, suite.speedup, verdict, suite.acceptance, suite.points)


def _with_textbook(point: SweepPoint, points: Sequence[SweepPoint]) -> SweepPoint:
    """The textbook's speedup at this k, from acceptance and step cost of the method's point nearest to k = 4."""
    known = [p for p in points if p.acceptance.per_token and p.acceptance.drafted_cost and p.k]
    same = [p for p in known if p.method == point.method]
    if not same or not point.k:
        return point
    reference = min(same, key=lambda p: (abs(p.k - 4), p.k))
    a, cost = reference.acceptance.per_token or 0.0, reference.acceptance.drafted_cost or 1.0
    value = textbook_speedup(a, point.k, max(0.0, (cost - 1.0) / reference.k))
    return SweepPoint(
        point.method, point.k, point.id, point.speedup, point.verdict, point.acceptance, point.points, value
    )


def _paired(best: SweepPoint, other: SweepPoint) -> Interval | None:
    """Geometric mean of best / other over the prompts that both have; None without two of them."""
    theirs = dict(other.points)
    logs = [math.log(ratio / theirs[name]) for name, ratio in best.points if name in theirs]
    return geometric_mean(logs) if len(logs) > 1 else None
