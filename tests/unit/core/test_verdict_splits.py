"""The verdict at a split: near tie, suspicious, real, or unknown, and always by the standard engine's own odds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from specdemo.core.events import Event, TokenLogprob, Tokens, TopToken
from specdemo.core.outcome import collect
from specdemo.core.prompt import Prompt
from specdemo.core.results import Acceptance, Verdict
from specdemo.core.run import Probe
from specdemo.core.tolerance import Tolerance, tolerance
from specdemo.core.verdict import judge
from tests.unit.core.streams import A, B, ids_stream, stream


def verdict(left: Sequence[Event], right: Sequence[Event], **options: Any) -> Verdict:
    """Judge two greedy streams of float32 engines of which the second drafted."""
    drafted = Acceptance(source="request", drafting_steps=3)
    sides = collect(left, A), collect(right, B)
    return judge(*sides, Prompt(text="x"), acceptance=drafted, limit=tolerance("float32"), **options)


def probe(position: int, *candidates: tuple[int, float]) -> Probe:
    """The standard engine's candidates at a split, each with the text "<id>"."""
    return Probe(position, tuple((token, f"<{token}>", logprob) for token, logprob in candidates))


SPLIT = (ids_stream(A, [10], [11], [12], [50], [60]), ids_stream(B, [10], [11, 12], [51], [70]))


def test_near_tie_by_the_streams_own_logprobs() -> None:
    """A01: two top tokens with exactly equal logprob are a near tie at output token 4, gap 0, both tokens shown."""
    tops = (TopToken(50, "fifty", -3.157), TopToken(51, "fifty-one", -3.157))
    tied = Tokens(A, 0.4, (50,), "fifty", logprobs=(TokenLogprob(50, "fifty", -3.157, tops),))
    left = (*SPLIT[0][:4], tied, *SPLIT[0][5:])
    found = verdict(left, SPLIT[1])
    assert (found.cls, found.position, found.gap_nats, found.compared) == ("near_tie", 3, 0.0, 3)
    assert found.reason.startswith("First difference at output token 4: standard “fifty”, speculative engine “<51>”.")
    assert found.tolerance_nats == 1e-3
    assert found.standard_token is not None
    assert found.standard_token.logprob == -3.157


@pytest.mark.parametrize(
    ("gap", "cls", "words"),
    [
        (0.0005, "near_tie", "within the tolerance of 0.001 nats (default for float32)"),
        (0.0015, "different", "Suspicious"),
        (2.0, "different", "Real difference"),
    ],
)
def test_gap_decides(gap: float, cls: str, words: str) -> None:
    """Within the tolerance: near tie; up to twice: suspicious; beyond: real."""
    found = verdict(*SPLIT, probe=probe(3, (50, -0.5), (51, -0.5 - gap)))
    assert (found.cls, found.gap_nats) == (cls, pytest.approx(gap))
    assert words in found.reason


@pytest.mark.parametrize(
    ("other", "cls", "words"),
    [
        ((51, -1.25), "near_tie", "within the tolerance"),
        ((51, -1.5), "different", "Suspicious"),
        ((51, -0.5), "near_tie", "itself prefers the other"),
        ((51, -1.0), "near_tie", "Near tie: the two are 0 nats apart"),
    ],
)
def test_gaps_exactly_at_a_limit(other: tuple[int, float], cls: str, words: str) -> None:
    """A gap equal to the tolerance is within it, one of twice the tolerance is suspicious, and 0 is no flip."""
    found = judge(
        collect(SPLIT[0], A), collect(SPLIT[1], B), Prompt(text="x"), limit=Tolerance(0.25, "a test"),
        probe=probe(3, (50, -1.0), other),
    )  # fmt: skip
    assert found.cls == cls
    assert words in found.reason


def test_a_single_candidate_bounds_nothing() -> None:
    """One listed candidate does not tell how far an unlisted token is."""
    assert "gap is unknown" in verdict(*SPLIT, probe=probe(3, (50, -0.1))).reason


