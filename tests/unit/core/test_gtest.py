"""The test of one fixed acceptance chance."""

from __future__ import annotations

from math import exp

import pytest

from specdemo.core import gtest


def steps(*histogram: int, k: int = 4) -> list[tuple[int, int]]:
    """(accepted, drafted) of as many steps as the histogram says, all with k drafted."""
    return [(accepted, k) for accepted, count in enumerate(histogram) for _ in range(count)]


def test_g_test_on_the_pooled_recordings() -> None:
    """94 steps that accepted [15,3,6,4,66]: expected [8.3,7.5,6.9,6.3,65.1], three degrees of freedom, p about .03."""
    data = steps(15, 3, 6, 4, 66)
    a = 291 / (291 + 28)
    assert gtest.expected_counts(data, a) == pytest.approx([8.3, 7.5, 6.9, 6.3, 65.1], abs=0.06)
    assert gtest.p_value(data, a) == pytest.approx(0.029, abs=0.001)


def test_steady_acceptance_is_not_rejected() -> None:
    """Steps drawn from one chance pass; too few steps are not tested at all."""
    a = 0.7
    counts = [round(400 * (1 - a) * a**j) for j in range(4)]
    p = gtest.p_value(steps(*counts, 400 - sum(counts)), a)
    assert p is not None
    assert p > 0.9
    assert gtest.p_value(steps(1, 1, 1), a) is None
    assert gtest.p_value([], a) is None


@pytest.mark.parametrize(
    ("x", "freedom", "tail"),
    [
        (3.841459, 1, 0.05),
        (5.991465, 2, 0.05),
        (7.814728, 3, 0.05),
        (11.0705, 5, 0.05),
        (13.2767, 4, 0.01),
        (0.0, 3, 1.0),
    ],
)
def test_chi_squared_tail(x: float, freedom: int, tail: float) -> None:
    """Tail probabilities at tabulated quantiles."""
    assert gtest.chi2_tail(x, freedom) == pytest.approx(tail, rel=1e-4)


def test_chi_squared_with_two_degrees_is_exponential() -> None:
    """With two degrees of freedom the tail is exp(-x/2) exactly."""
    assert gtest.chi2_tail(3.0, 2) == pytest.approx(exp(-1.5))


def test_a_draft_of_impossible_length_is_not_tested() -> None:
    """The work grows with the longest draft, and a number from outside says how long that is."""
    assert gtest.p_value([(1, 10**11)] * 50, 0.5) is None


def test_many_long_drafts_are_counted_once_a_length() -> None:
    """20,000 steps of one length cost as much as one."""
    counts = gtest.expected_counts([(1, gtest.MOST_DRAFTED)] * 20_000, 0.5)
    assert counts[:2] == pytest.approx([10_000, 5_000])
    assert sum(counts) == pytest.approx(20_000)
