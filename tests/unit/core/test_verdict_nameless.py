"""The gap at a split where the standard engine lists its best tokens by text alone, as vLLM does unless asked for ids."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from specdemo.core.events import Event, TokenLogprob, Tokens, TopToken
from specdemo.core.outcome import collect
from specdemo.core.prompt import Prompt
from specdemo.core.results import Acceptance, Verdict
from specdemo.core.run import Probe
from specdemo.core.tolerance import tolerance
from specdemo.core.verdict import judge
from tests.unit.core.streams import A, B, stream

Listed = Sequence[tuple[str, float]]


def chosen(listed: Listed, text: str = "b", logprob: float = -0.7, *, named: int | None = None) -> tuple[Event, ...]:
    """A standard stream that ends with token 2, ``text``, with these tops; ``named``: the top of this index has an id."""
    tops = tuple(TopToken(50 + n if n == named else None, top, value) for n, (top, value) in enumerate(listed))
    entry = TokenLogprob(2, text, logprob, tops)
    events = stream(A, [(0.1, [1], "a"), (0.2, [2], text)])
    return (*events[:2], Tokens(A, 0.2, (2,), text, logprobs=(entry,)), events[-1])


def verdict(left: Sequence[Event], text: str | None, probe: Probe | None = None) -> Verdict:
    """Against a speculative stream whose second token is 3, ``text``; None: inside a burst, so its text is unknown."""
    tail = [(0.1, [1], "a"), (0.2, [3], text)] if text is not None else [(0.1, [1, 3], "ax")]
    right = stream(B, [(at, ids, words or "") for at, ids, words in tail])
    sides = collect(left, A), collect(right, B)
    drafted = Acceptance(source="request", drafting_steps=3)
    return judge(*sides, Prompt(text="x"), acceptance=drafted, limit=tolerance("float32"), probe=probe)


@pytest.mark.parametrize(
    "listed",
    [
        [("b", -0.7), ("x", -0.7), ("z", -9.5)],
        [("x", -0.7), ("b", -0.7)],
        [("x", -0.7), ("z", -9.5)],  # the delivered token is not listed beside its own value
        [("b", -0.7), ("x", -0.7), ("q", -0.7)],
        [("b", -0.7), ("x", -0.7005), ("\ufffd", -4.0), ("\ufffd", -5.0)],
    ],
)
def test_a_near_tie_is_found_by_text(listed: Listed) -> None:
    """A01: where the best tokens have no ids, the two are told by their texts: a tie is a near tie."""
    found = verdict(chosen(listed), "x")
    assert (found.cls, found.position) == ("near_tie", 1)
    assert found.gap_nats == pytest.approx(0.0, abs=1e-3)


def test_a_listed_third_is_no_near_tie() -> None:
    """A01: two better tokens without ids are two, not one."""
    found = verdict(chosen([("b", -0.7), ("q", -0.7002), ("r", -0.7003), ("x", -0.7005)]), "x")
    assert found.cls == "different"
    assert "not among the standard engine's best two" in found.reason


def test_a_real_difference_is_found_by_text() -> None:
    """A01: a listed token nats away is a real difference with its gap."""
    found = verdict(chosen([("b", -0.7), ("x", -2.7)]), "x")
    assert (found.cls, found.gap_nats) == ("different", pytest.approx(2.0))


@pytest.mark.parametrize(
    ("listed", "text"),
    [
        ([("b", -0.7), ("x", -0.7), ("z", -9.5)], None),  # inside a burst: the text is unknown
        ([("b", -0.7), (" x", -0.7), ("z", -9.5)], "x"),  # servers differ in spaces
        ([("b", -0.7), ("\u0120x", -0.7), ("z", -9.5)], " x"),
        ([("b", -0.7), ("\ufffd", -0.7), ("z", -9.5)], "\ufffd"),  # half a character looks like any other half
        ([("b", -0.7), ("\ufffd", -0.7), ("z", -9.5)], "x"),
        ([("b", -0.7), ("", -0.7), ("z", -9.5)], "x"),
        ([("b", -0.7), ("x", -0.7), ("x", -3.0), ("z", -9.5)], "x"),  # two of that text
        ([("b", -0.7), ("z", -9.5)], "b"),  # both tokens look the same: one entry may stand for both
        ([("b", -0.7), ("z", -9.5)], " b"),
    ],
)
def test_what_cannot_be_told_apart_has_no_bound(listed: Listed, text: str | None) -> None:
    """A01: a token that may stand in the list under another look is not called far away."""
    found = verdict(chosen(listed), text)
    assert (found.cls, found.gap_nats) == ("different", None)
    assert "gap is unknown" in found.reason


def test_two_tokens_of_one_text_are_not_one_tie() -> None:
    """A01: where one entry without an id fits both tokens there is no gap between them."""
    found = verdict(chosen([], "x"), "x", Probe(1, ((None, "x", -0.7), (None, "z", -9.5))))
    assert "gap is unknown" in found.reason


def test_a_token_that_is_certainly_not_listed_has_a_bound() -> None:
    """A known text unlike every listed one is at least as far away as the last of them."""
    found = verdict(chosen([("b", -0.7), ("y", -3.0), ("z", -9.5)]), "x")
    assert "at least 8.8 nats lower, outside its best 3" in found.reason


def test_ids_count_before_texts() -> None:
    """An entry with another id is another token, whatever its text."""
    found = verdict(chosen([("b", -0.7), ("x", -0.7), ("z", -9.5)], named=1), "x")
    assert "at least 8.8 nats lower" in found.reason


def test_a_probe_without_ids_is_read_by_text() -> None:
    """A01: the same for the standard engine's answer when asked again."""
    found = verdict(chosen([]), "x", Probe(1, ((None, "x", -0.7), (None, "b", -0.7), (None, "z", -9.5))))
    assert (found.cls, found.gap_nats) == ("near_tie", 0.0)
