"""One side's numbers on small scripted streams; every case has an answer that can be worked out by hand."""

from __future__ import annotations

import pytest

from specdemo.core.events import (
    CountersRead,
    Failed,
    Finished,
    Noted,
    SpecCounters,
    Started,
    TokenLogprob,
    Tokens,
    Usage,
)
from specdemo.core.meters import side_metrics
from specdemo.core.metrics import SideMeter
from tests.unit.core.streams import A, B, cut, detailed, ids_stream, stream


def test_nothing_is_claimed_before_the_first_event() -> None:
    """A fresh meter has no numbers at all."""
    found = SideMeter(B).snapshot()
    assert (found.output_tokens, found.ttft_s, found.steps, found.longest_stall_s) == (None, None, None, None)
    assert not found.final


def test_ttft_ignores_the_role_chunk() -> None:
    """D01: the empty role chunk at 5 ms is not the first token; it is kept beside as vLLM's figure."""
    found = side_metrics(stream(A, [(0.005, (), ""), (0.214, (1,), "a"), (0.3, (2,), "b")]), A)
    assert found.ttft_s == pytest.approx(0.214)
    assert found.ttft_role_s == pytest.approx(0.005)


def test_chunks_are_not_tokens() -> None:
    """D04: 100 tokens in 25 chunks 40 ms apart are 100 tokens/s and 10 ms a token, with the 40 ms gap beside."""
    rows = [(0.04 * i, tuple(range(4)), "abcd") for i in range(1, 26)]
    found = side_metrics(stream(B, rows, usage=100), B)
    assert found.output_tokens == 100
    assert found.decode_tokens_per_s == pytest.approx(100.0)
    assert found.tpot_s == pytest.approx(0.01, rel=0.04)
    assert found.chunk_gap_s == pytest.approx(0.04)


def test_decode_rate_leaves_out_the_first_chunks_tokens() -> None:
    """D06: five chunks of four tokens 50 ms apart are 16 tokens in 0.2 s, 80 tokens/s."""
    rows = [(0.1 + 0.05 * i, (1, 2, 3, 4), "x") for i in range(5)]
    assert side_metrics(stream(B, rows), B).decode_tokens_per_s == pytest.approx(80.0)


def test_gaps_do_not_hold_the_first_token_time() -> None:
    """D07: after a first token at 1 s, nine gaps of 10 ms have a mean of 10 ms."""
    found = side_metrics(stream(A, [(1.0 + 0.01 * i, (i,), "x") for i in range(10)]), A)
    assert found.chunk_gap_s == pytest.approx(0.01)
    assert found.tpot_s == pytest.approx(0.01)


def test_one_token_has_no_rate() -> None:
    """D14: a one-token reply has a first-token time and no time per token, with the reason."""
    found = side_metrics(ids_stream(A, [7]), A)
    assert (found.ttft_s, found.tpot_s, found.decode_tokens_per_s) == (pytest.approx(0.1), None, None)
    assert dict(found.reasons)["tpot_s"] == "One token has no time per token."
    assert found.tokens_per_step is None


def test_empty_reply_has_no_times() -> None:
    """D14: a reply that stops at once has zero tokens and no TTFT, and nothing divides by zero."""
    found = side_metrics(stream(A, [(0.1, (), "")], usage=0), A)
    assert (found.output_tokens, found.ttft_s, found.tokens_per_s) == (0, None, None)
    assert side_metrics(stream(A, [(0.1, (), "")]), A).output_tokens == 0


def test_whole_reply_in_one_chunk_claims_no_rate() -> None:
    """D21: when everything comes in one event there is no decode rate, live or final, and none is infinite."""
    meter = SideMeter(B)
    for event in ids_stream(B, list(range(50)))[:-1]:
        meter.feed(event)
    assert meter.snapshot(30.0).live_tokens_per_s is None
    found = side_metrics(ids_stream(B, list(range(50))), B)
    assert (found.decode_tokens_per_s, found.tpot_s, found.chunk_gap_s) == (None, None, None)
    assert "one chunk" in dict(found.reasons)["decode_tokens_per_s"]


def test_equal_arrival_times_claim_no_rate() -> None:
    """D14: two chunks with the same timestamp give no infinite rate."""
    found = side_metrics(stream(A, [(0.1, (1,), "a"), (0.1, (2,), "b")]), A)
    assert found.decode_tokens_per_s is None
    assert "at once" in dict(found.reasons)["decode_tokens_per_s"]


def test_times_count_from_the_sides_own_start() -> None:
    """In Measure mode the second side starts late; its first-token time counts from its own start."""
    found = side_metrics(stream(B, [(10.5, (1,), "a"), (10.6, (2,), "b")], start=10.0), B)
    assert found.ttft_s == pytest.approx(0.5)
    assert found.e2el_s == pytest.approx(0.6)
    assert found.tokens_per_s == pytest.approx(2 / 0.6)


