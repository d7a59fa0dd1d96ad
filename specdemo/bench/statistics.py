"""Paired comparison of time per token: estimates with 95 % intervals, verdict words, percentiles, noise.

Everything works on seconds per token (or seconds for the same tokens) of arm A (standard) and arm B (speculative);
a ratio above 1 means that B is faster. The intervals are t intervals: a percentile bootstrap covers only 83-91 % at
5 to 12 prompts, the t interval on log-ratios 94-96 % (see tests/unit/bench/test_coverage.py). No figure is ever
infinite or not a number: an estimate that no float can hold is None, an interval with such a bound has no bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, stdev
from typing import Literal

from specdemo.bench.distributions import t_quantile

MARGIN = 1.05
"""Ratios between 1/MARGIN and MARGIN are equivalent for practical purposes."""
NOISY_SIGMA = 0.10
"""Run-to-run spread (sd of log time) above which no speedup is certified."""
CONTROL_HALF_WIDTH = 0.03
"""The A/A control's interval must be at least this narrow (relative) for a speed claim."""
MIX_DIFFERENCE = 0.05
"""Geometric mean and ratio of totals further apart than this: the headline depends on the mix of prompts."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio with its two-sided interval. ``low``/``high`` are None for fewer than two units, or beyond any float.

    ``n`` counts the units of replication (prompts), ``method`` names the estimator.
    """

    estimate: float
    low: float | None
    high: float | None
    n: int
    method: Literal["geometric_mean", "ratio_of_totals"]
    level: float = 0.95

    @property
    def half_width(self) -> float | None:
        """Relative half-width: half the distance between the bounds' logs; None without bounds."""
        if self.low is None or self.high is None or self.low <= 0.0:
            return None
        half = exponential((math.log(self.high) - math.log(self.low)) / 2)
        return None if half is None else half - 1.0

    def holds(self, value: float) -> bool:
        """Whether ``value`` lies in the interval (always, if there is none)."""
        return self.low is None or self.high is None or self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Shared:
    """A disturbance that all prompts of a block share (concurrency above 1): its variance and degrees of freedom."""

    variance: float = 0.0
    degrees: int = 0


NOTHING_SHARED = Shared()


def exponential(log: float) -> float | None:
    """exp(log) as a number above 0; None where a float can't hold it."""
    try:
        value = math.exp(log)
    except OverflowError:
        return None
    return value if 0.0 < value < math.inf else None


def _reach(spread: float, n: int, shared: Shared, level: float) -> float:
    """t times the standard error of log ratios; the shared variance is added, degrees after Satterthwaite."""
    own = spread * spread / n
    total = own + shared.variance
    if not 0.0 < total < math.inf:
        return total
    degrees = float(n - 1)
    if shared.variance > 0.0 and shared.degrees > 0:
        part = own / total
        degrees = 1.0 / (part**2 / (n - 1) + (1.0 - part) ** 2 / shared.degrees)
    return t_quantile(0.5 + level / 2, degrees) * math.sqrt(total)


def _interval(
    centre: float, reach: float | None, n: int, method: Literal["geometric_mean", "ratio_of_totals"], level: float
) -> Interval | None:
    """exp(centre) with exp(centre ± reach)."""
    estimate = exponential(centre)
    if estimate is None:
        return None
    low, high = (None, None) if reach is None else (exponential(centre - reach), exponential(centre + reach))
    if low is None or high is None:
        return Interval(estimate, None, None, n, method, level)
    return Interval(estimate, low, high, n, method, level)


def geometric_mean(
    log_ratios: Sequence[float], *, level: float = 0.95, shared: Shared = NOTHING_SHARED
) -> Interval | None:
    """exp(mean) with exp(mean ± t·s/√n) over per-prompt log-ratios; None without any, or with one that is no number."""
    n = len(log_ratios)
    if n == 0 or not all(map(math.isfinite, log_ratios)):
        return None
    reach = None if n == 1 else _reach(_spread(log_ratios), n, shared, level)
    return _interval(_mean(log_ratios), reach, n, "geometric_mean", level)


def _mean(values: Sequence[float]) -> float:
    """The mean of finite values, also where their sum is beyond any float."""
    largest = max(map(abs, values))
    return largest * fmean(value / largest for value in values) if largest > 1e300 else fmean(values)


def _spread(values: Sequence[float]) -> float:
    """Standard deviation of two or more finite values; infinite where no float can hold it."""
    try:
        return stdev(values)
    except OverflowError:
        return math.inf


