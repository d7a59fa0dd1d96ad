"""Decoders together: any cut of any stream gives the same tokens, and no bytes crash."""

import contextlib
import itertools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from specdemo.core.events import Side, Tokens
from specdemo.engines.wire.completions import CompletionReader
from specdemo.engines.wire.http1 import Chunked
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
