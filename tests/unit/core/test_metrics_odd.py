"""Figures that cannot be right are absent with a reason: rates no engine can have, odd stamps, odd counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import inf, isfinite, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.assess import assess
from specdemo.core.events import (
    CountersRead,
    Event,
    Finished,
    RequestSpeculation,
    SpecCounters,
    Started,
    Tokens,
    Usage,
)
from specdemo.core.meters import side_metrics
from specdemo.core.metrics import SideMeter
from specdemo.core.results import SideMetrics
from tests.unit.core.streams import NAMES, A, B, detailed, ids_stream, record, stream, trace


def sound(found: SideMetrics) -> bool:
    """Whether every figure is finite and not negative, and no absent time lacks a reason once the stream is over."""
    values: list[Any] = [getattr(found, spec.name) for spec in fields(found)]
    for spec in fields(found.acceptance):
        value = getattr(found.acceptance, spec.name)
        values += value if isinstance(value, tuple) else [value]
    return all(isfinite(value) and value >= 0 for value in values if isinstance(value, (int, float)))


# ------------------------------------------------------------------ rates that no engine has


@pytest.mark.parametrize(
    "rows",
    [
        [(0.1, range(1), "a"), (0.1003, range(8), "b")],
        [(0.1 + 0.00025 * i, range(4), "x") for i in range(25)],
        [(0.1, range(1), "a"), (0.1, range(8), "b"), (0.1015, range(8), "c")],
        [(0.1 + 0.0009 * i, (i,), "x") for i in range(300)],
    ],
)
def test_chunks_faster_than_any_step_claim_no_rate(rows: Sequence[tuple[float, Sequence[int], str]]) -> None:
    """D21, B24: chunks closer than a step can be came from a buffer, so neither rate nor time per token is told."""
    found = side_metrics(stream(B, rows), B)
    assert (found.decode_tokens_per_s, found.tpot_s) == (None, None)
    reasons = dict(found.reasons)
    assert "at once" in reasons["decode_tokens_per_s"]
    assert "at once" in reasons["tpot_s"]
    assert found.tokens_per_s is not None  # with the wait for the first token it is a real time


def test_chunks_a_millisecond_apart_have_a_rate() -> None:
    """The limit is where the shortest step is: stamps rounded to it still count."""
    rows = [(round(0.1 + 0.001 * i, 5), (i,), "x") for i in range(25)]
    assert side_metrics(stream(B, rows), B).decode_tokens_per_s == pytest.approx(1000.0)


def test_a_whole_reply_within_a_step_has_no_rate_at_all() -> None:
    """D21: not even with the first token's time, when all came sooner than one step takes."""
    found = side_metrics(stream(B, [(1e-6, (1, 2, 3), "abc")]), B)
    assert found.tokens_per_s is None
    assert "at once" in dict(found.reasons)["tokens_per_s"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["std", "ngram"])
def test_recorded_streams_keep_their_rates(kind: str, name: str) -> None:
    """Real engines are far from that limit."""
    found = side_metrics(trace(kind, name), A if kind == "std" else B)
    assert found.decode_tokens_per_s is not None
    assert found.tpot_s is not None


# ------------------------------------------------------------------ odd stamps


def test_an_end_before_the_last_tokens_gives_no_times() -> None:
    """An end stamped before the last tokens makes no negative time per token: order-bound times are absent."""
    events = [*ids_stream(B, [1], [2], [3])]
    events[-1] = replace(events[-1], at=0.05)
    found = side_metrics(events, B)
    assert sound(found)
    assert (found.tpot_s, found.e2el_s, found.tokens_per_s) == (None, None, None)
    for name in ("tpot_s", "e2el_s", "tokens_per_s", "decode_tokens_per_s"):
        assert "contradict each other" in dict(found.reasons)[name]
    assert (found.output_tokens, found.ttft_s) == (3, pytest.approx(0.1))


def test_a_rounded_stamp_is_no_step_back() -> None:
    """An end that rounding put a little before the last tokens changes nothing."""
    rows = [(0.1 + 0.05 * i, (1, 2, 3, 4), "x") for i in range(5)]
    events = [*stream(B, rows)]
    events[-1] = replace(events[-1], at=0.3)
    assert events[-1].at < rows[-1][0]
    found = side_metrics(events, B)
    assert (found.decode_tokens_per_s, found.tpot_s) == (pytest.approx(80.0), pytest.approx(0.2 / 19))


