"""Own distribution functions against closed forms, exact sums and published values."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from specdemo.bench import distributions as d

TABLE = [
    (1, 12.706204736),
    (2, 4.302652730),
    (4, 2.776445105),
    (19, 2.093024054),
    (39, 2.022690920),
    (200, 1.971896224),
]


@pytest.mark.parametrize(
    ("df", "expected"),
    TABLE,
)
def test_t_quantile_equals_the_published_table(df: int, expected: float) -> None:
    """The 97.5 % points of Student's t agree with printed tables to nine digits."""
    assert d.t_quantile(0.975, df) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("p", [0.001, 0.025, 0.3, 0.5, 0.8, 0.995])
def test_t_with_one_degree_is_cauchy(p: float) -> None:
    """With one degree of freedom the quantile is the Cauchy quantile tan(pi (p - 1/2)), both tails."""
    assert d.t_quantile(p, 1) == pytest.approx(math.tan(math.pi * (p - 0.5)), rel=1e-8, abs=1e-9)
    assert d.t_cdf(d.t_quantile(p, 7), 7) == pytest.approx(p, rel=1e-10)


@pytest.mark.parametrize(("x", "n"), [(0, 20), (1, 8), (7, 12), (12, 12), (3, 300)])
def test_clopper_pearson_bounds_are_where_the_exact_tails_reach_alpha(x: int, n: int) -> None:
    """At each bound the exact binomial tail, summed in fractions, equals 2.5 %."""
    low, high = d.clopper_pearson(x, n)

    def tail(p: float, counts: range) -> float:
        share = Fraction(p)
        return float(sum(math.comb(n, k) * share**k * (1 - share) ** (n - k) for k in counts))

    if x > 0:
        assert tail(low, range(x, n + 1)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert low == 0.0
    if x < n:
        assert tail(high, range(x + 1)) == pytest.approx(0.025, rel=1e-6)
    else:
        assert high == 1.0


@pytest.mark.parametrize(("n", "bound"), [(20, 0.139), (60, 0.049), (100, 0.0295), (300, 0.010)])
def test_no_mismatch_in_n_still_leaves_an_upper_bound(n: int, bound: float) -> None:
    """Zero mismatches among n prompts bound the true share near 3/n, never at 0."""
    assert d.upper_bound(0, n) == pytest.approx(bound, rel=0.02)


def test_bounds_without_data_say_nothing() -> None:
    """Without trials the share may be anything."""
    assert d.clopper_pearson(0, 0) == (0.0, 1.0)
    assert d.upper_bound(0, 0) == 1.0
    assert d.fisher_greater(0, 0, 3, 5) == 1.0
    assert d.binomial_half_two_sided(0, 0) == 1.0


@pytest.mark.parametrize("x", [0.1, 1.0, 5.0, 9.0, 40.0, 300.0])
def test_chi_squared_tail_equals_its_poisson_sum(x: float) -> None:
    """For even degrees the tail is a finite Poisson sum; both branches of the function agree with it."""
    for df in (2, 4, 10):
        exact = math.exp(-x / 2) * sum((x / 2) ** k / math.factorial(k) for k in range(df // 2))
        assert d.chi2_sf(x, df) == pytest.approx(exact, rel=1e-9)
    assert d.chi2_sf(16.918977605, 9) == pytest.approx(0.05, rel=1e-8)
    assert d.chi2_sf(0.0, 3) == 1.0


def test_fisher_reproduces_the_worked_example() -> None:
    """20 against 10 of 60 gives p = .03, 12 against 10 gives .41."""
    assert d.fisher_greater(20, 60, 10, 60) == pytest.approx(0.03, abs=0.005)
    assert d.fisher_greater(12, 60, 10, 60) == pytest.approx(0.41, abs=0.005)


def test_far_tail_is_not_rounded_to_zero() -> None:
    """Z = -28 keeps a positive p value."""
    assert 0.0 < d.normal_two_sided(-28.4) < 1e-170
    assert d.normal_quantile(0.975) == pytest.approx(1.959964, rel=1e-6)


def test_holm_keeps_order_and_monotony() -> None:
    """Adjusted values follow Holm's step-down rule (A33)."""
    assert d.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert d.holm([]) == ()


def test_fair_coin_tail_is_exact() -> None:
    """0 of 10 heads has two-sided probability 2/1024; an even split has 1."""
    assert d.binomial_half_two_sided(0, 10) == pytest.approx(2 / 1024)
    assert d.binomial_half_two_sided(5, 10) == 1.0