def test_other_sides_events_and_a_second_start_change_nothing() -> None:
    """A meter takes only its own side, and its zero is the first Started."""
    meter = SideMeter(A)
    for event in (
        Started(A, 0.0),
        Started(A, 5.0),
        Tokens(B, 0.2, (1,)),
        Tokens(A, 0.5, (1,)),
        Noted(A, 1, "other", ""),
    ):
        meter.feed(event)
    assert meter.snapshot().ttft_s == pytest.approx(0.5)
    assert meter.snapshot().output_tokens == 1


def test_tokens_are_counted_by_usage_without_ids() -> None:
    """D08: a server without ids has its own count used, labelled, and hidden steps."""
    found = side_metrics(stream(A, [(0.1, (), "  "), (0.2, (), "    ")], usage=15), A)
    assert (found.output_tokens, found.count_source, found.steps) == (15, "usage", None)
    assert found.decode_tokens_per_s == pytest.approx(140.0)
    assert "one token is assumed" in dict(found.reasons)["decode_tokens_per_s"]
    assert "no token ids" in dict(found.reasons)["tokens_per_step"]


def test_tokens_are_approximate_without_ids_and_usage() -> None:
    """D08: with neither ids nor usage, chunks with text are counted and called approximate."""
    found = side_metrics(stream(A, [(0.1, (), "a"), (0.2, (), ""), (0.3, (), "b")]), A)
    assert (found.output_tokens, found.count_source) == (2, "approximate")
    assert found.tokens_per_step is None


def test_running_totals_count_tokens_exactly() -> None:
    """B25: a server that sends its running completion_tokens with each chunk is counted by the differences."""
    events = (
        Started(B, 0.0),
        Tokens(B, 0.1, text="a", reported_total=1),
        Tokens(B, 0.2, text="bcd", reported_total=4),
        Tokens(B, 0.3, text="", reported_total=4),
        Finished(B, 0.3, "stop", usage=Usage(5, 4)),
    )
    found = side_metrics(events, B)
    assert (found.output_tokens, found.count_source, found.steps) == (4, "usage", 2)
    assert found.decode_tokens_per_s == pytest.approx(30.0)
    assert side_metrics(events[:-1], B).count_source == "usage"


def test_logprob_entries_count_tokens() -> None:
    """Without ids, a chunk's logprob entries tell its tokens."""
    entry = TokenLogprob(None, "x", -0.1)
    events = (Started(B, 0.0), Tokens(B, 0.1, logprobs=(entry,)), Tokens(B, 0.2, logprobs=(entry, entry)))
    assert side_metrics(events, B).output_tokens == 3


def test_late_text_without_ids_is_no_token() -> None:
    """Text that was held back for a stop string and comes without ids adds no token."""
    found = side_metrics(stream(A, [(0.1, (1,), ""), (0.2, (2,), "ab"), (0.3, (), "c")]), A)
    assert found.output_tokens == 2


def test_cut_stream_keeps_what_was_measured_and_no_more() -> None:
    """B13: an interrupted side keeps its first-token time and decode rate, but has no end-to-end figures."""
    found = side_metrics(cut(ids_stream(A, [1], [2], [3])), A)
    assert found.decode_tokens_per_s == pytest.approx(10.0)
    assert (found.e2el_s, found.tokens_per_s, found.final) == (None, None, True)
    assert dict(found.reasons)["e2el_s"] == "The request did not finish."


def test_running_stream_has_live_numbers() -> None:
    """While a side runs, end-to-end time is absent and a silence counts as a stall."""
    meter = SideMeter(A)
    for event in ids_stream(A, *[[i] for i in range(30)])[:-1]:
        meter.feed(event)
    found = meter.snapshot(3.0)
    assert found.live_tokens_per_s == pytest.approx(10.0, rel=0.01)
    assert found.e2el_s is None
    assert found.tokens_per_s == pytest.approx(10.0)
    assert meter.snapshot(8.0).longest_stall_s == pytest.approx(5.0)
    assert dict(found.reasons)["e2el_s"] == "The request still runs."


def test_longest_stall_is_the_longest_gap_of_a_finished_stream() -> None:
    """The wait for the first token is no stall, and one chunk has none."""
    found = side_metrics(stream(A, [(2.0, (1,), "a"), (2.1, (2,), "b"), (2.6, (3,), "c")]), A)
    assert found.longest_stall_s == pytest.approx(0.5)
    assert side_metrics(ids_stream(A, [1]), A).longest_stall_s is None


