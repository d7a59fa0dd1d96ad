"""HTTP/1.1 replies in any cut."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.wire.http1 import Chunked, Head, HeadReader, Sized, UntilClose, framing
from specdemo.errors import EngineProtocolError


def head(data: bytes) -> Head:
    """A head that comes in one piece."""
    found = HeadReader().decode(data)
    assert found is not None
    return found


def test_head_in_pieces() -> None:
    """Byte by byte, with an interim reply before and body bytes behind."""
    data = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-A: 1\r\nx-a:2\r\n\r\nrest"
    reader = HeadReader()
    found = [reader.decode(data[at : at + 1]) for at in range(len(data))]
    done = next(item for item in found if item is not None)
    assert (done.status, done.values(b"x-a"), done.keep_alive) == (200, [b"1", b"2"], True)
    whole = HeadReader()
    assert whole.decode(data) == done
    assert whole.rest == b"rest"


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        (b"HTTP/1.1 200\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: x, Keep-Alive\r\n\r\n", True),
    ],
)
def test_which_connections_may_be_used_again(data: bytes, kept: bool) -> None:
    """As RFC 9112 says."""
    assert head(data).keep_alive is kept


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 2x0 OK\r\n\r\n",
        b"HTTP/1.1 2000\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na : x\r\n\r\n",
        b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\nx: " + b"x" * 70_000,
    ],
)
def test_broken_heads_are_refused(data: bytes) -> None:
    """What is no HTTP is named so."""
    with pytest.raises(EngineProtocolError, match="proper HTTP"):
        HeadReader().decode(data)


def test_a_head_that_ends_early() -> None:
    """Nothing at all is a closed connection; half a head is no HTTP."""
    reader = HeadReader()
    reader.end()
    reader.decode(b"HTTP/1.1 200")
    with pytest.raises(EngineProtocolError, match="middle of its headers"):
        reader.end()


def test_how_bodies_are_framed() -> None:
    """Chunked, by length, none at all, until the end."""
    start = b"HTTP/1.1 200 OK\r\n"
    assert isinstance(framing(head(start + b"Transfer-Encoding: Chunked\r\ncontent-length: 3\r\n\r\n")), Chunked)
    sized = framing(head(start + b"Content-Length: 3\r\ncontent-length: 3\r\n\r\n"))
    assert isinstance(sized, Sized)
    assert (sized.decode(b"ab"), sized.done, sized.ended()) == (b"ab", False, False)
    assert (sized.decode(b"cd"), sized.done, sized.ended()) == (b"c", True, True)
    empty = framing(head(b"HTTP/1.1 204 No Content\r\n\r\n"))
    assert empty.done
    rest = framing(head(start + b"\r\n"))
    assert isinstance(rest, UntilClose)
    assert (rest.decode(b"x"), rest.done, rest.ended()) == (b"x", False, True)


@pytest.mark.parametrize(
    "line",
    [
        b"Content-Length: x",
        b"Content-Length: -1",
        b"Content-Length: 3\r\nContent-Length: 4",
        b"Transfer-Encoding: gzip, chunked",
    ],
)
def test_unclear_framing_is_refused(line: bytes) -> None:
    """Two lengths, no number, a coding that nobody asked for."""
    with pytest.raises(EngineProtocolError):
        framing(head(b"HTTP/1.1 200 OK\r\n" + line + b"\r\n\r\n"))


def body(data: bytes, cuts: list[int]) -> tuple[bytes, bool, bool]:
    """The body of a chunked stream, whether it is complete, and whether it was refused."""
    frame = Chunked()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found = b""
    try:
        for start, end in itertools.pairwise(places):
            found += frame.decode(data[start:end])
            if frame.error is not None:
                raise frame.error
    except EngineProtocolError:
        return found, False, True
    return found, frame.ended(), False


def test_chunks() -> None:
    """Extensions and trailers are passed over; bytes after the end too."""
    assert body(b"3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX-T: 1\r\n\r\nnext", []) == (b"abc0123456789", True, False)
    assert body(b"3\r\nab", []) == (b"ab", False, False)


@pytest.mark.parametrize(
    "data",
    [b"\r\n", b"xyz\r\n", b"3\r\nabcd\r\n", b"-3\r\nabc\r\n", b"f" * 16 + b"\r\n", b"1" * 1100, b"3\r\nabc\r\n\r\n"],
)
def test_broken_chunks_are_refused(data: bytes) -> None:
    """Lost or invented bytes never pass for text."""
    found, *state = body(data, [])
    assert state == [False, True]
    assert found in (b"", b"abc")


PARTS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)


@given(PARTS, st.lists(st.integers(0, 400), max_size=10))
def test_any_cut_gives_the_same_body(parts: list[bytes], cuts: list[int]) -> None:
    """How a chunked body was cut is never visible."""
    chunks = [f"{len(part):x}\r\n".encode() + part + b"\r\n" for part in parts]
    data = b"".join(chunks) + b"0\r\n\r\n"
    ends = [sum(map(len, chunks[:count])) for count in range(len(chunks) + 1)]
    expected = (b"".join(parts), True, False)
    assert body(data, cuts) == body(data, list(range(len(data)))) == body(data, ends) == expected


@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_any_bytes_give_one_result(data: bytes, cuts: list[int]) -> None:
    """Nonsense is read or refused, the same in any cut, never with another exception."""
    once, again = body(data, cuts), body(data, [])
    assert once == again


@given(st.binary(max_size=200))
def test_any_head_is_read_or_refused(data: bytes) -> None:
    """No other exception than ours."""
    for start in (b"", b"HTTP/1.1 200 OK\r\n"):
        try:
            found = HeadReader().decode(start + data + b"\r\n\r\n")
            assert found is None or framing(found) is not None
        except EngineProtocolError:
            pass


LINES = st.lists(st.sampled_from([b"a", b"\r\n", b"\r", b"\n", b"data: x\n\n", b"data: y\r\n\r\n", b"z" * 20]), min_size=1, max_size=4)  # fmt: skip


@given(st.lists(LINES.map(b"".join), max_size=12), st.booleans(), st.lists(st.integers(0, 500), max_size=4))
def test_many_chunks_in_a_read_are_what_single_bytes_give(parts: list[bytes], end: bool, cuts: list[int]) -> None:
    """Also with line ends inside the data, and with a size that is wrong behind right ones."""
    data = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    for tail in (b"0\r\n\r\n" * end, b"3\r\nabcd\r\n", b"3\r", b"3\r\nab"):
        single = body(data + tail, list(range(len(data) + 10)))
        assert body(data + tail, []) == body(data + tail, cuts) == single
        assert single[0] == b"".join(parts) + (b"abc" if single[2] else b"ab" if tail == b"3\r\nab" else b"")


def test_another_protocol_is_told_at_once() -> None:
    """A greeting without an empty line is no reason to wait for the time limit; TLS is named, for it is the usual case."""
    for greeting in (b"SSH-2.0-OpenSSH_9.6\r\n", b"220 mail ESMTP\r\n", b"\0\0\x12\x04", b"HTTQ"):
        with pytest.raises(EngineProtocolError, match="not a status line"):
            HeadReader().decode(greeting)
    with pytest.raises(EngineProtocolError, match="https://"):
        HeadReader().decode(b"\x15\x03\x01\x00\x02\x02\x0a")


def test_heads_whose_lines_end_in_lf_alone() -> None:
    """Hand-made servers send them; RFC 9112 lets a client read them."""
    reader = HeadReader()
    found = reader.decode(b"HTTP/1.1 200 OK\nContent-Type: text/event-stream\nX-A: 1\n\ndata: x\n\n")
    assert found is not None
    assert (found.status, found.values(b"x-a"), reader.rest) == (200, [b"1"], b"data: x\n\n")


def test_what_came_before_a_broken_chunk_is_kept() -> None:
    """The error is told behind the bytes that were good; with none it is raised at once."""
    chunked = Chunked()
    assert chunked.decode(b"5\r\nhello\r\n3\r\nabc\r\nzz\r\n") == b"helloabc"
    assert "has no size" in str(chunked.error)
    assert Chunked().error is Sized(1).error is UntilClose().error is None


def test_a_length_that_is_named_twice() -> None:
    """Equal lengths are one (RFC 9112), in two headers or in one."""
    frame = framing(head(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nContent-Length: 5\r\n\r\n"))
    assert frame.decode(b"hello!") == b"hello"
    with pytest.raises(EngineProtocolError):
        framing(head(b"HTTP/1.1 200 OK\r\nContent-Length: 5, 6\r\n\r\n"))
