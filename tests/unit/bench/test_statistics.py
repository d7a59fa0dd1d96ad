"""Paired estimates, verdict words and percentiles."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.bench import statistics as s


def both(values: list[float]) -> s.SpeedVerdict:
    return s.speed_verdict(s.geometric_mean(values), s.geometric_mean(values, level=0.90))


def test_geometric_mean_interval_by_hand() -> None:
    """Three log-ratios: mean .2, sd .1, t(.975, 2) = 4.3027."""
    interval = s.geometric_mean([0.1, 0.2, 0.3])
    assert interval is not None
    assert interval.low is not None
    assert interval.high is not None
    reach = 4.302652730 * 0.1 / math.sqrt(3)
    assert interval.estimate == pytest.approx(math.exp(0.2))
    assert (interval.low, interval.high) == pytest.approx((math.exp(0.2 - reach), math.exp(0.2 + reach)))
    assert interval.half_width == pytest.approx(math.exp(reach) - 1)


def test_ratio_of_totals_weights_by_seconds() -> None:
    """Totals are dominated by long prompts; the geometric mean is not."""
    interval = s.ratio_of_totals([10.0, 1.0], [5.0, 1.0])
    assert interval is not None
    assert interval.estimate == pytest.approx(11 / 6)
    assert s.depends_on_mix(interval, s.geometric_mean([math.log(2), 0.0]))


def test_one_prompt_has_an_estimate_but_no_interval() -> None:
    """A single unit gives no interval, no half-width and the word 'not enough data'."""
    interval = s.geometric_mean([0.3])
    assert interval is not None
    assert interval.low is None
    assert interval.half_width is None
    assert interval.holds(1.0)
    assert both([0.3]).word == "not_enough_data"
    assert s.geometric_mean([]) is None
    assert s.ratio_of_totals([], []) is None
    assert s.ratio_of_totals([1.0], [2.0]) is not None
    assert s.ratio_of_totals([0.0], [0.0]) is None


def test_unequal_lists_are_refused() -> None:
    """A pair needs both arms."""
    with pytest.raises(ValueError):
        s.ratio_of_totals([1.0], [])


def test_slower_is_said_as_plainly_as_faster() -> None:
    """0.80x is 'slower', 1.25x is 'faster' (A34)."""
    slow = [math.log(0.8) + e for e in (-0.02, -0.01, 0.0, 0.01, 0.02)]
    assert both(slow).word == "slower"
    assert both([-x for x in slow]).word == "faster"


def test_wide_spread_is_no_clear_difference() -> None:
    """Five noisy repeats with the same centre give no winner and say what could have been seen (D22)."""
    standard, speculative = [80, 120, 95, 110, 100], [90, 100, 105, 98, 102]
    verdict = both([math.log(b / a) for a, b in zip(standard, speculative, strict=True)])
    assert verdict.word == "no_clear_difference"
    assert verdict.detectable is not None
    assert verdict.detectable > 0.05


def test_tight_spread_around_one_is_equivalent() -> None:
    """A narrow interval inside ±5 % is 'equivalent', and a small real difference is still named."""
    assert both([0.001, -0.002, 0.0, 0.002, -0.001]).word == "equivalent"
    small = both([0.02, 0.021, 0.022, 0.019, 0.02])
    assert small.word == "equivalent"
    assert small.small_but_real


@pytest.mark.parametrize(("q", "value"), [(0.99, 30), (0.5, 20), (0.9, 30)])
def test_tail_percentiles_of_three_values(q: float, value: float) -> None:
    """p99 of 10, 20, 30 is 30: not the median, not above the maximum, and marked as not carried by the sample (D15)."""
    result = s.percentile([30, 10, 20], q)
    assert result.value == value
    assert result.n == 3
    assert result.enough is (q == 0.5)


def test_percentiles_of_one_and_none() -> None:
    """One sample is shown but marked; none is None (D15)."""
    assert s.percentile([7.0], 0.5) == s.Percentile(0.5, 7.0, 1, False)
    assert s.percentile([], 0.99) == s.Percentile(0.99, None, 0, False)
    assert s.percentile(list(range(1, 101)), 0.99) == s.Percentile(0.99, 99, 100, True)


@given(st.lists(st.floats(0.001, 1e6), min_size=1, max_size=50), st.floats(0.0, 1.0))
def test_percentile_is_always_an_observed_value(values: list[float], q: float) -> None:
    """Whatever the sample, the percentile is one of its values."""
    assert s.percentile(values, q).value in values


@given(st.lists(st.floats(-2, 2), min_size=2, max_size=30))
def test_swapping_the_arms_inverts_ratio_and_bounds(logs: list[float]) -> None:
    """B against A is exactly the inverse of A against B: no direction is favoured."""
    forward, backward = s.geometric_mean(logs), s.geometric_mean([-x for x in logs])
    assert forward
    assert backward
    assert forward.low
    assert forward.high
    assert backward.low
    assert backward.high
    assert forward.estimate * backward.estimate == pytest.approx(1.0)
    assert forward.low * backward.high == pytest.approx(1.0)


def test_repeat_sigma_pools_within_groups() -> None:
    """Spread between prompts does not count, spread between repeats does."""
    assert s.repeat_sigma([[1.0, 1.0], [50.0, 50.0]]) == 0.0
    assert s.repeat_sigma([[1.0, math.exp(0.2)]]) == pytest.approx(math.sqrt(0.02))
    assert s.repeat_sigma([[1.0], []]) is None


def test_disturbed_repeats_are_found() -> None:
    """Two repeats 40 % apart are each more than 15 % off their median; 20 % apart are not."""
    assert s.disturbed([1.0, 1.4])
    assert not s.disturbed([1.0, 1.2])
    assert not s.disturbed([1.0])
    assert not s.disturbed([])


def test_break_even_is_the_first_level_not_clearly_faster() -> None:
    """The rollout limit is the lowest load whose interval reaches 1."""

    def at(low: float) -> s.Interval:
        return s.Interval(low + 0.1, low, low + 0.2, 8, "geometric_mean")

    assert s.break_even([(4, at(0.95)), (1, at(1.5)), (2, at(1.2))]) == 4
    assert s.break_even([(1, at(1.5))]) is None


def test_flatness() -> None:
    """Tokens per step that move by more than a tenth between levels are flagged."""
    assert s.is_flat([3.0, 3.1, 2.9])
    assert not s.is_flat([3.0, 2.0])
    assert s.is_flat([])


def test_shared_block_noise_widens_the_interval() -> None:
    """A disturbance common to all prompts of a block enters the interval."""
    plain, wide = s.geometric_mean([0.1, 0.2, 0.3]), s.geometric_mean([0.1, 0.2, 0.3], shared=s.Shared(0.01, 2))
    assert plain
    assert wide
    assert plain.half_width
    assert wide.half_width
    assert wide.half_width > plain.half_width
