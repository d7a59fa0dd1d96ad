"""Acceptance: exact per request, by whole-engine counters, and the range of a running stream."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.acceptance import MOST_POSITIONS, NO_DRAFTS, exact, from_counters, live_range
from specdemo.core.events import RequestSpeculation, SpecCounters
from specdemo.core.sentences import sentence
from tests.unit.core.streams import detailed


def test_definitions_have_the_bonus_token_in() -> None:
    """D23: 100 steps, 3 drafted each, 150 accepted are 50 % and a mean length of 2.5."""
    found = exact(RequestSpeculation(steps=100, drafted=300, accepted=150))
    assert (found.rate, found.mean_length, found.source) == (0.5, 2.5, "request")
    assert (found.per_position, found.per_position_conditional, found.histogram) == ((), (), ())


def test_nothing_drafted_is_no_rate() -> None:
    """A07: zero drafts give no rate, no length and no exception, for request and counters alike."""
    for found in (
        exact(RequestSpeculation(0, 0, 0)),
        from_counters(SpecCounters(5, 20, 9), SpecCounters(5, 20, 9), own_tokens=3).acceptance,
    ):
        assert (found.rate, found.mean_length, found.drafted, found.reason) == (None, None, 0, NO_DRAFTS)


def test_per_position_both_kinds() -> None:
    """Steps accepting 4, 0, 2, 1 of 4, 4, 2, 4 drafted: shares of all steps, and shares of those that got that far."""
    found = exact(detailed([4, 0, 2, 1], drafted=[4, 4, 2, 4]))
    assert found.per_position == (0.75, 0.5, 0.25, 0.25)
    assert found.per_position_conditional == (0.75, pytest.approx(2 / 3), 1.0, 1.0)
    assert found.histogram == (1, 1, 1, 0, 1)


def test_unreached_position_has_no_chance() -> None:
    """A position that no step reached has no conditional share rather than 0."""
    assert exact(detailed([0, 0], k=2)).per_position_conditional == (0.0, None)


def test_histogram_is_rebuilt_from_the_steps() -> None:
    """A server that sends the step list but no histogram still gets positions."""
    spec = RequestSpeculation(2, 6, 3, max_draft=3, accepted_per_step=(3, 0))
    assert exact(spec).histogram == (1, 0, 0, 1)
    assert exact(spec).per_position_conditional == ()


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=50))
def test_unconditional_is_the_product_of_conditional(pairs: list[tuple[int, int]]) -> None:
    """When every step drafts the same number, the unconditional share is the product of the conditional ones."""
    taken = [a for a, _ in pairs]
    found = exact(detailed(taken))
    product = 1.0
    for whole, part in zip(found.per_position, found.per_position_conditional, strict=True):
        if part is None:
            assert whole == 0.0
            break
        product *= part
        assert whole == pytest.approx(product)
    assert sum(found.histogram) == len(taken)
    assert found.rate is not None
    assert 0.0 <= found.rate <= 1.0


def test_counters_pool_before_dividing() -> None:
    """A09: 100 drafts, 300 drafted and 150 accepted since start are 50 % and 2.5; positions are per draft step."""
    after = SpecCounters(100, 300, 150, (80, 50, 20))
    found = from_counters(SpecCounters(0, 0, 0), after, own_tokens=None)
    assert (found.acceptance.rate, found.acceptance.mean_length) == (0.5, 2.5)
    assert found.acceptance.per_position == (0.8, 0.5, 0.2)
    assert found.other_tokens is None


def test_foreign_tokens_are_counted() -> None:
    """A12: 500 generated tokens of which 40 were ours leave 460 for others, beside the whole-engine rate."""
    before = SpecCounters(0, 0, 0, generation_tokens=100)
    after = SpecCounters(250, 1000, 170, generation_tokens=600)
    found = from_counters(before, after, own_tokens=40)
    assert found.acceptance.rate == pytest.approx(0.17)
    assert found.acceptance.source == "engine"
    assert found.other_tokens == 460


@pytest.mark.parametrize(
    "after",
    [
        SpecCounters(60, 200, 90, epoch=2.0),
        SpecCounters(40, 160, 70, epoch=1.0),
        SpecCounters(60, 200, 90, generation_tokens=10),
    ],
)
def test_restart_voids_counters(after: SpecCounters) -> None:
    """Counters that restarted (new process start, or a series that fell) give no acceptance."""
    found = from_counters(SpecCounters(50, 180, 80, generation_tokens=100, epoch=1.0), after, own_tokens=5)
    assert found.reset
    assert (found.acceptance.rate, found.acceptance.source) == (None, "none")


def test_series_that_appear_late_count_from_zero() -> None:
    """A series missing from the first reading was created in between."""
    found = from_counters(SpecCounters(), SpecCounters(10, 40, 20), own_tokens=None)
    assert found.acceptance.rate == 0.5


def test_standard_engine_has_no_counters() -> None:
    """Without the speculation series there is no acceptance, and a reason."""
    assert from_counters(SpecCounters(), SpecCounters(), own_tokens=1).acceptance.reason is not None


def test_live_range_edges() -> None:
    """No k or no step: no range. A method that always drafts: one value. No burst yet: up to 1."""
    assert live_range(accepted=0, decode_steps=0, bursts=0, k=4, always_drafts=False).low is None
    assert live_range(accepted=1, decode_steps=1, bursts=1, k=None, always_drafts=False).low is None
    always = live_range(accepted=6, decode_steps=3, bursts=2, k=4, always_drafts=True)
    assert (always.low, always.high) == (0.5, 0.5)
    assert live_range(accepted=0, decode_steps=3, bursts=0, k=4, always_drafts=False).high == 1.0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.lists(st.booleans(), min_size=40, max_size=40))
def test_live_range_holds_the_final_rate(taken: list[int], idle: list[bool]) -> None:
    """Whatever mix of drafting and idle steps, the final rate of full drafts lies in the live range."""
    extra = sum(idle)
    bursts = sum(a > 0 for a in taken)
    found = live_range(accepted=sum(taken), decode_steps=len(taken) + extra, bursts=bursts, k=4, always_drafts=False)
    rate = exact(detailed(taken)).rate
    assert rate is not None
    assert found.low is not None
    assert found.high is not None
    assert found.low <= rate + 1e-12
    assert rate <= found.high + 1e-12 or bursts == 0


@pytest.mark.parametrize("huge", [MOST_POSITIONS + 1, 10**9, 2**53])
def test_no_list_is_as_long_as_a_number_says(huge: int) -> None:
    """A step that took or drafted more than any engine can has no positions; totals still count (A12)."""
    taken = exact(RequestSpeculation(1, 4, 1, accepted_per_step=(huge,)))
    longest = exact(RequestSpeculation(1, 4, 1, huge, accepted_per_step=(1,)))
    drafted = exact(RequestSpeculation(1, 4, 1, accepted_per_step=(1,), drafted_per_step=(huge,)))
    negative = exact(RequestSpeculation(1, 4, 1, accepted_per_step=(-1,)))
    assert [found.rate for found in (taken, longest, drafted, negative)] == [0.25] * 4
    assert taken.histogram == longest.histogram == negative.histogram == drafted.per_position_conditional == ()


def test_positions_are_bounded() -> None:
    """However long a histogram or a counter's list is."""
    many = exact(RequestSpeculation(5000, 5000, 5000, histogram=(1,) * 5000))
    assert len(many.histogram) == len(many.per_position) + 1 == MOST_POSITIONS + 1
    counters = [
        SpecCounters(drafts=n, draft_tokens=n, accepted_tokens=n, accepted_per_position=(n,) * 5000) for n in (0.0, 9.0)
    ]
    found = from_counters(*counters, own_tokens=None).acceptance
    assert len(found.per_position) == MOST_POSITIONS