@pytest.mark.parametrize(
    "stamps",
    [(0.1, 0.1 + 5e-324, 0.1), (5e-324, 1e-323, 1.5e-323), (0.1, 1e308, 1.7e308), (-1.7e308, 0.0, 1.7e308),
     (nan, 0.2, 0.3), (0.1, nan, 0.3), (0.1, 0.2, inf), (-inf, 0.1, 0.2), (0.3, 0.2, 0.1)],
)  # fmt: skip
def test_odd_stamps_give_no_infinite_and_no_negative_figure(stamps: tuple[float, ...]) -> None:
    """Stamps of a file can be anything a float can be; no figure is then infinite, negative or not a number."""
    events = [Started(B, 0.0), *(Tokens(B, at, (1, 2), "ab") for at in stamps), Finished(B, stamps[-1], "stop")]
    meter = SideMeter(B)
    for event in events:
        meter.feed(event)
        assert sound(meter.snapshot())
        assert sound(meter.snapshot(inf))
    assert meter.snapshot().output_tokens == 6


def test_a_first_token_without_a_real_time_says_so() -> None:
    """The reason is the stamp, not a missing token."""
    found = side_metrics((Started(B, 0.0), Tokens(B, inf, (1,), "a")), B)
    assert found.ttft_s is None
    assert "not real times" in dict(found.reasons)["ttft_s"]


# ------------------------------------------------------------------ odd counts


@pytest.mark.parametrize("count", [-5, 10**13, 10**308, 10**400])
def test_odd_usage_is_no_count(count: int) -> None:
    """A negative or impossible count is not used; tokens are then counted as without it, and the reason is told."""
    events = (
        Started(B, 0.0),
        Tokens(B, 0.1, text="a", reported_total=count),
        Tokens(B, 0.1 + 5e-324, text="b", reported_total=count),
        Tokens(B, 0.2, text="c"),
        Finished(B, 0.2, "stop", usage=Usage(count, count, count)),
    )
    found = side_metrics(events, B)
    assert sound(found)
    assert (found.output_tokens, found.count_source) == (3, "approximate")
    assert (found.prompt_tokens, found.cached_tokens) == (None, None)
    assert "cannot be right" in dict(found.reasons)["output_tokens"]


def test_a_large_count_over_a_tiny_time_is_no_rate() -> None:
    """The largest count that is believed, over the shortest of times, stays a number or is absent."""
    usage = Usage(1, 10**12)
    events = (
        Started(B, 0.0),
        Tokens(B, 5e-324, text="a"),
        Tokens(B, 1e-323, text="b"),
        Finished(B, 1e-323, "stop", usage=usage),
    )
    found = side_metrics(events, B)
    assert sound(found)
    assert (found.decode_tokens_per_s, found.tokens_per_s) == (None, None)


@pytest.mark.parametrize(
    "spec",
    [
        replace(detailed([2, 1]), accepted=-3),
        replace(detailed([2, 1]), steps=10**400),
        replace(detailed([2, 1]), accepted_per_step=(2, -1)),
        RequestSpeculation(2, 8, 3, histogram=(1, -2)),
    ],
)
def test_odd_numbers_of_a_request_are_no_acceptance(spec: RequestSpeculation) -> None:
    """An engine's own numbers that are no counts give no acceptance, with the reason."""
    found = side_metrics(ids_stream(B, [1], [2, 3, 4], [5, 6], spec=spec), B)
    assert sound(found)
    assert found.acceptance.rate is None
    assert "cannot be right" in (found.acceptance.reason or "")
    line = assess(record(ids_stream(A, [1], [2], [3]), ids_stream(B, [1], [2, 3], spec=spec))).theory
    assert (line.textbook_speedup, line.expected_tokens_per_step) == (None, None)


