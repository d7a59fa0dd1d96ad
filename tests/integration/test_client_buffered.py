"""The client against servers that hold back, refuse at length, and repeat secrets (faults A06, A12, A18, B11, B24, C21)."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from specdemo.core.events import Side
from specdemo.core.metrics import SideMeter
from specdemo.engines import answers
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from specdemo.engines.refusals import up_to_a_word
from specdemo.errors import EngineError, EngineProtocolError
from tests.fakes.asking import HELLO, ask, hear, hear_reply

KEY = "sk-" + "0123456789abcdefghijklmnopqrstuvwxyzABCDE"


def events(*payloads: Any) -> str:
    """As a stream."""
    return "".join(f"data: {json.dumps(payload)}\n\n" for payload in payloads) + "data: [DONE]\n\n"


def chunk(text: str, token: int, **more: Any) -> dict[str, Any]:
    """One chunk of a plain completion."""
    return {"choices": [{"index": 0, "text": text, "token_ids": [token], "finish_reason": None, **more}]}


FORTY = events(*[chunk(f" w{n}", n) for n in range(39)], chunk(" end", 39, finish_reason="stop"))


class Pieces(httpx.AsyncByteStream):
    """A body over somebody else's transport, which may break."""

    def __init__(self, data: bytes, *, broken: bool = False) -> None:
        self._data, self._broken = data, broken

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data
        if self._broken:
            raise httpx.ReadError("gone")


async def test_a_reply_that_is_held_back_to_its_end_is_noted() -> None:
    """40 tokens at once after a wait: the numbers of time are not the engine's, and it is said (B24)."""
    heard = await hear_reply(raw=[{"data": FORTY, "at": 0.2}])
    assert len(heard.ids) == 40
    said = [event.message for event in heard.events if getattr(event, "kind", "") in ("clumped", "overloaded")]
    assert any("40 of 40 chunks" in message for message in said)


@pytest.mark.parametrize("reason", ["cancelled", {"type": "abort", "message": "queue full"}])
async def test_an_answer_that_was_broken_off_is_no_success(reason: Any) -> None:
    """Whatever the finish reason says, in whatever shape; what came before is kept (B11)."""
    heard = await hear_reply(raw=[events(chunk("a", 1), chunk("b", 2, finish_reason=reason))])
    assert (heard.failed.kind, heard.text) == ("interrupted", "ab")
    assert "2 tokens" in heard.failed.message
    assert ("queue full" if isinstance(reason, dict) else "cancelled") in heard.failed.message


async def test_one_message_does_not_take_the_memory() -> None:
    """Impossible numbers per step are refused with a note, and the run has its other numbers (A12)."""
    told = {"num_spec_steps": 1, "num_draft_tokens": 4, "num_accepted_draft_tokens": 1, "per_step_accepted": [2**53]}
    end = chunk("b", 2, finish_reason="stop") | {"metrics": {"speculative_decoding": told}}
    heard = await hear_reply(raw=[events(chunk("a", 1), end)])
    meter = SideMeter(Side.STANDARD)
    for event in heard.events:
        meter.feed(event)
    assert meter.snapshot().output_tokens == 2
    assert "cannot be right" in heard.notes["other"]


async def test_a_long_refusal_keeps_its_words() -> None:
    """A server that repeats 200 kB of input, before or after what it says (A06)."""
    message = "The min_p sampling parameter is not supported."
    for body in ({"error": {"message": message}, "input": "x" * 200_000}, {"input": "x" * 200_000, "message": message}):
        heard = await hear_reply(status=400, body=body)
        assert "min_p" in heard.failed.message
    cut = Limits(error_bytes=1000)
    heard = await hear_reply(
        HELLO, {"limits": cut}, status=400, body={"error": {"message": message}, "input": "x" * 9000}
    )
    assert "min_p" in heard.failed.message


async def test_no_part_of_a_key_is_told() -> None:
    """Refused at any length, redirected, or answered with no JSON: the key is masked before the cut (C21)."""
    for before in (150, 230, 255, 430, 460):
        said = "x" * before + f" Incorrect API key provided: {KEY}"
        for reply in (
            {"status": 401, "body": said}, {"status": 401, "body": {"error": {"message": said}}},
            {"raw": [f"data: {json.dumps({'error': said})}\n\n"]}, {"raw": [f"data: {said}\n\n"]}, {"raw": [said]},
        ):  # fmt: skip
            heard = await hear({"reply": reply}, api_key=KEY)
            assert KEY[:5] not in heard.failed.message, reply


async def test_no_part_of_a_key_is_told_by_a_probe() -> None:
    """A small reply that is no JSON shows what came, masked first (C21)."""
    body = Pieces(b"x" * 170 + b" " + KEY.encode())
    answer = httpx.MockTransport(lambda _request: httpx.Response(200, stream=body))
    engine = VllmEngine(Side.STANDARD, "http://h:1", model="m", api_key=KEY, transport=answer)
    with pytest.raises(EngineError, match="not JSON") as caught:
        await engine.candidates([1, 2])
    assert KEY[:5] not in str(caught.value)
    await engine.aclose()


def test_zeros_of_a_probe_are_no_values() -> None:
    """Two tokens of 100 % at once make no near tie with a gap of 0 (A18)."""
    tops = {"token_id:11": 0.0, "token_id:12": 0.0}
    logprobs = {"tokens": ["token_id:11"], "token_logprobs": [0.0], "top_logprobs": [tops]}
    scores = [None, {str(token): {"logprob": 0.0, "rank": 1} for token in (11, 12)}]
    with pytest.raises(EngineProtocolError, match="cannot be right"):
        answers.candidates({"choices": [{"text": "", "logprobs": logprobs}]})
    with pytest.raises(EngineProtocolError, match="cannot be right"):
        answers.scored({"choices": [{"prompt_logprobs": scores}]}, [1, 11], 1)


async def test_a_refusal_that_breaks_off_is_still_that_refusal() -> None:
    """Status and words are kept when its body has no end, but for its last word: half a key may stand there (A06, C21)."""

    body = Pieces(b"Not with this key: " + KEY[:20].encode(), broken=True)
    answer = httpx.MockTransport(lambda _request: httpx.Response(401, stream=body))
    heard = await ask("http://h:1", model="m", api_key=KEY, transport=answer)
    assert heard.failed.kind == "rejected"
    assert heard.failed.message.endswith('refused the API key (HTTP 401): "Not with this key:".')


def test_a_whole_body_that_broke_off_is_whole() -> None:
    """JSON that is complete lost nothing."""
    assert up_to_a_word(b'{"message": "no min_p"}') == b'{"message": "no min_p"}'
    assert up_to_a_word(b"sk-12") == b""


async def test_a_stream_labelled_as_json_is_read_as_a_stream() -> None:
    """The label is wrong, the tokens are there."""
    heard = await hear_reply(raw=[FORTY[:90], FORTY[90:]], wire={"content_type": "application/json"})
    assert (len(heard.ids), heard.finished.finish_reason) == (40, "stop")
