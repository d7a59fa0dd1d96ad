"""Odd servers: what is left once the common faults are covered."""

from dataclasses import replace

import pytest

from specdemo.core.events import Side
from specdemo.core.prompt import chat
from specdemo.engines import answers
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from specdemo.errors import EngineProtocolError, EngineRejected
from tests.fakes.asking import HELLO, SHORT, ask, hear, hear_reply, words
from tests.fakes.vllm import serving

LAST = '{"choices":[{"index":0,"delta":{"content":"z"},"token_ids":[9],"finish_reason":"stop"}]}'


async def test_a_last_event_without_its_empty_line() -> None:
    """A final chunk whose closing empty line is missing still counts."""
    heard = await hear_reply(raw=[f"data: {LAST}"])
    assert (heard.text, heard.finished.finish_reason) == ("z", "stop")


async def test_empty_data_lines_mean_nothing() -> None:
    """An event with nothing or blanks in it is passed over."""
    heard = await hear_reply(raw=["data:\n\n", "data:   \n\n", f"data: {LAST}\n\n"])
    assert heard.finished.finish_reason == "stop"


async def test_an_error_event_that_says_more() -> None:
    """``event: error`` with a usual error object keeps its words; without any it is still an error."""
    heard = await hear_reply(raw=['event: error\ndata: {"error": {"message": "usual"}}\n\n'])
    assert "usual" in heard.failed.message
    bare = await hear_reply(raw=["event: error\ndata:\n\n"])
    assert "without a message" in bare.failed.message


async def test_json_that_is_called_a_stream() -> None:
    """A whole answer under the wrong content type is named; JSON that is cut is quoted."""
    heard = await hear_reply(raw=[LAST])
    assert (heard.failed.kind, "labelled as a stream" in heard.failed.message) == ("protocol", True)
    cut = await hear_reply(raw=['{"choices":[{"in'])
    assert "choices" in cut.failed.message


async def test_a_refusal_whose_body_never_ends() -> None:
    """The status is enough when its body does not come or is too long."""
    limits = replace(SHORT, request_s=0.1, error_bytes=1000)
    silent = await hear_reply(HELLO, {"limits": limits}, status=400, raw=["x"], fault={"kind": "silence"})
    assert "HTTP 400" in silent.failed.message
    endless = await hear_reply(HELLO, {"limits": limits}, status=500, raw=["x" * 5000])
    assert endless.failed.kind == "error"


async def test_an_unstreamed_body_that_stalls() -> None:
    """A JSON body that does not end is stopped by the first-token limit."""
    wire = {"content_type": "application/json"}
    heard = await hear_reply(HELLO, {"limits": SHORT}, raw=["{"], wire=wire, fault={"kind": "silence"})
    assert heard.failed.kind == "stalled"


async def test_a_kept_connection_that_fails_twice() -> None:
    """One retry, not more."""
    async with serving({"drop_reused": True, "reply": {"steps": words(1)}}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url, poll_hz=0)
        # Two connections are kept, and both turn out to be dead.
        streams = [engine.stream(HELLO, zero=0.0) for _ in range(2)]
        for stream in streams:
            await anext(stream)
        for stream in streams:
            assert [event async for event in stream]
        events = [event async for event in engine.stream(HELLO, zero=0.0)]
        assert events[-1].__class__.__name__ in {"Finished", "Failed"}
        assert len(server.requests) <= 3
        await engine.aclose()


async def test_limits_of_a_connection() -> None:
    """A host that takes no connection in time is "unavailable"."""
    heard = await ask("http://192.0.2.1:9", model="m", limits=Limits(connect_s=0.05))
    assert heard.failed.kind == "unavailable"


async def test_optional_routes_that_misbehave() -> None:
    """A version route without JSON, a tokenizer that refuses: absent, or the refusal itself."""
    async with serving({"server_info": None, "version": ""}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)
        assert (engine.side, engine.base_url.root) == (Side.STANDARD, server.base_url)
        assert (await engine.facts()).version is None
        await engine.aclose()
    async with serving({"api_key": "k" * 8}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)
        with pytest.raises(EngineRejected):
            await engine.tokenize(chat("x"))
        await engine.aclose()


async def test_candidates_without_detokenize() -> None:
    """Ids and values are enough; texts stay empty where the engine cannot tell them."""
    async with serving({"tokenize": False, "candidates": [[5, -0.5]]}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)
        assert [(top.id, top.text) for top in await engine.candidates([1])] == [(5, "")]
        await engine.aclose()


async def test_a_reply_in_one_read_is_read_in_order() -> None:
    """A flood in big pieces gives every token once."""
    heard = await hear({"reply": {"tokens": 3000, "wire": {"flood": True}}}, chat("x"), limits=Limits())
    assert heard.finished.usage is not None
    assert len(heard.ids) == heard.finished.usage.completion_tokens > 100


def test_small_answers_in_wrong_shapes() -> None:
    """Each wrong shape is absence or our own error."""
    assert (answers.token_ids([]), answers.detokenized({"prompt": 5}), answers.version({"version": 1})) == (
        None,
        "",
        None,
    )
    assert (answers.models([]), answers.models({"data": [{"id": "a"}, {"id": 3}, 5]})) == ([], [{"id": "a"}])
    for payload in ({}, {"choices": [5]}, {"choices": [{"logprobs": {"tokens": []}}]}):
        with pytest.raises(EngineProtocolError):
            answers.candidates(payload)
    assert (
        answers.candidates(
            {"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": [-1.0], "top_logprobs": [None]}}]}
        )
        == {}
    )


def test_scores_in_wrong_shapes() -> None:
    """Positions that are missing, or lack the text's own token, are refused; odd entries are passed over."""
    for entries in (None, [], [None, {"9": {"logprob": -1.0}}], [None, 5]):
        with pytest.raises(EngineProtocolError):
            answers.scored({"choices": [{"prompt_logprobs": entries}]}, [1, 2], 1)
    entry = {
        "2": {"logprob": -0.5},
        "x": {"logprob": -0.1},
        "3": {"logprob": None},
        "4": {"logprob": -0.2, "decoded_token": "d"},
    }
    (found,) = answers.scored({"prompt_logprobs": [None, entry]}, [1, 2], 1)
    assert (found[:3], [top.id for top in found[3]]) == ((2, -0.5, 2), [4, 2])