def test_the_smaller_of_two_bounds_counts() -> None:
    """Two lists without the speculative token: the weaker bound is the one that is certain."""
    tops = (TopToken(50, "a", -0.1), TopToken(98, "b", -1.1))
    streamed = Tokens(A, 0.4, (50,), "a", logprobs=(TokenLogprob(50, "a", -0.1, tops),))
    left = (*SPLIT[0][:4], streamed, *SPLIT[0][5:])
    assert "at least 1 nats lower" in verdict(left, SPLIT[1], probe=probe(3, (50, -0.1), (99, -4.1))).reason


def test_smaller_gap_of_both_paths_counts() -> None:
    """The standard engine's decode path had the tokens closer than its prefill has."""
    tops = (TopToken(50, "a", -1.0), TopToken(51, "b", -1.0005))
    tied = Tokens(A, 0.4, (50,), "a", logprobs=(TokenLogprob(50, "a", -1.0, tops),))
    left = (*SPLIT[0][:4], tied, *SPLIT[0][5:])
    found = verdict(left, SPLIT[1], probe=probe(3, (50, -1.0), (51, -1.5)))
    assert (found.cls, found.gap_nats) == ("near_tie", pytest.approx(0.0005))


def test_reference_that_changes_its_mind_is_a_near_tie() -> None:
    """Asked again the standard engine prefers the speculative token by a hair: near tie."""
    found = verdict(*SPLIT, probe=probe(3, (51, -0.7), (50, -0.7015)))
    assert found.cls == "near_tie"
    assert "itself prefers the other token" in found.reason
    assert found.gap_nats == pytest.approx(0.0015)


def test_reference_that_contradicts_itself_is_no_near_tie() -> None:
    """A flip by whole nats is no rounding: the standard stream itself is in doubt."""
    found = verdict(*SPLIT, probe=probe(3, (51, -0.1), (50, -3.0)))
    assert found.cls == "different"
    assert "its own streamed choice is in doubt" in found.reason


def test_a_close_token_that_is_third_is_no_near_tie() -> None:
    """A near tie needs the other token among the standard engine's best two."""
    found = verdict(*SPLIT, probe=probe(3, (50, -1.0), (99, -1.0002), (51, -1.0004)))
    assert found.cls == "different"
    assert "not among the standard engine's best two" in found.reason


def test_token_outside_the_list_has_a_lower_bound() -> None:
    """A speculative token that the standard engine does not list is at least as far as its last candidate."""
    found = verdict(*SPLIT, probe=probe(3, (50, -0.1), (98, -3.0), (99, -4.1)))
    assert (found.cls, found.gap_nats) == ("different", None)
    assert "at least 4 nats lower, outside its best 3" in found.reason


def test_unknown_gap_is_said() -> None:
    """A18: without a probe and with all-zero logprobs the gap is unknown, never a certainty."""
    zeros = tuple(
        Tokens(event.side, event.at, event.ids, event.text, logprobs=tuple(TokenLogprob(i, "", 0.0) for i in event.ids))
        if isinstance(event, Tokens)
        else event
        for event in SPLIT[0]
    )
    for left in (SPLIT[0], zeros):
        found = verdict(left, SPLIT[1])
        assert (found.cls, found.gap_nats) == ("different", None)
        assert "gap is unknown" in found.reason


def test_zero_logprobs_of_the_speculative_side_do_not_count() -> None:
    """A18: the margin comes from the standard engine even when the speculative one reports 0.0 for everything."""
    zeros = tuple(
        Tokens(event.side, event.at, event.ids, event.text, logprobs=tuple(TokenLogprob(i, "", 0.0) for i in event.ids))
        if isinstance(event, Tokens)
        else event
        for event in SPLIT[1]
    )
    found = verdict(SPLIT[0], zeros, probe=probe(3, (50, -0.2), (51, -1.9)))
    assert found.gap_nats == pytest.approx(1.7)