def ratio_of_totals(
    seconds_a: Sequence[float], seconds_b: Sequence[float], *, level: float = 0.95, shared: Shared = NOTHING_SHARED
) -> Interval | None:
    """ΣA / ΣB, prompt by prompt the same tokens, interval by linearisation of the log; None without data."""
    n = len(seconds_a)
    if n != len(seconds_b):
        raise ValueError("one value per prompt and arm is needed")
    sums = sum(seconds_a), sum(seconds_b)
    if n == 0 or not all(0.0 < one < math.inf for one in sums):
        return None
    centre = math.log(sums[0]) - math.log(sums[1])
    if n == 1:
        return _interval(centre, None, 1, "ratio_of_totals", level)
    residuals = [a / sums[0] * n - b / sums[1] * n for a, b in zip(seconds_a, seconds_b, strict=True)]
    return _interval(centre, _reach(_spread(residuals), n, shared, level), n, "ratio_of_totals", level)


SpeedWord = Literal["faster", "slower", "equivalent", "no_clear_difference", "not_enough_data"]


@dataclass(frozen=True, slots=True)
class SpeedVerdict:
    """One word about a speedup. ``small_but_real``: equivalent in practice, yet the interval excludes 1.

    ``detectable`` is the relative difference that this sample could have shown (half-width of the 95 % interval).
    """

    word: SpeedWord
    small_but_real: bool = False
    detectable: float | None = None


def speed_verdict(wide: Interval | None, narrow: Interval | None) -> SpeedVerdict:
    """The word for a 95 % interval (``wide``) and the 90 % interval of the same data (``narrow``)."""
    if wide is None or narrow is None or wide.low is None or wide.high is None:
        return SpeedVerdict("not_enough_data")
    if narrow.low is None or narrow.high is None:
        return SpeedVerdict("not_enough_data")
    detectable = wide.half_width
    if narrow.low >= 1 / MARGIN and narrow.high <= MARGIN:
        return SpeedVerdict("equivalent", not wide.holds(1.0), detectable)
    if wide.low > 1.0:
        return SpeedVerdict("faster", False, detectable)
    if wide.high < 1.0:
        return SpeedVerdict("slower", False, detectable)
    return SpeedVerdict("no_clear_difference", False, detectable)


def depends_on_mix(first: Interval | None, second: Interval | None) -> bool:
    """Whether the two headlines differ by more than 5 %."""
    if first is None or second is None:
        return False
    return abs(math.log(first.estimate) - math.log(second.estimate)) > math.log1p(MIX_DIFFERENCE)


def repeat_sigma(groups: Sequence[Sequence[float]]) -> float | None:
    """Run-to-run sd of log time, pooled over groups of repeats of one prompt on one engine; None without repeats."""
    total, degrees = 0.0, 0
    for group in groups:
        logs = [math.log(value) for value in group if 0.0 < value < math.inf]
        if len(logs) > 1:
            total += stdev(logs) ** 2 * (len(logs) - 1)
            degrees += len(logs) - 1
    return math.sqrt(total / degrees) if degrees else None


def outlier(median_gap: float, others: Sequence[float], *, tolerance: float = 0.15) -> bool:
    """Whether a run's median step gap is off the median of its engine and prompt by more than ``tolerance``."""
    values = [value for value in (*others, median_gap) if 0.0 < value < math.inf]
    if len(values) < 2:
        return False
    return abs(median_gap / median(values) - 1.0) > tolerance


def disturbed(gaps: Sequence[float], *, tolerance: float = 0.15) -> bool:
    """Whether any repeat of one prompt on one engine is off their common median (then the whole quad is re-run)."""
    return any(outlier(gap, [*gaps[:i], *gaps[i + 1 :]], tolerance=tolerance) for i, gap in enumerate(gaps))


@dataclass(frozen=True, slots=True)
class Percentile:
    """The ``q`` quantile as an observed value (nearest rank). ``enough`` is False when n·(1-q) < 1 or n < 3."""

    q: float
    value: float | None
    n: int
    enough: bool


def percentile(values: Sequence[float], q: float) -> Percentile:
    """Nearest-rank percentile: never above the maximum, never an average; marked when the sample can't carry it."""
    values = [value for value in values if math.isfinite(value)]
    n = len(values)
    if n == 0:
        return Percentile(q, None, 0, False)
    rank = max(1, math.ceil(round(q * n, 9)))
    return Percentile(q, sorted(values)[rank - 1], n, n >= 3 and round(n * (1 - q), 9) >= 1.0)


def break_even(levels: Sequence[tuple[int, Interval | None]]) -> int | None:
    """The lowest concurrency whose interval no longer lies above 1; None when there is none.

    A level without an interval says nothing about the gain, so it is passed over.
    """
    for level, interval in sorted(levels, key=lambda pair: pair[0]):
        if interval is not None and interval.low is not None and interval.low <= 1.0:
            return level
    return None


def is_flat(values: Sequence[float], *, tolerance: float = 0.1) -> bool:
    """Whether neighbours differ by at most ``tolerance`` relative (tokens per step over load levels must stay flat)."""
    return all(a > 0.0 and abs(b / a - 1.0) <= tolerance for a, b in pairwise(values))
