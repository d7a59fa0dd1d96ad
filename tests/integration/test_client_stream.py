"""The client against scripted servers: everything a stream may look like (faults B01 to B11, B16, B25, A21)."""

import base64
import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.engines.limits import Limits
from tests.fakes.asking import hear, hear_reply, words

HARD = "你好 🌍 naïve\u2028“x”"
STEPS = [{"ids": [1], "text": "你好"}, {"ids": [2, 3], "text": " 🌍 naïve"}, {"ids": [4], "text": "\u2028“x”"}]
PLAIN = Prompt(text="once", sampling=Sampling(max_tokens=64))

WIRES: dict[str, dict[str, Any]] = {
    "plain": {},
    "one byte a write": {"split": 1},
    "cut inside the emoji": {"split": 7},
    "CRLF": {"newline": "\r\n"},
    "CR": {"newline": "\r"},
    "CR, split": {"newline": "\r", "split": 1},
    "no space": {"space": False},
    "byte order mark": {"bom": True},
    "comments first": {"prelude": ":\n\n: ping\n\nevent: ping\n\nretry: 500\n\nfoo: bar\n\nid: 3\n\n"},
    "ASCII escapes": {"ascii": True},
    "gzip": {"gzip": True},
    "gzip, split": {"gzip": True, "split": 3},
    "until close": {"framing": "close"},
    "[DONE] twice": {"done": 2},
    "no [DONE]": {"done": 0},
    "no content type": {"content_type": ""},
}


@pytest.mark.parametrize("chatting", [True, False], ids=["chat", "plain"])
@pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES.keys())
async def test_every_wire_form_gives_the_same_answer(wire: dict[str, Any], chatting: bool) -> None:
    """Text, ids, usage and end are the same however the bytes look (B01, B03, B05, B06)."""
    heard = await hear_reply(chat("x", sampling=Sampling(max_tokens=64)) if chatting else PLAIN, steps=STEPS, wire=wire)
    assert (heard.text, heard.ids, heard.finished.finish_reason) == (HARD, (1, 2, 3, 4), "stop")
    assert heard.finished.usage is not None
    assert heard.finished.usage.completion_tokens == 4
    assert heard.finished.prompt_token_ids is not None
    assert heard.notes == {}


async def test_keep_alives_are_no_first_token() -> None:
    """Comments before the first token make no Tokens; the first one has ids (B06, D01)."""
    heard = await hear_reply(steps=words(2), first_s=0.1, wire={"comment_every_s": 0.02}, role_chunk=False)
    assert [event.ids for event in heard.tokens] == [(10,), (11,)]


async def test_the_role_chunk_is_no_token() -> None:
    """The empty chunk that comes early is kept, but has neither ids nor text (D01)."""
    heard = await hear_reply(steps=[{"ids": [5], "text": "a", "at": 0.05}], role_at=0.0)
    role, first = heard.tokens
    assert (role.ids, role.text, first.ids) == ((), "", (5,))
    assert role.at < first.at


@pytest.mark.parametrize("usage", ["final", "running", "twice"])
async def test_usage_counts_once(usage: str) -> None:
    """Usage at the end, in every chunk, or twice is the same number (B25)."""
    heard = await hear_reply(steps=words(6), usage=usage)
    assert heard.finished.usage is not None
    assert heard.finished.usage.completion_tokens == 6
    assert [event.reported_total for event in heard.tokens if event.ids] == ([1, 2, 3, 4, 5, 6] if usage == "running" else
                                                                           [None] * 5 + [6 if usage == "twice" else None])  # fmt: skip


