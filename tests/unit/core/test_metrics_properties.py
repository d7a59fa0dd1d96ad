"""Properties of the meter that must hold for any stream, checked against formulas written down afresh."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.events import Event, Finished, Started, Tokens
from specdemo.core.meters import side_metrics
from specdemo.core.metrics import SideMeter
from specdemo.core.rates import LiveRate
from tests.unit.core.streams import B, detailed, stream

GAPS = st.floats(min_value=0.001, max_value=3.0)
BURSTS = st.lists(st.integers(min_value=0, max_value=5), min_size=1, max_size=60)


@st.composite
def streams(draw: st.DrawFn) -> tuple[Event, ...]:
    """A finished speculative stream of random bursts (0 = a chunk without tokens) and gaps."""
    at = 0.0
    rows: list[tuple[float, tuple[int, ...], str]] = []
    for size in draw(BURSTS):
        at += draw(GAPS)
        rows.append((at, tuple(range(size)), "x" * size))
    return stream(B, rows, usage=sum(len(ids) for _, ids, _ in rows))


@given(streams())
def test_final_numbers_equal_their_formulas(events: tuple[Event, ...]) -> None:
    """The meter fed event by event gives what the formulas give on the whole list."""
    chunks = [(event.at, len(event.ids)) for event in events if isinstance(event, Tokens) and event.ids]
    found = side_metrics(events, B)
    total = sum(size for _, size in chunks)
    assert found.output_tokens == total
    if not chunks:
        assert found.ttft_s is None
        return
    first, last = chunks[0], chunks[-1]
    end = next(event.at for event in events if isinstance(event, Finished))
    assert found.ttft_s == first[0]
    assert found.e2el_s == end
    assert found.tokens_per_s == pytest.approx(total / end)
    if len(chunks) == 1:
        assert found.decode_tokens_per_s is None
        return
    span = last[0] - first[0]
    assert found.decode_tokens_per_s == pytest.approx((total - first[1]) / span)
    assert found.tpot_s == pytest.approx((end - first[0]) / (total - 1))
    assert found.chunk_gap_s == pytest.approx(span / (len(chunks) - 1))
    assert found.longest_stall_s == pytest.approx(max(b[0] - a[0] for a, b in pairwise(chunks)))
    if first[1] == 1:
        assert found.tokens_per_step == pytest.approx((total - first[1]) / (len(chunks) - 1))
    else:
        assert found.tokens_per_step is None  # the prefill gives one token, so this chunk was merged


@given(streams())
def test_counts_only_grow(events: tuple[Event, ...]) -> None:
    """Tokens, stall and time never fall while a stream runs, and asking changes nothing."""
    meter = SideMeter(B)
    tokens, stall = 0, 0.0
    for event in events:
        meter.feed(event)
        now = meter.snapshot()
        assert meter.snapshot() == now
        assert (now.output_tokens or 0) >= tokens
        tokens = now.output_tokens or 0
        if not now.final:
            assert (now.longest_stall_s or 0.0) >= stall
            stall = now.longest_stall_s or 0.0


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40), st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_token_identity_of_any_speculative_run(taken: list[int], idle: list[int]) -> None:
    """For any run without merged chunks N - E = A, steps add up, and no cross-check complains."""
    sizes = [1]
    for accepted, pause in zip(taken, idle, strict=False):
        sizes += [1] * pause + [accepted + 1]
    used = taken[: len(idle)]
    rows = [(0.1 * (i + 1), tuple(range(size)), "x") for i, size in enumerate(sizes)]
    meter = SideMeter(B)
    for event in stream(B, rows, usage=sum(sizes), spec=detailed(used)):
        meter.feed(event)
    found = meter.snapshot()
    assert found.acceptance.delivered == sum(used)
    assert found.steps == len(sizes)
    assert found.non_drafting_steps == len(sizes) - 1 - len(used)
    assert meter.notes() == ()


@given(st.lists(st.tuples(GAPS, st.integers(1, 500)), min_size=1, max_size=80), st.floats(0.0, 20.0))
def test_live_rate_never_exceeds_the_fastest_gap(chunks: list[tuple[float, int]], later: float) -> None:
    """D21: the live rate is an average of tokens over gaps, so it stays below the largest single ratio, and falls."""
    rate = LiveRate()
    at = 0.0
    rate.feed(at, 1000)
    for gap, tokens in chunks:
        at += gap
        rate.feed(at, tokens)
    now = rate.value(at)
    after = rate.value(at + later)
    if now is not None:
        assert 0.0 < now <= max(tokens / gap for gap, tokens in chunks) * (1 + 1e-9)
        assert after is not None
        assert after <= now


def test_a_burst_after_silence_is_no_spike() -> None:
    """D21: 20 tokens in 2 s, 5 s of silence, then 500 tokens at once never show more than about 100 tokens/s."""
    rate = LiveRate()
    shown: list[float | None] = []
    for i in range(20):
        rate.feed(0.1 * i, 1)
        shown.append(rate.value(0.1 * i))
    rate.feed(6.9, 500)
    shown += [rate.value(6.9 + 0.1 * i) for i in range(20)]
    assert all(value is None for value in shown[:10])
    assert max(value for value in shown if value is not None) <= 101.0


def test_live_rate_follows_a_steady_stream_and_a_stall() -> None:
    """A steady 50 tokens/s shows 50; during a stall it falls, reaching a tenth of it within ten seconds."""
    rate = LiveRate()
    for i in range(200):
        rate.feed(0.02 * i, 1)
    end = 0.02 * 199
    assert rate.value(end) == pytest.approx(50.0, rel=1e-6)
    assert rate.value(end + 0.03) == pytest.approx(50.0, rel=1e-6)
    falling = [rate.value(end + wait) for wait in (0.5, 1.0, 3.0, 10.0)]
    assert all(b is not None and a is not None and b < a for a, b in pairwise(falling))
    assert falling[-1] is not None
    assert falling[-1] < 5.0


def test_live_rate_survives_a_clock_that_steps_back() -> None:
    """D18: a stamp earlier than the last one adds its tokens and never a negative time."""
    rate = LiveRate()
    for at in (0.0, 1.0, 0.5, 2.0):
        rate.feed(at, 10)
    value = rate.value(2.0)
    assert value is not None
    assert value > 0.0
    events = (Started(B, 5.0), Tokens(B, 4.0, (1,)), Tokens(B, 4.5, (2,)))
    assert side_metrics(events, B).ttft_s == 0.0
