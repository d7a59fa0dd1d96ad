"""The theory line: textbook values, estimates, the test of its assumption, and the named cause."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.events import RequestSpeculation
from specdemo.core.meters import side_metrics
from specdemo.core.outcome import collect
from specdemo.core.results import Theory
from specdemo.core.theory import (
    corrected_speedup,
    expected_tokens,
    step_costs,
    textbook_speedup,
    theory,
)
from tests.unit.core.streams import A, B, detailed, ids_stream, stream


def line(spec: RequestSpeculation | None, *sizes: int, measured: float | None = 1.0, k: int | None = None) -> Theory:
    """The theory of a speculative stream of these chunk sizes, 0.15 s apart, beside a standard one at 0.1 s."""
    right = ids_stream(B, *[list(range(size)) for size in sizes], gap=0.15, spec=spec)
    total = sum(sizes)
    left = ids_stream(A, *[[i] for i in range(total)])
    return theory(collect(left, A), collect(right, B), side_metrics(right, B), measured=measured, k=k)


def test_textbook_values() -> None:
    """E and speedup at known points of Leviathan et al.: a = .8, k = 4, c = .05; and the edges a = 0 and 1."""
    assert expected_tokens(0.8, 4) == pytest.approx(3.3616)
    assert textbook_speedup(0.8, 4, 0.05) == pytest.approx(3.3616 / 1.2)
    assert expected_tokens(0.0, 4) == 1.0
    assert expected_tokens(1.0, 4) == 5.0


@pytest.mark.parametrize(
    ("a", "best"), [(0.5, (5, 3, 2, 1)), (0.7, (9, 6, 4, 3)), (0.8, (14, 8, 6, 4)), (0.9, (16, 13, 10, 7))]
)
def test_best_draft_lengths(a: float, best: tuple[int, ...]) -> None:
    """The k that maximises the textbook speedup for c = .01, .05, .1, .2 is the published one (k up to 16)."""
    for c, k in zip((0.01, 0.05, 0.1, 0.2), best, strict=True):
        assert max(range(1, 17), key=lambda n: textbook_speedup(a, n, c)) == k


@given(st.floats(0.0, 0.999), st.integers(1, 16))
def test_expected_tokens_is_the_geometric_sum(a: float, k: int) -> None:
    """E is 1 + a + … + a^k, between 1 and k + 1."""
    assert expected_tokens(a, k) == pytest.approx(sum(a**j for j in range(k + 1)))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60).filter(lambda taken: 0 < sum(taken) < 4 * len(taken)))
def test_estimate_maximises_the_likelihood(taken: list[int]) -> None:
    """A/(A+R) beats any nearby value of a in likelihood of the observed steps."""

    def likelihood(a: float) -> float:
        return sum(n * log(a) + (log(1.0 - a) if n < 4 else 0.0) for n in taken)

    found = line(detailed(taken), 1, *[n + 1 for n in taken]).a
    assert found is not None
    for shift in (-0.01, 0.01):
        if 0.0 < found + shift < 1.0:
            assert likelihood(found) >= likelihood(found + shift)


def test_estimate_from_a_histogram_alone() -> None:
    """Without step lists, every step that did not accept the longest length counts as a refusal."""
    spec = replace(detailed([4, 1, 0]), accepted_per_step=None, drafted_per_step=None)
    found = line(spec, 1, 5, 2, 1)
    assert found.a == pytest.approx(5 / 7)
    assert (found.iid_p_value, found.iid_rejected) == (None, None)


def test_absent_numbers_say_why() -> None:
    """No engine numbers, no drafts, no draft length, or only totals: no theory, each with its reason or cause."""
    assert dict(line(None, 1, 2, k=4).reasons)["a"].startswith("The prediction needs")
    assert dict(line(RequestSpeculation(0, 0, 0, 4), 1, 1).reasons)["a"] == "No drafts were proposed."
    assert dict(line(RequestSpeculation(1, 4, 1), 1, 2).reasons)["a"] == "The draft length is unknown."
    totals = line(RequestSpeculation(1, 4, 1, 4), 1, 2)
    assert (totals.a, totals.textbook_speedup) == (None, None)
    assert totals.cause.startswith("Too little is known")


def test_all_refused_and_all_accepted() -> None:
    """a is 0 when every draft was refused and 1 when none was."""
    assert line(detailed([0, 0]), 1, 1, 1).a == 0.0
    assert line(detailed([4, 4]), 1, 5, 5).a == 1.0


def test_step_costs_are_medians_over_the_standard_gap() -> None:
    """Single tokens stand for undrafted steps, bursts for drafted ones; with a draft in every step all are drafted."""
    left = collect(ids_stream(A, [1], [2], [3]), A)
    rows = [(0.1, [1], ""), (0.22, [2], ""), (0.37, [3, 4], ""), (0.49, [5], "")]
    right = collect(stream(B, rows), B)
    assert step_costs(left, right) == (pytest.approx(1.2), pytest.approx(1.5))
    assert step_costs(left, right, always_drafted=True) == (None, pytest.approx(1.2))
    assert step_costs(collect((), A), right) == (None, None)
    back = collect(stream(B, [(0.1000001, [1], ""), (0.1, [2, 3], "")]), B)
    assert step_costs(left, back) == (None, 0.0)


def test_merged_chunks_give_no_costs() -> None:
    """Where chunks are not steps, neither coverage nor costs are claimed."""
    found = line(detailed([1, 1]), 1, 6)
    assert (found.coverage, found.drafted_step_cost, found.corrected_speedup) == (None, None, None)


def test_corrected_line() -> None:
    """The corrected line weighs both step costs by coverage and needs only those that occur."""
    assert corrected_speedup(2.0, 0.5, 1.0, 1.5) == pytest.approx(2.0 / 1.25)
    assert corrected_speedup(2.0, 1.0, None, 1.6) == pytest.approx(1.25)
    assert corrected_speedup(1.0, 0.0, 1.25, None) == pytest.approx(0.8)
    assert corrected_speedup(2.0, 0.5, None, 1.5) is None
    assert corrected_speedup(2.0, 0.5, 1.0, None) is None
    assert corrected_speedup(None, 0.5, 1.0, 1.5) is None
    assert corrected_speedup(2.0, None, 1.0, 1.5) is None
    assert corrected_speedup(2.0, 0.0, 0.0, 1.0) is None


def test_uneven_acceptance_is_rejected() -> None:
    """Half the steps accept nothing and half everything: no single chance explains that; the run says so."""
    taken = [0] * 30 + [4] * 30
    found = line(detailed(taken), 1, *[n + 1 for n in taken])
    assert found.iid_rejected
    assert found.iid_p_value is not None
    assert found.iid_p_value < 1e-6


def test_a_histogram_may_end_early_and_must_add_up() -> None:
    """Trailing zeros may be left out; a histogram of other steps than were counted estimates nothing."""
    spec = replace(detailed([1, 0, 2]), accepted_per_step=None, drafted_per_step=None)
    assert line(replace(spec, histogram=(1, 1, 1)), 1, 2, 3, 1).a == pytest.approx(3 / 6)
    for histogram in ((0, 0, 0, 0, 9), (1, 1)):
        found = line(replace(spec, histogram=histogram), 1, 2, 3, 1)
        assert (found.a, found.expected_tokens_per_step) == (None, None)


def test_step_lists_that_do_not_belong_together_are_not_paired() -> None:
    """Lists of unequal length say nothing about single steps; the histogram still does."""
    spec = detailed([4, 1, 0])
    found = line(replace(spec, drafted_per_step=(4,)), 1, 5, 2, 1)
    assert found.a == pytest.approx(5 / 7)
    assert found.iid_p_value is None