async def test_empty_choices_and_nulls() -> None:
    """An empty first chunk, null content and a usage-only last chunk are no error (B08, B09)."""
    chunks: list[Any] = [
        {"choices": []},
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": [1]}]},
        {"choices": [{"index": 0, "delta": {"content": None}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}},
    ]
    heard = await hear_reply(raw=[f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + ["data: [DONE]\n\n"])
    assert (heard.text, heard.ids, heard.finished.finish_reason, heard.notes) == ("a", (1,), "stop", {})


async def test_a_burst_over_the_end_of_thinking() -> None:
    """Reasoning and answer in one chunk, or in two, give the same two texts and ids (A21)."""
    one = await hear_reply(
        steps=[{"ids": [1], "reasoning": " so"}, {"ids": [2, 3], "reasoning": " ok.", "text": "The"}]
    )
    two = await hear_reply(
        steps=[{"ids": [1], "reasoning": " so"}, {"ids": [2], "reasoning": " ok."}, {"ids": [3], "text": "The"}]
    )
    assert (one.reasoning, one.text, one.ids) == (two.reasoning, two.text, two.ids) == (" so ok.", "The", (1, 2, 3))


ERRORS: dict[str, dict[str, Any]] = {
    "first event": {"fault": {"kind": "error", "after": 0, "body": {"error": {"message": "no such thing", "code": 400}}}},
    "plain string": {"fault": {"kind": "error", "after": 0, "body": {"error": "no such thing"}}},
    "bare JSON string": {"raw": ['data: "no such thing"\n\ndata: [DONE]\n\n']},
    "bare text": {"raw": ["data: no such thing\n\n"]},
    "named event": {"raw": ['event: error\ndata: {"message": "no such thing"}\n\n']},
    "named event, text": {"raw": ["event: error\ndata: no such thing\n\n"]},
    "JSON body": {"body": {"error": {"message": "no such thing", "code": 400}}},
    "JSON body called a stream": {"raw": ['{"error": {"message": "no such thing"}}']},
    "JSON detail": {"body": {"detail": "no such thing"}},
    "web page": {"raw": ["<html><body>no such thing</body></html>"], "wire": {"content_type": "text/html"}},
}  # fmt: skip


@pytest.mark.parametrize("reply", ERRORS.values(), ids=ERRORS.keys())
async def test_errors_with_status_200(reply: dict[str, Any]) -> None:
    """An error inside a 200 reply is a failure with the server's words, never an empty success (B11)."""
    heard = await hear_reply(steps=words(3), **reply) if "raw" not in reply else await hear_reply(**reply)
    assert heard.failed.kind in {"rejected", "protocol"}
    assert "no such thing" in heard.failed.message or "web page" in heard.failed.message
    assert heard.text == ""


async def test_an_error_after_tokens_keeps_them() -> None:
    """Partial text stays, the failure names how far it came, and nothing after it counts (B11, A23)."""
    heard = await hear_reply(steps=words(9), fault={"kind": "error", "after": 5})
    assert heard.ids == (10, 11, 12, 13, 14)
    assert heard.failed.kind == "interrupted"
    assert "after 5 tokens" in heard.failed.message
    assert "EngineCore" in heard.failed.message


async def test_an_unstreamed_answer_is_taken_with_a_note() -> None:
    """A server that ignores ``stream`` still gives an answer, at a lower level that is named."""
    heard = await hear_reply(steps=STEPS, stream=False)
    assert (heard.text, heard.ids, heard.finished.finish_reason) == (HARD, (1, 2, 3, 4), "stop")
    assert "one piece" in heard.notes["other"]


@pytest.mark.parametrize("body", [{}, {"choices": []}, [1], {"hello": "world"}])
async def test_other_json_is_no_answer(body: Any) -> None:
    """200 with some other JSON is refused."""
    assert (await hear_reply(body=body)).failed.kind == "protocol"


async def test_long_events() -> None:
    """1 MB in one event is read; 100 MB are refused with a clear limit (B16)."""
    big = "x" * 1_000_000
    heard = await hear_reply(steps=[{"ids": [1], "text": big}])
    assert heard.text == big
    flood = await hear_reply(
        raw=[{"data": "data: " + "y" * 1_000_000, "repeat": 1}, {"data": "y" * 1_000_000, "repeat": 100}]
    )
    assert flood.failed.kind == "protocol"
    assert "4,194,304 bytes" in flood.failed.message


async def test_a_compressed_bomb_is_refused() -> None:
    """A small gzip reply that unpacks without end is stopped by the limit for a whole stream."""
    reply = {"steps": words(1), "repeat": 3000, "wire": {"gzip": True}}
    heard = await hear({"reply": reply}, options_prompt(), limits=replace(Limits(), stream_bytes=100_000))
    assert heard.failed.kind == "protocol"
    assert "limit" in heard.failed.message


def options_prompt() -> Prompt:
    """Room for many tokens."""
    return chat("x", sampling=Sampling(max_tokens=100_000))


@pytest.mark.parametrize("field", ["choices", "token_ids", "content", "usage", "metrics", "logprobs"])
async def test_wrong_types_are_remarked(field: str) -> None:
    """A wrong type in one chunk never ends the stream; the rest arrives and the oddity is noted."""
    chunk: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": "a"}, "token_ids": [1]}]}
    if field in {"choices", "usage", "metrics"}:
        chunk[field] = "odd" if field != "metrics" else {"speculative_decoding": 3}
    elif field == "content":
        chunk["choices"][0]["delta"][field] = {"odd": 1}
    else:
        chunk["choices"][0][field] = "odd"
    heard = await hear_reply(steps=words(3), fault={"kind": "inject", "after": 1, "body": chunk})
    assert heard.text.endswith("w1 w2 ")
    assert heard.finished.finish_reason == "stop"
    assert ("other" in heard.notes) == (field != "logprobs")


async def test_duplicate_final_chunk() -> None:
    """The last chunk sent twice is shown once, with a note."""
    last = {"choices": [{"index": 0, "delta": {"content": "w1 "}, "token_ids": [11], "finish_reason": "stop"}]}
    heard = await hear_reply(steps=words(2), fault={"kind": "inject", "after": 2, "body": last})
    assert (heard.ids, heard.text) == ((10, 11), "w0 w1 ")
    assert "surplus_ids" in heard.notes


async def test_gzip_of_a_whole_body() -> None:
    """Headers and coding are respected for small replies too."""
    body = gzip.compress(json.dumps({"error": {"message": "squeezed"}}).encode())
    heard = await hear_reply(
        raw=[{"b64": base64.b64encode(body).decode()}], status=400, headers={"content-encoding": "gzip"}
    )
    assert "squeezed" in heard.failed.message
