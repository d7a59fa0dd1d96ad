"""Decoders together: any cut of any stream gives the same tokens, and no bytes crash."""

import contextlib
import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.events import Side, Tokens
from specdemo.engines.wire import fields
from specdemo.engines.wire.completions import CompletionReader
from specdemo.engines.wire.http1 import Chunked
from specdemo.engines.wire.ordinary import ordinary
from specdemo.engines.wire.sse import SseDecoder
from specdemo.errors import EngineProtocolError


def read(data: bytes, cuts: list[int]) -> tuple[list[Tokens], object]:
    """Everything that a stream in these pieces says."""
    decoder, reader = SseDecoder(max_event_bytes=2000), CompletionReader(Side.STANDARD)
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    found: list[Tokens] = []
    try:
        batches = [decoder.decode(data[start:end]) for start, end in itertools.pairwise(places)]
        for event in [event for batch in [*batches, decoder.flush()] for event in batch]:
            token = reader.feed(event.data, 0.0)
            if token is not None:
                found.append(token)
    except EngineProtocolError as error:
        return found, str(error)
    state = (reader.done, reader.error, reader.finish_reason, reader.usage, reader.speculation, tuple(reader.remarks))
    return found, state


TEXT = st.text(st.characters(codec="utf-8"), max_size=6) | st.sampled_from(["你好 🌍", "\u2028", "\ufffd", "👨‍👩‍👧‍👦"])
ANY: st.SearchStrategy[Any] = (
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT | st.lists(st.integers(), max_size=3)
)
CHOICE = st.fixed_dictionaries(
    {},
    optional={
        "index": st.just(0) | ANY, "text": TEXT | ANY, "delta": st.dictionaries(st.sampled_from(["content", "reasoning", "role"]), TEXT | ANY) | ANY,
        "token_ids": st.lists(st.integers(0, 9), max_size=4) | ANY, "finish_reason": st.sampled_from([None, "stop", "length"]) | ANY,
        "logprobs": st.dictionaries(st.sampled_from(["content", "tokens", "token_logprobs", "top_logprobs"]), st.lists(ANY, max_size=2)) | ANY,
    },
)  # fmt: skip
PAYLOAD = st.fixed_dictionaries(
    {},
    optional={
        "choices": st.lists(CHOICE | ANY, max_size=2) | ANY,
        "usage": st.dictionaries(TEXT, ANY) | ANY,
        "error": ANY,
        "metrics": ANY,
    },
)
EVENTS = st.lists(
    PAYLOAD.map(lambda value: "data: " + json.dumps(value))
    | st.sampled_from([": x", "data: [DONE]", "data: {", "event: e", ""]),
    max_size=5,
)


@given(EVENTS, st.sampled_from(["\n\n", "\r\n\r\n", "\r\r"]), st.lists(st.integers(0, 900), max_size=8))
def test_any_cut_gives_the_same_tokens(events: list[str], end: str, cuts: list[int]) -> None:
    """From bytes to tokens, however they were cut, whatever the payloads hold."""
    data = "".join(event + end for event in events).encode()
    assert read(data, cuts) == read(data, [])


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_any_bytes_are_read_or_refused(data: bytes, cuts: list[int]) -> None:
    """No bytes raise anything but our own error, as a body or inside HTTP chunks."""
    read(data, cuts)
    read(b"data: " + data + b"\n\n", cuts)
    with contextlib.suppress(EngineProtocolError):
        Chunked().decode(data)


def state(reader: CompletionReader) -> tuple[object, ...]:
    """All that a reader knows."""
    names = [name for name in CompletionReader.__slots__ if not name.startswith("_")]
    return tuple(getattr(reader, name) for name in names)


@given(st.lists(PAYLOAD, max_size=4))
def test_the_quick_way_and_the_tolerant_way_agree(payloads: list[Any]) -> None:
    """Ordinary chunks are decoded in one strict step; the result is that of the tolerant reader."""
    quick, tolerant = CompletionReader(Side.STANDARD), CompletionReader(Side.STANDARD)
    for payload in payloads:
        data = json.dumps(payload).encode()
        assert quick.feed(data, 1.0) == tolerant.take(fields.parse(data), 1.0)
    assert state(quick) == state(tolerant)


@given(
    st.sampled_from(["delta", "text"]),
    TEXT | st.none(),
    TEXT | st.none(),
    st.lists(st.integers(0, 2**53), max_size=5) | st.none(),
)
def test_ordinary_chunks(kind: str, text: str | None, reasoning: str | None, ids: list[int] | None) -> None:
    """What servers send all the time takes the quick way, with the same result."""
    choice: dict[str, Any] = {"index": 0, "finish_reason": None, "logprobs": None, "stop_reason": None}
    choice |= {"delta": {"content": text, "reasoning": reasoning}} if kind == "delta" else {"text": text}
    data = json.dumps(
        {"id": "x", "choices": [choice if ids is None else {**choice, "token_ids": ids}], "usage": None}
    ).encode()
    assert ordinary(data) is not None
    quick, tolerant = CompletionReader(Side.STANDARD), CompletionReader(Side.STANDARD)
    assert quick.feed(data, 1.0) == tolerant.take(fields.parse(data), 1.0)
    assert state(quick) == state(tolerant)
