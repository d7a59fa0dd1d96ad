"""The live comparison of two streams, and tokens that are looked up on demand."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.compare import LiveVerdict, common_prefix
from specdemo.core.events import CountersRead, Noted, SpecCounters, TokenLogprob, Tokens
from specdemo.core.outcome import chunk_tokens, collect
from tests.unit.core.streams import A, B, ids_stream, stream

IDS = st.lists(st.integers(0, 3), max_size=30)


@given(IDS, IDS, st.randoms(use_true_random=False), st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_live_comparison_equals_the_batch_one(
    left: list[int], right: list[int], order: object, cuts: list[int]
) -> None:
    """However the two streams interleave and are cut into chunks, the live result is that of the whole lists."""
    live = LiveVerdict()
    waiting = {A: list(left), B: list(right)}
    step = 0
    while waiting[A] or waiting[B]:
        side = order.choice([s for s in (A, B) if waiting[s]])  # type: ignore[attr-defined]
        size = cuts[step % len(cuts)]
        chunk, waiting[side] = waiting[side][:size], waiting[side][size:]
        before = (live.compared, live.position)
        changed = live.feed(Tokens(side, 0.1 * step, tuple(chunk)))
        assert changed == ((live.compared, live.position) != before)
        assert live.compared >= before[0]
        step += 1
    at = common_prefix(left, right)
    assert live.compared == at
    assert live.position == (at if at < min(len(left), len(right)) else None)


def test_live_comparison_without_ids_claims_nothing() -> None:
    """A20: text without ids turns the level to text and leaves the count alone; other events change nothing."""
    live = LiveVerdict()
    assert not live.feed(Noted(A, 0.0, "other", "x"))
    assert not live.feed(Tokens(A, 0.1))
    assert live.level == "ids"
    assert not live.feed(Tokens(A, 0.2, text="words"))
    assert (live.level, live.compared, live.position) == ("text", 0, None)


def test_live_comparison_with_partial_ids_claims_no_position() -> None:
    """A20: once a chunk has text and no ids, the place of later tokens is unknown, and a position is taken back."""
    live = LiveVerdict()
    for side, at, ids in ((A, 0.1, 10), (B, 0.1, 10), (A, 0.2, 11), (A, 0.3, 12), (A, 0.4, 13)):
        live.feed(Tokens(side, at, (ids,), f"<{ids}>"))
    assert not live.feed(Tokens(B, 0.5, (), "<11>"))
    for at, ids in ((0.6, 12), (0.7, 13)):
        assert not live.feed(Tokens(B, at, (ids,), f"<{ids}>"))
    assert (live.level, live.compared, live.position) == ("text", 1, None)
    parted = LiveVerdict()
    for event in (Tokens(A, 0.1, (1,), "a"), Tokens(B, 0.1, (2,), "b")):
        parted.feed(event)
    assert parted.position == 0
    assert parted.feed(Tokens(B, 0.2, (), "c"))
    assert (parted.level, parted.position) == ("text", None)
    assert not parted.feed(Tokens(B, 0.3, (), "d"))


def test_token_text_comes_only_from_exact_sources() -> None:
    """A token's text is its piece, its logprob entry's text, or a one-token chunk's text; never a guess."""
    entry = TokenLogprob(4, "four", -0.1)
    events = (
        Tokens(A, 0.1, (1,), "one"),
        Tokens(A, 0.2, (2, 3), "twothree", pieces=("two", "three")),
        Tokens(A, 0.3, (4,), "4", logprobs=(entry,)),
        Tokens(A, 0.4, (5, 6), "fivesix"),
        Tokens(A, 0.5, (7,), "", reasoning="thought"),
    )
    side = collect(events, A)
    assert [side.token_text(i) for i in range(7)] == ["one", "two", "three", "four", None, None, "thought"]
    assert side.token_text(7) is None
    assert side.token_text(-1) is None
    assert collect((), A).token_text(0) is None
    assert side.logprob(3) == entry
    assert side.logprob(0) is None


def test_logprobs_of_another_length_are_not_matched_to_tokens() -> None:
    """Entries that do not pair up with the ids of their chunk are not used."""
    entry = TokenLogprob(1, "a", -0.5)
    side = collect((Tokens(A, 0.1, (1, 2), "ab", logprobs=(entry,)),), A)
    assert side.logprob(0) is None
    assert side.candidates(0) == ()
    assert chunk_tokens(side.chunks[0]) == 2


def test_own_logprob_is_one_of_the_candidates() -> None:
    """The sampled token is a candidate even when the list of the best omits it."""
    entry = TokenLogprob(1, "a", -0.5)
    unknown = TokenLogprob(2, "b", None)
    side = collect((Tokens(A, 0.1, (1,), "a", logprobs=(entry,)), Tokens(A, 0.2, (2,), "b", logprobs=(unknown,))), A)
    assert [top.id for top in side.candidates(0)] == [1]
    assert side.candidates(1) == ()


def test_prompt_size_and_states() -> None:
    """A side's state follows its events, and its prompt size needs an end."""
    assert collect((), A).state == "waiting"
    running = collect(ids_stream(A, [1])[:-1], A)
    assert (running.state, running.prompt_size, running.finish_reason) == ("running", None, None)
    assert collect(ids_stream(A, [1], prompt_ids=(1, 2)), A).prompt_size == 2
    assert collect(ids_stream(A, [1]), A).prompt_size is None
    assert collect(ids_stream(A, [1], [2, 3]), A).largest_chunk == 2
    assert collect((), A).largest_chunk == 0


def test_last_words_are_those_of_the_last_chunk_with_text() -> None:
    """Ids behind the last text, with or without chunks of their own, are told from those that could have made it."""
    assert collect((), A).last_words() == (0, 0)
    events = (Tokens(A, 0.1, (1,), "a"), Tokens(A, 0.2, (2, 3), "", reasoning="b"), Tokens(A, 0.3, (4,)))
    assert collect(events, A).last_words() == (1, 3)


def test_ids_are_whole_only_by_the_servers_own_count() -> None:
    """A20: text in a chunk without ids leaves the ids incomplete, unless the server counts exactly those that came."""
    rows = [(0.1, (1,), ""), (0.2, (2,), "ab"), (0.3, (), "c")]
    assert collect(stream(A, rows, usage=2), A).ids == (1, 2)
    for usage in (None, 3, 1):
        side = collect(stream(A, rows, usage=usage), A)
        assert (side.ids, side.received) == (None, 2)
    assert collect(stream(A, rows, usage=3), A).ids_lost == 1
    assert collect(stream(A, [(0.1, (), "abc")], usage=3), A).ids_lost == 0  # a server without ids loses none


def test_notes_and_counter_readings_are_kept() -> None:
    """What a client noted and the counters it read stay with their side."""
    note, reading = Noted(A, 0.0, "retried", "Once."), CountersRead(A, 0.1, SpecCounters(drafts=1))
    side = collect((note, reading, Noted(B, 0.2, "other", "x")), A)
    assert (side.noted, side.counters) == ((note,), (reading,))
