"""The verdict where outputs end: surplus ids behind a stop, ids that did not arrive, and empty outputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from specdemo.core.events import Event, Finished, Started, TokenLogprob, Tokens
from specdemo.core.outcome import collect
from specdemo.core.prompt import Prompt
from specdemo.core.results import Acceptance, Verdict
from specdemo.core.verdict import judge
from tests.unit.core.streams import A, B, ids_stream, stream

DRAFTED = Acceptance(source="request", drafting_steps=3)


def verdict(left: Sequence[Event], right: Sequence[Event]) -> Verdict:
    """Judge a greedy pair of which the second side drafted."""
    return judge(collect(left, A), collect(right, B), Prompt(text="x"), acceptance=DRAFTED)


def said(side: Any, *chunks: tuple[Sequence[int], str], **options: Any) -> tuple[Event, ...]:
    """A finished stream of these (ids, text) chunks."""
    return stream(side, [(0.1 * n, ids, text) for n, (ids, text) in enumerate(chunks, 1)], **options)


SINGLE = said(A, ([5], "a"), ([6], "b"), ([7], "c"))


# ------------------------------------------------------------------ surplus behind a stop


@pytest.mark.parametrize(
    ("left", "right", "surplus"),
    [
        (SINGLE, said(B, ([5], "a"), ([6, 7], "bc"), ([8, 9], "")), 1),
        (SINGLE, said(B, ([5], "a"), ([6, 7], "bc"), ([8], ""), ([9], "")), 1),
        (SINGLE, said(B, ([5], "a"), ([6, 7, 8, 9], "bc")), 1),
        (said(A, ([5], "a"), ([6, 7], "bc"), ([8], ""), ([9], "")), said(B, ([5], "a"), ([6], "b"), ([7], "c")), 1),
        (said(A, ([5], "a"), ([6, 7, 3], "bc")), said(B, ([5], "a"), ([6, 7, 8, 9], "bc")), 2),
        (said(A, ([5], "a"), ([6, 7], "bc"), ([3], "")), said(B, ([5], "a"), ([6, 7], "bc"), ([8, 9], "")), 2),
        (said(A, ([5], "a"), ([6], "b"), ([7], "c"), ([3], ""), usage=3), said(B, ([5, 6, 7, 8, 9], "abc")), 2),
        (SINGLE, said(B, ([5], "a"), ([6, 7], "bc"), ([8, 9], ""), finish="length"), 1),
    ],
)
def test_surplus_behind_the_stop_is_no_difference(left: Sequence[Event], right: Sequence[Event], surplus: int) -> None:
    """A14: with equal text, ids behind the stop are surplus, in the last burst or in chunks of their own."""
    found = verdict(left, right)
    assert (found.cls, found.compared, found.position) == ("identical", 3, None)
    assert sum("surplus token ids after the stop" in remark for remark in found.remarks) == surplus


@pytest.mark.parametrize(
    ("left", "right", "position"),
    [
        # text came with the tokens that differ
        (said(A, ([5], "a"), ([6, 7, 3], "bc")), said(B, ([5], "a"), ([6, 7, 8, 9], "bd")), 3),
        (said(A, ([5], "a"), ([6, 7], "bc")), said(B, ([5], "a"), ([8, 9], "bc")), 1),
        (said(A, ([5, 6], "ab"), ([7], "c")), said(B, ([5, 6, 8], "abc")), 2),
        (SINGLE, said(B, ([5], "a"), ([6, 7], "bc"), ([8, 9], "d")), 3),
        # single tokens: the standard engine chose its stop token, the other side chose another
        (said(A, ([5], "a"), ([6], "b"), ([0], "")), said(B, ([5], "a"), ([6, 8], "b")), 2),
        # a limit did not stop here, and the other side went on for longer than a burst
        (said(A, ([5], "a")), said(B, ([5], "a"), ([6], ""), ([7], ""), finish="length"), 1),
        (said(A, ([5, 6], "a"), finish="length"), said(B, ([5, 7], "a"), finish="length"), 1),
        # ids without text are a call, or all that there is
        (said(A, ([5, 6], "a"), finish="tool_calls"), said(B, ([5, 7], "a"), finish="tool_calls"), 1),
        (said(A, ([5], "a"), finish="tool_calls"), said(B, ([5], "a"), ([6, 7], ""), finish="tool_calls"), 1),
        (said(A, ([5, 6], "")), said(B, ([5, 7], "")), 1),
    ],
)
def test_what_is_no_surplus_stays_a_difference(left: Sequence[Event], right: Sequence[Event], position: int) -> None:
    """A14: only ids behind the same complete text, of engines that stopped by themselves, are forgiven."""
    found = verdict(left, right)
    assert (found.cls, found.position) == ("different", position)


def test_known_token_texts_show_where_the_text_ends() -> None:
    """A14, A20: where single texts are known they tell surplus from another spelling of the same text."""

    def told(side: Any, *tokens: tuple[int, str]) -> tuple[Event, ...]:
        entries = tuple(TokenLogprob(token, text, -0.5) for token, text in tokens)
        burst = Tokens(side, 0.1, tuple(token for token, _ in tokens), "determine", logprobs=entries)
        return (Started(side, 0.0), burst, Finished(side, 0.1, "stop"))

    spelt = verdict(told(A, (1, "deter"), (2, "mine")), told(B, (1, "deter"), (3, "mi"), (4, "ne")))
    assert (spelt.cls, spelt.position) == ("different", 1)
    assert "Same text, different tokens." in spelt.remarks
    stopped = verdict(
        told(A, (1, "deter"), (2, "mine#"), (3, "x")), told(B, (1, "deter"), (2, "mine#"), (4, "y"), (5, "z"))
    )
    assert (stopped.cls, stopped.compared) == ("identical", 2)


def test_finish_reasons_are_said_beside_surplus() -> None:
    """A17: a length limit that hid a stop inside the burst is told beside the equal tokens."""
    found = verdict(SINGLE, said(B, ([5], "a"), ([6, 7, 8], "bc"), ([9], ""), finish="length"))
    assert found.cls == "identical"
    assert found.remarks[-1] == "Finish reasons differ: standard stop, speculative length."


# ------------------------------------------------------------------ ids that did not arrive


@pytest.mark.parametrize("finish", ["stop", "length"])
def test_a_side_that_lost_tokens_is_shorter_however_it_ended(finish: str) -> None:
    """A16: 6 of 8 reported tokens arrived and all match: cannot decide, whatever the finish reason."""
    left = ids_stream(A, *[[i] for i in range(1, 9)], usage=8)
    found = verdict(left, ids_stream(B, [1], [2, 3, 4, 5, 6], usage=8, finish=finish))
    assert found.cls == "not_comparable"
    assert "speculative output is shorter (6 of 8 tokens); the first 6 tokens match" in found.reason
    assert found.remarks[0] == "The speculative server reported 8 tokens and delivered 6."


def test_a_shorter_text_of_a_side_that_lost_tokens_decides_nothing() -> None:
    """A16: the same at the level of texts, and when the lost tokens are in the middle of the ids."""
    left = said(A, ([1], "a"), ([2], "b"), ([3], "c"), ([4], "d"), usage=4)
    found = verdict(left, said(B, ([1], "a"), ([], "b"), ([3], ""), usage=4))
    assert (found.cls, found.level, found.position) == ("not_comparable", "text", None)
    assert "first 2 characters match" in found.reason
    split = verdict(left, said(B, ([1], "a"), ([3], ""), usage=4))
    assert (split.cls, split.level) == ("not_comparable", "text")


def test_a_text_that_is_shorter_than_its_count_decides_nothing() -> None:
    """A16: without ids, a shorter text that was counted as many tokens lost some; one that was counted fewer ended."""
    left = said(A, ([], "ab"), ([], "cd"), usage=4)
    found = verdict(left, said(B, ([], "abc"), usage=4))
    assert (found.cls, found.level) == ("not_comparable", "text")
    assert verdict(left, said(B, ([], "abc"), usage=3)).cls == "different"
    assert verdict(left, said(B, ([], "abc"))).cls == "different"


def test_a_stop_token_that_is_counted_and_not_sent_is_no_loss() -> None:
    """Servers that count the stop token without its id lack one on both sides: an earlier stop stays a difference."""
    left, right = ids_stream(A, [1], [2], [3], usage=4), ids_stream(B, [1, 2], usage=3)
    assert verdict(left, right).cls == "different"
    assert verdict(left, ids_stream(B, [1, 2, 3], usage=4)).cls == "identical"


@pytest.mark.parametrize("finish", ["length", "tool_calls"])
def test_equal_tokens_with_others_lost_are_not_called_identical(finish: str) -> None:
    """A16: both sides delivered 6 of 8 tokens: those are equal, and the rest was never seen."""
    sides = [ids_stream(side, [1, 2, 3], [4, 5, 6], usage=8, finish=finish) for side in (A, B)]
    found = verdict(*sides)
    assert (found.cls, found.compared) == ("not_comparable", 6)
    assert found.reason == ("Cannot decide: a server counted more tokens than arrived; the first 6 tokens match.")
    assert len(found.remarks) == 2


def test_partial_ids_are_compared_as_text() -> None:
    """A20: one chunk with text and no ids: texts are compared, the reason is said, and no token index is claimed."""
    left = ids_stream(A, [10], [11], [12], [13])
    right = said(B, ([10], "<10>"), ([], "<11>"), ([12], "<12>"), ([13], "<13>"))
    for found in (verdict(left, right), verdict(right_to(A, right), right_to(B, left))):
        assert (found.cls, found.level, found.position, found.compared) == ("identical", "text", None, 0)
        assert found.remarks == (
            "Some chunks had text but no token ids, so the ids are incomplete.",
            "So texts were compared, and no token position is claimed.",
        )
    other = verdict(left, said(B, ([10], "<10>"), ([], "<11>"), ([14], "<14>")))
    assert (other.cls, other.level, other.position) == ("different", "text", None)


def right_to(side: Any, events: Sequence[Event]) -> list[Event]:
    """The same events on another side."""
    return [type(event)(**{**{n: getattr(event, n) for n in event.__slots__}, "side": side}) for event in events]


def test_drafts_without_steps_are_drafts() -> None:
    """A request that tells its drafted tokens and not its steps was tested."""
    sides = collect(ids_stream(A, [1], [2]), A), collect(ids_stream(B, [1], [2]), B)
    drafted = Acceptance(source="request", drafted=4, accepted=0)
    found = judge(*sides, Prompt(text="x"), acceptance=drafted)
    assert (found.cls, found.remarks) == ("identical", ())


def test_reasoning_and_answer_in_one_chunk_are_as_in_two() -> None:
    """A21: a burst across the end of thinking loses nothing, with ids, with some of them, or without any."""

    def thought(side: Any, *chunks: tuple[Sequence[int], str, str]) -> tuple[Event, ...]:
        tokens = [Tokens(side, 0.1 * n, tuple(ids), text, why) for n, (ids, why, text) in enumerate(chunks, 1)]
        return (Started(side, 0.0), *tokens, Finished(side, 1.0, "stop"))

    apart, mixed = ([1], " ok.", ""), ([2], "", "The")
    assert verdict(thought(A, apart, mixed), thought(B, ([1, 2], " ok.", "The"))).cls == "identical"
    found = verdict(thought(A, apart, mixed), thought(B, ([], " ok.", "The")))
    assert (found.cls, found.level) == ("identical", "text")
    found = verdict(thought(A, apart, mixed), thought(B, ([1, 2, 8, 9], " ok.", "The")))
    assert (found.cls, found.compared) == ("identical", 2)
    swapped = verdict(thought(A, ([], " ok.", ""), mixed), thought(B, ([], "", " ok.The")))
    assert (swapped.cls, swapped.position) == ("different", None)


# ------------------------------------------------------------------ nothing to compare


@pytest.mark.parametrize(
    ("counts", "cls", "words"),
    [
        ((None, None), "not_tested", "neither output holds a token or text"),
        ((0, 0), "not_tested", "neither output holds a token or text"),
        ((1, 1), "not_tested", "neither output holds a token or text"),
        ((9, 12), "not_comparable", "counted more tokens than arrived"),
    ],
)
def test_empty_outputs_are_not_identical(counts: tuple[int | None, int | None], cls: str, words: str) -> None:
    """Two replies without a token or text, or with nothing but calls that are not read, test nothing."""
    sides = [said(side, ([], ""), usage=usage, finish="tool_calls") for side, usage in zip((A, B), counts, strict=True)]
    found = verdict(*sides)
    assert (found.cls, found.compared) == (cls, 0)
    assert words in found.reason


def test_empty_texts_of_lost_ids_are_not_identical() -> None:
    """Ids that differ with ids lost and no text at all leave nothing that could be compared."""
    sides = said(A, ([1, 2], ""), usage=9), said(B, ([1, 3], ""), usage=9)
    found = verdict(*sides)
    assert (found.cls, found.level) == ("not_tested", "text")


def test_surplus_ids_that_hide_a_loss_are_no_difference() -> None:
    """A14, A16: text without its id and one surplus id make the count agree; then the texts are compared."""
    left = said(A, ([2], "b"), ([1], "a"), ([0], ""), usage=3)
    found = verdict(left, said(B, ([2], "b"), ([], "a"), ([0, 10], ""), usage=3))
    assert (found.cls, found.level, found.position) == ("identical", "text", None)
    assert "ids are incomplete" in found.remarks[0]
    held = verdict(left, said(B, ([2, 1], "b"), ([], "a"), ([0], ""), usage=3))  # only held back
    assert (held.cls, held.level, held.compared) == ("identical", "ids", 3)
    other = verdict(left, said(B, ([2], "b"), ([4], ""), ([], "d"), ([0], ""), usage=3))
    assert (other.cls, other.level, other.position) == ("different", "ids", 1)


@pytest.mark.parametrize("gone", [1, 2])
def test_a_text_that_lost_its_middle_decides_nothing(gone: int) -> None:
    """A16: tokens that never arrived take their text with them: what is left is no other text."""
    left = said(A, *[([i], chr(96 + i)) for i in range(1, 7)], usage=6)
    rest = [([i], chr(96 + i)) for i in range(1, 7) if not 2 <= i < 2 + gone]
    found = verdict(left, said(B, *rest, usage=6))
    assert (found.cls, found.level, found.position) == ("not_comparable", "text", None)
    assert "one text is shorter; the first 1 characters match" in found.reason
    changed = verdict(left, said(B, *rest[:-1], ([9], "x"), usage=6))
    assert (changed.cls, changed.level) == ("different", "text")
    reported = verdict(left, said(B, ([1], "a"), ([3], "c"), ([4, 5, 6], "xyz"), usage=6))
    assert reported.cls == "different"


def test_equal_tokens_whose_texts_differ_are_said_to() -> None:
    """A14, A17: one server cut its text at a stop and left the ids: the tokens are equal, what is shown is not."""
    found = verdict(SINGLE, said(B, ([5], "a"), ([6, 7], "b")))
    assert (found.cls, found.compared) == ("identical", 3)
    assert found.remarks == ("Same tokens, different texts.",)
