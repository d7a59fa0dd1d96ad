"""Measured ratios between the sides: unclamped, and only where they mean something."""

from __future__ import annotations

import pytest

from specdemo.core.meters import side_metrics
from specdemo.core.results import SideMetrics
from specdemo.core.speedup import speedup
from tests.unit.core.streams import A, B, ids_stream, stream


def evenly(side: object, tokens: int, seconds: float) -> SideMetrics:
    """A side that writes ``tokens`` in ``seconds`` at an even pace, its first token after one gap."""
    gap = seconds / tokens
    events = stream(side, [(gap * (i + 1), (i,), "x") for i in range(tokens)])  # type: ignore[arg-type]
    return side_metrics(events, side)  # type: ignore[arg-type]


def test_slower_is_said_as_plainly_as_faster() -> None:
    """A34: 0.8x stays 0.8x; nothing is clamped at 1."""
    found = speedup(evenly(A, 100, 1.0), evenly(B, 100, 1.25))
    assert (found.decode, found.e2e, found.ttft) == (pytest.approx(0.8), pytest.approx(0.8), pytest.approx(0.8))
    assert found.reasons == ()


def test_shorter_answer_is_no_speedup() -> None:
    """D16: 200 tokens in 4 s against 120 in 3 s is 50 against 40 tokens/s, slower, and no end-to-end ratio."""
    found = speedup(evenly(A, 200, 4.0), evenly(B, 120, 3.0), same_tokens=False)
    assert found.decode == pytest.approx(0.8)
    assert found.e2e is None
    assert dict(found.reasons)["e2e"] == "The outputs differ in length (200 and 120 tokens)."
    assert "different texts of 200 and 120 tokens" in found.basis


@pytest.mark.parametrize(
    ("same", "words"),
    [(True, "the same 10 tokens"), (False, "different texts of equal length"), (None, "10 tokens a side")],
)
def test_basis_says_what_is_compared(same: bool | None, words: str) -> None:
    """The basis tells equal texts, different texts and unknown apart."""
    assert words in speedup(evenly(A, 10, 1.0), evenly(B, 10, 0.5), same_tokens=same).basis


def test_unfinished_sides_have_no_ratio() -> None:
    """B11, B13: a failed or running side is in no ratio, and why is said for each."""
    found = speedup(evenly(A, 10, 1.0), evenly(B, 10, 1.0), ended=False)
    assert (found.decode, found.e2e, found.ttft) == (None, None, None)
    assert [name for name, _ in found.reasons] == ["decode", "e2e", "ttft"]


def test_absent_numbers_give_absent_ratios() -> None:
    """One-token and empty replies have no decode ratio, and nothing divides by zero."""
    one = speedup(side_metrics(ids_stream(A, [1]), A), side_metrics(ids_stream(B, [1]), B))
    assert (one.decode, one.ttft) == (None, pytest.approx(1.0))
    assert "too few tokens" in dict(one.reasons)["decode"]
    empty = speedup(SideMetrics(output_tokens=0), SideMetrics(output_tokens=0))
    assert (empty.decode, empty.e2e, empty.ttft) == (None, None, None)
    assert "unknown" in speedup(SideMetrics(), SideMetrics()).basis


@pytest.mark.parametrize("same", [True, False, None])
def test_estimated_counts_are_no_basis(same: bool | None) -> None:
    """D04, A20: the same text in 40 and in 10 chunks, neither ids nor usage: no ratio per token, but one of wall times."""
    left = stream(A, [(0.1 * (n + 1), (), "ab") for n in range(40)])
    right = stream(B, [(0.1 * (n + 1), (), "abababab") for n in range(10)])
    found = speedup(side_metrics(left, A), side_metrics(right, B), same_tokens=same)
    assert found.decode is None
    assert dict(found.reasons)["decode"].endswith("tokens are estimated by chunks.")
    assert found.e2e == (pytest.approx(4.0) if same else None)
    assert ("e2e" in dict(found.reasons)) is not bool(same)
    assert found.basis == "Time per output token; a side's token count is unknown."


def test_surplus_ids_make_no_other_text() -> None:
    """A14, D16: the same tokens, of which a server sent more behind the stop: one basis, and wall times compare."""
    found = speedup(evenly(A, 10, 1.0), evenly(B, 12, 0.5), same_tokens=True)
    assert found.basis == "Time per output token over the same 10 tokens."
    assert found.e2e == pytest.approx(2.0)
    assert "e2e" not in dict(found.reasons)
    unknown = speedup(SideMetrics(output_tokens=3, e2el_s=1.0), SideMetrics(e2el_s=1.0), same_tokens=True)
    assert (unknown.e2e, "unknown" in unknown.basis) == (None, True)
