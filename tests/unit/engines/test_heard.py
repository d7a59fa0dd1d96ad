"""From a body's bytes to events: the same in any cut, whether many events come in one read or one by one."""

import itertools
import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specdemo.core.events import Event, Side, Tokens
from specdemo.engines.heard import Heard
from specdemo.engines.wire.completions import CompletionReader
from specdemo.engines.wire.problems import ServerError
from specdemo.errors import EngineProtocolError


def chunk(number: int, **more: Any) -> bytes:
    """An ordinary chunk of plain completions."""
    choice = {"index": 0, "text": f" w{number}", "logprobs": None, "finish_reason": None, "token_ids": [number]}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice | more]}).encode() + b"\n\n"


def heard(data: bytes, cuts: list[int], limit: int = 4096) -> tuple[list[Event], object]:
    """Everything that a body in these pieces says, as the stream reads it: nothing behind the last event."""
    reader = CompletionReader(Side.STANDARD)
    stream, found = Heard(reader, Side.STANDARD, limit), list[Event]()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    try:
        for start, end in itertools.pairwise(places):
            if not stream.complete:
                stream.feed([data[start:end]], 1.0, found)
        if not stream.complete:
            stream.flush(1.0, found)
    except EngineProtocolError as error:
        return found, str(error)
    names = [name for name in CompletionReader.__slots__ if not name.startswith("_")]
    return found, [getattr(reader, name) for name in names]


def test_many_events_in_one_read() -> None:
    """The whole answer at once: a token a chunk, then the reason, the usage and the end."""
    usage = b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":30}}\n\n'
    data = b"".join(map(chunk, range(30))) + chunk(30, finish_reason="length") + usage + b"data: [DONE]\n\nrest"
    found, state = heard(data, [])
    assert [event.ids for event in found if isinstance(event, Tokens)] == [(number,) for number in range(31)]
    assert found[3] == Tokens(Side.STANDARD, 1.0, (3,), " w3", "", (" w3",))
    assert hash(found[3]) == hash(Tokens(Side.STANDARD, 1.0, (3,), " w3", "", (" w3",)))
    assert (found, state) == heard(data, list(range(len(data))))


def test_a_broken_event_among_many() -> None:
    """What was said before it is kept, in any cut."""
    data = b"".join(map(chunk, range(8))) + b"data: {\n\n" + b"".join(map(chunk, range(8)))
    found, said = heard(data, [])
    assert len(found) == 8
    assert "not JSON" in str(said)
    assert (found, said) == heard(data, list(range(len(data))))


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b"", b"\n\ndata: [DONE]\n\n", b"\n\n" + chunk(9) * 9])
def test_an_error_that_is_no_event(end: bytes) -> None:
    """Bare JSON in the middle of a stream is told as the failure that it is, in any cut; nothing is read behind it."""
    data = chunk(1) * 9 + b'{"error": {"message": "engine died", "code": 500}}' + end
    found, state = heard(data, [])
    assert len(found) == 9
    assert ServerError("engine died", 500) in cast("list[object]", state)
    assert (found, state) == heard(data, list(range(len(data))))


@pytest.mark.parametrize("end", [b"\n\n", b"\n", b""])
def test_events_without_empty_lines_between_them(end: bytes) -> None:
    """A line each, as careless servers write them, in any cut; a broken line among them is still named."""
    lines = [chunk(1).strip(), chunk(2, finish_reason="stop").strip(), b"data:", b"data: [DONE]"]
    data = b"\n".join(lines) + end
    found, state = heard(data, [])
    assert [event.ids for event in found if isinstance(event, Tokens)] == [(1,), (2,)]
    assert "stop" in cast("list[object]", state)
    assert (found, state) == heard(data, list(range(len(data))))
    found, said = heard(b"\n".join([lines[0], b"data: {", lines[1]]) + b"\n\n", [])
    assert (found, "not JSON" in str(said)) == ([], True)


def test_one_event_in_several_lines() -> None:
    """As the grammar says: the lines of one text are joined before they are read."""
    data = chunk(1).replace(b', "choices"', b',\ndata: "choices"')
    assert len(heard(data, [])[0]) == 1


def test_other_bare_json_is_no_event_and_no_error() -> None:
    """As the grammar says, whatever it holds; so is what is no JSON at all."""
    for line in (b'{"text": "x"}', b'{"choices": [{"text": "y"}]}', b"{", b'{"a'):
        found, state = heard(chunk(1) + line + b"\n" + chunk(2) + b"data: [DONE]\n\n", [])
        assert [event.text for event in found if isinstance(event, Tokens)] == [" w1", " w2"]
        assert True in cast("list[object]", state)
    twice = b'{"error": "one"}\n{"error": "two"}\n\n'
    assert ServerError("one") in cast("list[object]", heard(chunk(1) + twice, [])[1])


OTHERS = st.sampled_from(
    [
        b": still here\n\n", b"data:  \n\n", b"data: \n\n", b"event: error\ndata: no\n\n", b"data: [DONE]\n\n", b"data: {\n\n",
        b'data: {"error":{"message":"no"}}\n\n', b'data: {"choices":[]}\n\n', b"\n", b"\r\n", b"x\n", b"data: " + b"9" * 5000 + b"\n\n",
        chunk(1).replace(b"\n\n", b"\r\n\r\n"), chunk(2, finish_reason="stop"), chunk(3, token_ids=[1, 2]),
        chunk(4, logprobs={}), chunk(5, text=None), chunk(6, token_ids=None), chunk(7, text=7), chunk(8, prompt_token_ids=[1]),
    ]
)  # fmt: skip
BODIES = st.lists(st.integers(0, 99).map(chunk) | st.integers(100, 199).map(chunk) | OTHERS, max_size=25).map(b"".join)


@settings(deadline=None)
@given(BODIES, st.lists(st.integers(0, 3000), max_size=6))
def test_any_cut_gives_the_same_events(data: bytes, cuts: list[int]) -> None:
    """In one read, in a few, and so that no read ever holds enough for the quick way."""
    singly = heard(data, list(range(0, len(data), 90)))
    assert heard(data, []) == singly
    assert heard(data, cuts) == singly
