"""The cross-checks: each violation gives its note, and a clean stream gives none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specdemo.core.events import CountersRead, Event, Noted, RequestSpeculation, SpecCounters, Started, Tokens
from specdemo.core.meters import side_metrics
from specdemo.core.metrics import SideMeter
from specdemo.core.quality import _identities
from specdemo.core.results import Note
from tests.unit.core.streams import A, B, detailed, ids_stream, stream


def notes(events: tuple[Event, ...], **options: int) -> dict[str, str]:
    """Notes by kind on one side's events."""
    meter = SideMeter(events[-1].side, **options)
    for event in events:
        meter.feed(event)
    found: tuple[Note, ...] = meter.notes()
    return {note.kind: note.message for note in found}


def test_clean_streams_have_no_notes() -> None:
    """A stream whose numbers agree is not nagged about."""
    assert notes(ids_stream(A, [1], [2], [3], usage=3)) == {}
    assert notes(ids_stream(B, [1], [2, 3, 4], [5], usage=5, spec=detailed([2]))) == {}


def test_lost_ids_are_noted() -> None:
    """A16: the server reports 8 tokens and 6 ids arrived; both numbers are in the note."""
    text = notes(ids_stream(B, [1], [2, 3, 4, 5, 6], usage=8))["token_ids_lost"]
    assert "8" in text
    assert "6" in text


def test_surplus_ids_are_noted() -> None:
    """A14: more ids than the server counts are surplus."""
    assert "2 are surplus" in notes(ids_stream(B, [5], [6, 7, 8, 9], usage=3))["surplus_ids"]


def test_missing_usage_is_noted() -> None:
    """Without usage the count could not be cross-checked."""
    assert "no_usage" in notes(ids_stream(A, [1], [2]))


@pytest.mark.parametrize(("usage", "grade"), [(9, "usage"), (None, "estimated")])
def test_lower_grades_are_noted(usage: int | None, grade: str) -> None:
    """A20: a server without ids is counted by a lower grade, which is said."""
    assert grade in notes(stream(A, [(0.1, (), "a"), (0.2, (), "b")], usage=usage))["no_token_ids"]


@pytest.mark.parametrize(
    "events",
    [
        ids_stream(A, [1], [2, 3], usage=3),
        ids_stream(B, [1, 2], [3], usage=3),
        ids_stream(B, [1], list(range(7)), usage=8, spec=detailed([4, 1])),
        ids_stream(B, [1], [2, 3], [4, 5], usage=5, spec=detailed([1])),
    ],
    ids=["standard-burst", "burst-with-prefill", "longer-than-a-step", "more-than-accepted"],
)
def test_merged_steps_are_noted(events: tuple[Event, ...]) -> None:
    """Whatever proves that a chunk holds several steps is noted as coalesced."""
    assert "coalesced" in notes(events)


def test_known_draft_length_reveals_merged_steps() -> None:
    """A burst above k + 1 proves merging even without the engine's numbers."""
    assert "coalesced" in notes(ids_stream(B, [1], [2, 3, 4, 5], usage=5), k=2)
    assert "coalesced" not in notes(ids_stream(B, [1], [2, 3, 4, 5], usage=5), k=3)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (detailed([4, 4, 4]), "12 drafts accepted but only 2 seen"),
        (detailed([1, 1, 0, 0]), "4 drafting steps but 2 decode steps"),
        (RequestSpeculation(1, 2, 3), "3 accepted of 2 drafted"),
        (RequestSpeculation(1, 4, -1), "-1 accepted"),
        (replace(detailed([2]), histogram=(1, 0, 1)), "histogram counts 2 steps"),
        (replace(detailed([2]), histogram=(0, 1)), "histogram does not add up"),
        (replace(detailed([2]), accepted_per_step=(1,)), "accepted tokens per step"),
        (replace(detailed([2]), drafted_per_step=(4, 4)), "drafted tokens per step"),
        (RequestSpeculation(1, 1, 2, accepted_per_step=(2,), drafted_per_step=(1,)), "more than it drafted"),
    ],
)
def test_numbers_that_do_not_add_up_are_noted(spec: RequestSpeculation, words: str) -> None:
    """Each broken identity is named in the metrics_mismatch note."""
    assert words in notes(ids_stream(B, [1], [2, 3, 4], [5], usage=5, spec=spec))["metrics_mismatch"]


