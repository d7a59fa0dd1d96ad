"""The event decoder: any bytes in any cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.wire.sse import SseDecoder, SseEvent
from specdemo.errors import EngineProtocolError


def decode(data: bytes, cuts: list[int] | None = None, limit: int = 4096) -> list[SseEvent | str]:
    """All events of a stream that arrives cut at the given places; "error" stands for a refusal."""
    decoder = SseDecoder(max_event_bytes=limit)
    places = sorted({0, len(data), *(cut for cut in cuts or [] if cut < len(data))})
    seen: list[SseEvent | str] = []
    try:
        for start, end in itertools.pairwise(places):
            seen += decoder.decode(data[start:end])
        seen += decoder.flush()
    except EngineProtocolError:
        seen.append("error")
    return seen


def texts(data: bytes) -> list[bytes]:
    """Just the data of the events."""
    return [event.data for event in decode(data) if isinstance(event, SseEvent)]


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
@pytest.mark.parametrize("space", [b" ", b""], ids=["space", "bare"])
def test_line_ends_and_spaces(newline: bytes, space: bytes) -> None:
    """Each kind of line end, with and without the space after the colon, gives the same events (B03, B05)."""
    stream = b"".join(b"data:" + space + part + newline * 2 for part in (b"{}", "你好 🌍".encode(), b"[DONE]"))
    assert texts(stream) == [b"{}", "你好 🌍".encode(), b"[DONE]"]


@pytest.mark.parametrize("newline", [b"\n", b"\r", b"\r\n"], ids=["LF", "CR", "CRLF"])
def test_events_come_as_soon_as_they_are_complete(newline: bytes) -> None:
    """An event is given by the read that completes it, not by the next one (B03)."""
    decoder = SseDecoder()
    assert decoder.decode(b"data: a" + newline) == []
    assert [event.data for event in decoder.decode(newline)] == [b"a"]
    assert [event.data for event in decoder.decode(b"data: b" + newline * 2)] == [b"b"]


def test_comments_and_unknown_fields_are_ignored() -> None:
    """Keep-alive comments, unknown fields and lines without a colon never look like data (B06)."""
    stream = b":\n\n: ping\n\nfoo: bar\nbaz\n\nretry: x\n\nevent: ping\n\n:data: no\n\ndata: yes\n\n"
    assert decode(stream) == [SseEvent(b"yes")]


def test_fields_of_an_event() -> None:
    """Event name, id and reconnection time go with their event; the name is for one event, the others stay."""
    stream = b"event: error\nid: 7\nretry: 500\ndata: a\ndata: b\ndata\n\ndata: c\n\nid: x\0y\ndata: d\n\n"
    assert decode(stream) == [
        SseEvent(b"a\nb\n", "error", "7", 500),
        SseEvent(b"c", "message", "7", 500),
        SseEvent(b"d", "message", "7", 500),
    ]


def test_byte_order_mark() -> None:
    """One byte order mark at the start is dropped, however it is cut; a later one is text."""
    mark = "\ufeff".encode()
    assert texts(mark + b"data: a\n\n" + b"data: " + mark + b"\n\n") == [b"a", mark]
    decoder = SseDecoder()
    assert [decoder.decode(mark[:1]), decoder.decode(mark[1:2]), decoder.decode(b"")] == [[], [], []]
    assert decoder.decode(mark[2:] + b"data: a\n\n") == [SseEvent(b"a")]
    assert decode(mark[:2]) == []


def test_a_pending_event_comes_with_flush() -> None:
    """An event whose empty line never came is given at the end, once."""
    decoder = SseDecoder()
    assert decoder.decode(b"data: [DONE]") == []
    assert decoder.flush() == [SseEvent(b"[DONE]")]
    assert decoder.flush() == []


def test_a_megabyte_is_fine_and_more_than_the_limit_is_refused() -> None:
    """A long line is read; one over the limit is refused with its size, without keeping it (B16)."""
    decoder = SseDecoder()
    long = b"x" * 1_000_000
    assert [len(event.data) for event in decoder.decode(b"data: " + long + b"\n\n")] == [1_000_000]
    piece = b"y" * 65536
    with pytest.raises(EngineProtocolError, match=r"more than 4,194,304 bytes"):  # noqa: PT012 - which piece does it is the decoder's affair
        for _ in range(1600):
            decoder.decode(piece)
    with pytest.raises(EngineProtocolError):
        decoder.decode(b"\n\ndata: later\n\n")
    with pytest.raises(EngineProtocolError):
        decoder.flush()


def test_many_small_lines_of_one_event_count_together() -> None:
    """The limit is for an event, not for a line; empty data lines count too."""
    assert decode(b"data: 12345678\n" * 6 + b"\n", limit=50) == ["error"]
    assert decode(b"data\n" * 60 + b"\n", limit=50) == ["error"]
    assert decode(b"data: ok\n\n" + b": " + b"c" * 60 + b"\n\n", limit=50) == [SseEvent(b"ok"), "error"]
    assert decode(b"data: ok\n\n" + b"c" * 60, limit=50) == [SseEvent(b"ok"), "error"]


LINES = st.sampled_from(
    [b"data: a", b"data:b", b"data", b"data:", b": c", b"event: e", b"id: 1", b"retry: 9", b"x", b"", "data: é🌍".encode(), b"data: " + b"z" * 40]
)  # fmt: skip
STREAMS = st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r", b"\r\n"])), max_size=30).map(
    lambda pairs: b"".join(line + end for line, end in pairs)
)
CUTS = st.lists(st.integers(0, 400), max_size=12)


@given(STREAMS | st.binary(max_size=300), CUTS, st.booleans(), st.sampled_from([20, 64, 4096]))
def test_any_cut_gives_the_same_events(stream: bytes, cuts: list[int], bom: bool, limit: int) -> None:
    """How the bytes were cut is never visible, not even in what is refused (B01)."""
    data = "\ufeff".encode() * bom + stream
    assert decode(data, cuts, limit) == decode(data, [], limit) == decode(data, list(range(len(data))), limit)


@given(STREAMS | st.binary(max_size=60) | st.just(b"data: x\n\n"), st.just(b"data: y\n\n") | st.just(b"data: \n\n"))
def test_a_single_event_is_what_the_general_way_gives(before: bytes, chunk: bytes) -> None:
    """The quick way answers only where nothing is pending, and with the same data."""
    quick, general = SseDecoder(), SseDecoder()
    quick.decode(before)
    general.decode(before)
    found = quick.single(chunk)
    if found is None:
        assert quick.decode(chunk) == general.decode(chunk)
    else:
        assert [found] == [event.data for event in general.decode(chunk)]
    assert quick.flush() == general.flush()


PLAIN = st.sampled_from([b"data: a\n\n", b"data: bc\n\n", b"data: \n\n", "data: é\n\n".encode()])
ODD = st.sampled_from(
    [b"data: a\r\n\r\n", b"data:b\n\n", b"data: c\ndata: d\n\n", b": c\n\n", b"\n", b"data: e\n", b"f"]
)


@given(
    STREAMS | st.just(b"data: x\n\n"), st.lists(PLAIN | ODD, max_size=8) | st.lists(PLAIN), st.sampled_from([20, 4096])
)
def test_several_events_are_what_the_general_way_gives(before: bytes, parts: list[bytes], limit: int) -> None:
    """The same for a read that holds many events: all of them at once, or left to the general way untouched."""
    quick, general = SseDecoder(max_event_bytes=limit), SseDecoder(max_event_bytes=limit)
    try:
        quick.decode(before)
        general.decode(before)
    except EngineProtocolError:
        return
    chunk = b"".join(parts)
    found = quick.several(chunk)
    if found is not None:
        assert found == [event.data for event in general.decode(chunk)]
        assert quick.flush() == general.flush()


def test_where_whole_events_are() -> None:
    """From the start when nothing is pending, else behind the first empty line; up to the last one."""
    decoder = SseDecoder()
    assert decoder.several(b"data: a\n\n") is None  # the start of a stream may hold a byte order mark
    assert decoder.decode(b"data: a\n\n") == [SseEvent(b"a")]
    assert decoder.whole(b"data: b\n\ndata: c\n\nda") == (0, 18)
    assert decoder.several(b"data: b\n\ndata: c\n\n") == [b"b", b"c"]
    assert decoder.several(b"data: b\n\ndata: c\n") is None
    decoder.decode(b"da")
    assert decoder.whole(b"ta: b\n\ndata: c\n\nda") == (7, 16)
    assert decoder.several(b"data: c\n\n") is None