def test_failed_probe_is_a_remark() -> None:
    """Why the split could not be looked at is shown beside the verdict; a probe of another place is not used."""
    found = verdict(*SPLIT, probe=Probe(3, error="The split could not be looked at: timeout."))
    assert "The split could not be looked at: timeout." in found.remarks
    assert verdict(*SPLIT, probe=probe(2, (50, -1.0), (51, -1.0))).gap_nats is None


def test_same_text_from_other_tokens_is_a_difference() -> None:
    """A20: the same text in other tokens is a split, with the remark that the text is the same."""
    left = stream(A, [(0.1, [1], "deter"), (0.2, [2], "mine")])
    right = stream(B, [(0.1, [3], "determine")])
    found = verdict(left, right)
    assert (found.cls, found.position) == ("different", 0)
    assert "Same text, different tokens." in found.remarks


def test_one_side_stops_where_the_other_goes_on() -> None:
    """A listed stop token against a word is a split; its candidates decide; a token without text is named by its id."""
    left, right = ids_stream(A, [1], [0]), ids_stream(B, [1], [2])
    found = verdict(left, right, probe=probe(1, (0, -0.69), (2, -0.6905)))
    assert found.cls == "near_tie"
    assert "standard token 0 (no text)" in found.reason


def test_unlisted_stop_token_is_taken_from_the_candidates() -> None:
    """Where the standard side ended without listing the stop token, its best candidate stands for it."""
    left, right = ids_stream(A, [1]), ids_stream(B, [1], [2])
    found = verdict(left, right, probe=probe(1, (7, -0.5), (2, -0.5001)))
    assert found.cls == "near_tie"
    assert found.standard_token is not None
    assert found.standard_token.id == 7
    gone = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1]), probe=probe(1, (2, -0.5), (7, -0.6)))
    assert (gone.cls, gone.gap_nats) == ("different", None)
    assert "speculative engine ended" in gone.reason
    assert gone.speculative_token is None


def test_burst_tokens_take_their_text_from_the_candidates() -> None:
    """Inside a burst single texts are unknown; the candidates' text is shown instead."""
    found = verdict(ids_stream(A, [1], [2]), ids_stream(B, [1, 3]), probe=probe(1, (2, -0.1), (3, -2.0)))
    assert found.speculative_token is not None
    assert found.speculative_token.text == "<3>"


@pytest.mark.parametrize(
    "candidates",
    [
        ((50, 0.0), (51, 0.0)),
        ((50, -9999.0), (51, -9999.0)),
        ((50, float("nan")), (51, -1.0)),
        ((50, float("-inf")), (51, float("-inf"))),
        ((50, 0.5), (51, 0.499)),
    ],
)
def test_values_that_are_no_log_probabilities_measure_nothing(candidates: tuple[tuple[int, float], ...]) -> None:
    """A18: filled-in values, of a probe or of a stream, are never a near tie."""
    tops = tuple(TopToken(token, f"<{token}>", value) for token, value in candidates)
    entry = TokenLogprob(50, "<50>", candidates[0][1], tops)
    real = Tokens(A, 0.1, (10,), "<10>", logprobs=(TokenLogprob(10, "<10>", -0.3),))
    streamed = (SPLIT[0][0], real, *SPLIT[0][2:4], Tokens(A, 0.4, (50,), "<50>", logprobs=(entry,)), *SPLIT[0][5:])
    for found in (verdict(*SPLIT, probe=probe(3, *candidates)), verdict(streamed, SPLIT[1])):
        assert (found.cls, found.gap_nats) == ("different", None)
        assert "gap is unknown" in found.reason


def test_an_impossible_token_is_outside_the_list() -> None:
    """A18: the value that stands for minus infinity is no distance, but the listed ones bound it."""
    found = verdict(*SPLIT, probe=probe(3, (50, -0.1), (98, -3.0), (51, -9999.0)))
    assert (found.cls, found.gap_nats) == ("different", None)
    assert "at least 2.9 nats lower, outside its best 2" in found.reason