@pytest.mark.parametrize("value", [nan, inf, -1.0])
def test_odd_counter_readings_are_not_used(value: float) -> None:
    """A reading with a value that no counter has is left out, as if the engine had none."""
    reads = (
        CountersRead(B, 0.0, SpecCounters(0, 0, 0)),
        CountersRead(B, 0.2, SpecCounters(1, 4, 2, accepted_per_position=(value,))),
        CountersRead(B, 0.3, SpecCounters(1, 4, value)),
    )
    found = side_metrics((*reads, *ids_stream(B, [1], [2, 3])), B)
    assert sound(found)
    assert "neither" in (found.acceptance.reason or "")


def test_a_counter_that_falls_at_one_position_only_is_no_acceptance() -> None:
    """A negative share of a position voids the whole, since the readings do not fit each other."""
    reads = (
        CountersRead(B, 0.0, SpecCounters(0, 0, 0, accepted_per_position=(5.0,))),
        CountersRead(B, 0.3, SpecCounters(1, 4, 2, accepted_per_position=(1.0,))),
    )
    found = side_metrics((*reads, *ids_stream(B, [1], [2, 3])), B)
    assert sound(found)
    assert "cannot be right" in (found.acceptance.reason or "")


STAMPS = st.one_of(st.floats(), st.sampled_from([0.0, 5e-324, 1e-323, 1e308, 0.1, 0.2]))
COUNTS = st.one_of(st.integers(-3, 5), st.sampled_from([10**12, 10**13, 10**308, 10**400]))


@given(st.lists(st.tuples(STAMPS, st.integers(0, 3), st.none() | COUNTS), max_size=20), STAMPS, STAMPS, COUNTS, COUNTS)
def test_any_log_gives_sound_figures(
    rows: list[tuple[float, int, int | None]], start: float, end: float, said: int, took: int
) -> None:
    """Whatever stamps and counts a file holds, every figure is finite and not negative, live and at the end."""
    spec = RequestSpeculation(took, said, took, max_draft=4)
    events: list[Event] = [Started(B, start)]
    events += [Tokens(B, at, tuple(range(n)), "x", reported_total=total) for at, n, total in rows]
    events.append(Finished(B, end, "stop", usage=Usage(said, took, said), speculation=spec))
    meter = SideMeter(B, k=4)
    for event in events:
        meter.feed(event)
        assert sound(meter.snapshot())


def test_a_restart_between_readings_is_noticed() -> None:
    """A10: counters that fell and then passed their old height are no sum of this run."""
    heights = [SpecCounters(100, 400, 200), SpecCounters(5, 20, 10), SpecCounters(150, 600, 500)]
    rows = ids_stream(B, [1], [2], [3])
    readings = [CountersRead(B, 0.05 + 0.1 * n, counters) for n, counters in enumerate(heights)]
    meter = SideMeter(B)
    for event in sorted((*rows, *readings), key=lambda event: event.at):
        meter.feed(event)
    assert meter.snapshot().acceptance.reason == "The engine's counters restarted during the run."
    assert "counters_reset" in [note.kind for note in meter.notes()]


def test_a_count_of_zero_beside_text_was_not_counted() -> None:
    """D08: a server that fills in 0 for usage gives no token count and no prompt size."""
    events = stream(B, [(0.1, [], "a"), (0.2, [], "b"), (0.3, [], "c")], usage=0, prompt=0)
    found = side_metrics(events, B)
    assert (found.output_tokens, found.count_source, found.prompt_tokens) == (3, "approximate", None)
    echoed = side_metrics(stream(B, [(0.1, [1], "a")], usage=1, prompt=0, prompt_ids=(5, 6)), B)
    assert echoed.prompt_tokens == 2


def test_surplus_ids_of_a_cut_burst_are_no_output() -> None:
    """A13, A14: six ids arrived and usage says three: rates come from three; other contradictions keep the ids."""
    rows = [(0.1, [5], "a"), (0.2, [6, 7, 8, 9, 10], "bc")]
    found = side_metrics(stream(B, rows, usage=3), B)
    assert (found.output_tokens, found.count_source) == (3, "ids")
    assert found.decode_tokens_per_s == pytest.approx(20.0)
    assert side_metrics(stream(B, rows, usage=1), B).output_tokens == 6
    assert side_metrics(stream(B, rows, usage=9), B).output_tokens == 6
