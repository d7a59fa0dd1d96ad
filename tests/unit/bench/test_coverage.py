"""A simulation that shows how often the 95 % intervals hold the truth; fast here, long by INTERVAL_COVERAGE_RUNS."""

from __future__ import annotations

import math
import os
import random

import pytest

from specdemo.bench.statistics import geometric_mean, ratio_of_totals, speed_verdict

RUNS = int(os.environ.get("INTERVAL_COVERAGE_RUNS", "400"))


def quads(
    rng: random.Random, n: int, speedup: float, *, between: float, noise: float, drift: float = 0.0
) -> list[tuple[float, float]]:
    """n prompts, each one ABBA or BAAB quad with run noise and a linear drift over the session; (A, B) mean seconds."""
    pairs = []
    for p in range(n):
        base = math.exp(rng.gauss(0, 0.5))
        own = speedup * math.exp(rng.gauss(0, between))
        times: dict[str, list[float]] = {"A": [], "B": []}
        for slot, arm in enumerate("ABBA" if p % 2 == 0 else "BAAB"):
            seconds = base / (own if arm == "B" else 1.0)
            progress = (4 * p + slot) / (4 * n)
            times[arm].append(seconds * math.exp(rng.gauss(0, noise)) * (1 + drift * progress))
        a, b = (math.exp(sum(math.log(x) for x in times[k]) / 2) for k in "AB")
        pairs.append((a, b))
    return pairs


def coverage(n: int, *, between: float, noise: float, drift: float = 0.0) -> float:
    """Share of simulated sessions whose geometric-mean interval holds the true speedup 1.6."""
    rng = random.Random(20_000 + n)
    held = 0
    for _ in range(RUNS):
        interval = geometric_mean(
            [math.log(a / b) for a, b in quads(rng, n, 1.6, between=between, noise=noise, drift=drift)]
        )
        held += interval is not None and interval.holds(1.6)
    return held / RUNS


@pytest.mark.parametrize(
    ("n", "between", "noise", "drift"),
    [(5, 0.2, 0.05, 0.0), (8, 0.2, 0.1, 0.2), (20, 0.2, 0.05, 0.2), (20, 0.05, 0.2, 0.2)],
)
def test_interval_covers_the_truth_95_percent_of_the_time(n: int, between: float, noise: float, drift: float) -> None:
    """With few prompts, run noise and 20 % drift 95 % of intervals hold the truth (within simulation error)."""
    error = 3.5 * math.sqrt(0.95 * 0.05 / RUNS)
    assert abs(coverage(n, between=between, noise=noise, drift=drift) - 0.95) < error + 0.01


def test_ratio_of_totals_covers_too() -> None:
    """The linearised interval of the ratio of totals is close to nominal with 20 prompts."""
    rng = random.Random(3)
    held = 0
    for _ in range(RUNS):
        pairs = quads(rng, 20, 1.6, between=0.0, noise=0.05)
        interval = ratio_of_totals([a for a, _ in pairs], [b for _, b in pairs])
        held += interval is not None and interval.holds(1.6)
    assert held / RUNS > 0.92


def test_a_run_against_itself_seldom_finds_a_winner() -> None:
    """With no true difference and 20 prompts, 'faster' or 'slower' comes out in less than 5 % of sessions."""
    rng = random.Random(4)
    wrong = 0
    for _ in range(RUNS):
        logs = [math.log(a / b) for a, b in quads(rng, 20, 1.0, between=0.05, noise=0.03)]
        verdict = speed_verdict(geometric_mean(logs), geometric_mean(logs, level=0.90))
        wrong += verdict.word in ("faster", "slower")
    assert wrong / RUNS < 0.05


def test_running_all_of_one_arm_first_is_biased_which_is_why_it_is_not_done() -> None:
    """Under 20 % drift all-A-then-all-B misses the truth, so the schedule's alternation is what carries coverage."""
    rng = random.Random(5)
    held = 0
    for _ in range(RUNS):
        logs = []
        for p in range(20):
            a = math.exp(rng.gauss(0, 0.03)) * (1 + 0.2 * p / 40)
            b = math.exp(rng.gauss(0, 0.03)) / 1.6 * (1 + 0.2 * (20 + p) / 40)
            logs.append(math.log(a / b))
        interval = geometric_mean(logs)
        held += interval is not None and interval.holds(1.6)
    assert held / RUNS < 0.5