def test_acceptance_without_steps() -> None:
    """The rate needs no steps; what is per step is absent, not 0 (A12)."""
    found = exact(RequestSpeculation(None, 100, 80, histogram=(1, 2)))
    assert (found.rate, found.drafted, found.accepted) == (0.8, 100, 80)
    assert (found.mean_length, found.drafting_steps, found.per_position, found.reason) == (None, None, (), None)
    assert exact(RequestSpeculation(None, 0, 0)).rate is None


def test_counters_without_drafting_steps() -> None:
    """Older servers count tokens and no steps: the rate stands, what is per step is absent (A09)."""
    found = from_counters(SpecCounters(None, 100, 50), SpecCounters(None, 400, 200, (9.0,)), own_tokens=None).acceptance
    assert (found.source, found.rate, found.drafted, found.accepted) == ("engine", 0.5, 300, 150)
    assert (found.mean_length, found.drafting_steps, found.per_position) == (None, None, ())
    still = from_counters(SpecCounters(None, 100, 50), SpecCounters(None, 100, 50), own_tokens=None).acceptance
    assert (still.rate, still.reason) == (None, NO_DRAFTS)


def test_more_accepted_than_drafted_is_no_rate() -> None:
    """Counters that contradict each other give no rate above 1 and no share above 1."""
    found = from_counters(SpecCounters(0, 0, 0), SpecCounters(5, 10, 20), own_tokens=None).acceptance
    assert (found.rate, found.mean_length, found.drafting_steps) == (None, None, 5)
    assert found.reason == sentence("odd_count")
    shares = from_counters(SpecCounters(0, 0, 0), SpecCounters(5, 20, 10, (9, 1)), own_tokens=None).acceptance
    assert (shares.rate, shares.per_position) == (0.5, ())
    assert exact(RequestSpeculation(2, 8, 4, 4, histogram=(0, 0, 5, 0, 0))).per_position == ()


def test_a_series_that_vanished_is_a_restart() -> None:
    """A10: an engine whose counters are gone at the end had some: what is left is not its sum."""
    before = SpecCounters(100, 400, 200, generation_tokens=900)
    found = from_counters(before, SpecCounters(generation_tokens=903), own_tokens=3)
    assert (found.reset, found.acceptance.reason) == (True, sentence("counters_restarted"))