def test_prompt_and_cached_tokens() -> None:
    """D10: prompt tokens come from usage, else from the echoed ids; cached ones are shown when reported."""
    found = side_metrics(ids_stream(A, [1], usage=1, prompt=21, cached=16), A)
    assert (found.prompt_tokens, found.cached_tokens) == (21, 16)
    assert side_metrics(ids_stream(A, [1], prompt_ids=(4, 5, 6)), A).prompt_tokens == 3
    assert side_metrics(ids_stream(A, [1]), A).prompt_tokens is None


def test_delivered_tokens_count_and_not_accepted_ones() -> None:
    """A13: one step with 5 accepted drafts and a stop inside counts the 3 tokens that came, and keeps 5 as the engine's."""
    found = side_metrics(ids_stream(B, [1], [2, 3], usage=3, spec=detailed([5], k=5)), B)
    assert found.output_tokens == 3
    assert found.acceptance.accepted == 5
    assert found.acceptance.delivered == 2  # both tokens of the cut step were drafts: its own token never came


def test_steps_are_split_into_drafting_and_not() -> None:
    """Of four decode steps two drafted; tokens per step is over all of them."""
    found = side_metrics(ids_stream(B, [1], [2, 3, 4], [5], [6, 7], [8], usage=8, spec=detailed([2, 1])), B)
    assert (found.steps, found.drafting_steps, found.non_drafting_steps) == (5, 2, 2)
    assert found.tokens_per_step == pytest.approx(7 / 4)


def test_merged_steps_hide_step_counts() -> None:
    """When chunks hold several steps, steps and tokens per step are absent while totals stay."""
    found = side_metrics(ids_stream(B, [1], [2, 3, 4, 5, 6, 7], usage=7, spec=detailed([1, 1])), B)
    assert (found.output_tokens, found.steps, found.tokens_per_step) == (7, None, None)
    assert "merged" in dict(found.reasons)["tokens_per_step"]
    assert found.acceptance.delivered is None


def test_counters_give_engine_acceptance() -> None:
    """A12: without per-request numbers the difference of two counter readings is used and labelled engine."""
    reads = (
        CountersRead(B, 0.0, SpecCounters(100, 300, 150, generation_tokens=1000)),
        CountersRead(B, 0.2, SpecCounters(110, 340, 180, generation_tokens=1003)),
    )
    taken = side_metrics((*reads, *ids_stream(B, [1], [2, 3])), B).acceptance
    assert (taken.source, taken.rate, taken.mean_length) == ("engine", pytest.approx(0.75), pytest.approx(4.0))


def test_plain_engine_without_speculation_counters_says_so() -> None:
    """A standard engine whose counters were read has no acceptance because it does not draft."""
    reads = (CountersRead(A, 0.0, SpecCounters()), CountersRead(A, 0.2, SpecCounters()))
    assert "does not draft" in (side_metrics((*reads, *ids_stream(A, [1])), A).acceptance.reason or "")
    unlike = (CountersRead(B, 0.0, SpecCounters()), CountersRead(B, 0.2, SpecCounters()))
    assert "no speculation counters" in (side_metrics((*unlike, *ids_stream(B, [1])), B).acceptance.reason or "")


def test_per_request_numbers_beat_counters() -> None:
    """A12: with the per-request object present, other people's traffic in the counters does not matter."""
    reads = (
        CountersRead(B, 0.0, SpecCounters(0, 0, 0)),
        CountersRead(B, 0.2, SpecCounters(250, 1000, 170)),
    )
    taken = side_metrics((*reads, *ids_stream(B, [1], [2, 3, 4, 5, 6], spec=detailed([4]))), B).acceptance
    assert (taken.source, taken.rate) == ("request", 1.0)


def test_absent_acceptance_says_why() -> None:
    """Each kind of absence has its own sentence."""
    assert "does not draft" in (side_metrics(ids_stream(A, [1]), A).acceptance.reason or "")
    assert "neither" in (side_metrics(ids_stream(B, [1]), B).acceptance.reason or "")
    failed = (Started(B, 0.0), Failed(B, 0.1, "rejected", "no"))
    assert "neither" in (side_metrics(failed, B).acceptance.reason or "")


def test_live_acceptance_is_a_range() -> None:
    """While running, 3 accepted drafts in 3 steps of which 2 were bursts lie between 3/12 and 3/8 for k = 4."""
    meter = SideMeter(B, k=4)
    for event in ids_stream(B, [1], [2, 3, 4], [5], [6, 7])[:-1]:
        meter.feed(event)
    taken = meter.snapshot().acceptance
    assert (taken.rate, taken.low, taken.high) == (None, pytest.approx(3 / 12), pytest.approx(3 / 8))