def test_clumped_arrival_is_noted() -> None:
    """B24: 64 events at once every 2 s are stated, and a steady stream of bursts is not."""
    rows = [(2.0 * (1 + i // 64), (i,), "x") for i in range(192)]
    assert "unreliable" in notes(stream(A, rows, usage=192))["clumped"]
    steady = [(0.05 * (i + 1), (i,), "x") for i in range(192)]
    assert "clumped" not in notes(stream(A, steady, usage=192))


def test_our_own_overload_blames_nothing_on_the_way() -> None:
    """Clumped arrivals of a side that noted its own overload are laid to this app."""
    rows = [(2.0 * (1 + i // 64), (i,), "x") for i in range(192)]
    found = notes((Noted(A, 2.0, "overloaded", "late"), *stream(A, rows, usage=192)))["clumped"]
    assert "this app was too busy" in found
    assert "on the way" not in found


def test_clumps_do_not_flatter_the_decode_rate() -> None:
    """B24: with 64 tokens every 2 s the first clump only starts the clock: 128 tokens in 4 s, not 191."""
    rows = [(2.0 * (1 + i // 64), (i,), "x") for i in range(192)]
    assert side_metrics(stream(A, rows, usage=192), A).decode_tokens_per_s == pytest.approx(32.0)


def test_a_reply_let_go_at_once_claims_no_rate() -> None:
    """D21, B24: 50 chunks within two milliseconds were held back by something; no rate is made of that."""
    rows = [(2.0 + 0.00004 * i, (i,), "x") for i in range(50)]
    found = side_metrics(stream(A, rows, usage=50), A)
    assert (found.decode_tokens_per_s, found.tpot_s) == (None, None)
    assert "at once" in dict(found.reasons)["decode_tokens_per_s"]
    assert found.tokens_per_s == pytest.approx(25.0, rel=0.01)


def test_a_very_fast_engine_is_not_clumped() -> None:
    """Chunks half a millisecond apart all along are speed, not buffering."""
    rows = [(0.0005 * (i + 1), (i,), "x") for i in range(192)]
    assert "clumped" not in notes(stream(A, rows, usage=192))


def test_counters_that_say_too_much_are_noted() -> None:
    """A12: counters that grew by others' tokens, and counters that restarted, are both said."""
    quiet = SpecCounters(0, 0, 0, generation_tokens=0.0)
    busy = (CountersRead(B, 0.0, quiet), CountersRead(B, 0.1, SpecCounters(9, 36, 8, generation_tokens=500.0)))
    assert "497 tokens for others" in notes((*busy, *ids_stream(B, [1], [2, 3], usage=3)))["other_traffic"]
    reset = (CountersRead(B, 0.0, SpecCounters(9, 9, 9)), CountersRead(B, 0.1, quiet))
    assert "counters_reset" in notes((*reset, *ids_stream(B, [1], [2, 3], usage=3)))
    assert "whole server during this run" in notes((*busy, *ids_stream(B, [1], [2, 3], usage=3)))["whole_server"]
    exact = notes((*busy, *ids_stream(B, [1], [2, 3], usage=3, spec=detailed([1]))))
    assert exact.keys() == {"other_traffic"}  # the request's own numbers are used
    near = (CountersRead(B, 0.0, quiet), CountersRead(B, 0.1, SpecCounters(1, 4, 1, generation_tokens=6.0)))
    assert "other_traffic" not in notes((*near, *ids_stream(B, [1], [2, 3], usage=3)))


def test_running_streams_are_not_judged_by_what_comes_last() -> None:
    """Before the end neither usage nor the engine's numbers are missing."""
    assert notes((Started(A, 0.0), Tokens(A, 0.1, (1,)))) == {}


def test_unknown_steps_contradict_nothing() -> None:
    """A server that does not tell its steps is not blamed for them; its other numbers are still added up."""
    spec = RequestSpeculation(None, 4, 2, 4, (1, 0, 1), (2, 0), (2, 2))
    assert list(_identities(spec, tokens=4, chunks=2, merged=False)) == []
    wrong = RequestSpeculation(None, 4, 2, 4, None, (1, 0), (2, 1))
    assert len(list(_identities(wrong, tokens=4, chunks=2, merged=False))) == 2
