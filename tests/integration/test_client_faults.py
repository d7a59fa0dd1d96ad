"""The client when things go wrong on the way: cut, silent, refused, busy, cancelled (faults B13, B15, B23, C02, D12, D13)."""

import asyncio
import itertools
from contextlib import aclosing
from dataclasses import replace

import pytest

from specdemo.core.events import Failed, Side, Tokens
from specdemo.core.prompt import Sampling, chat
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from tests.fakes.asking import HELLO, SHORT, ask, hear, hear_reply, words
from tests.fakes.vllm import serving

LONG = chat("go on", sampling=Sampling(max_tokens=100_000))


@pytest.mark.parametrize("how", ["close", "reset", "end", "half"])
async def test_a_cut_stream_is_no_success(how: str) -> None:
    """However a stream is cut before its finish reason, its text stays and it is "interrupted after n tokens" (B13)."""
    heard = await hear_reply(steps=words(20), step_s=0.005, fault={"kind": how, "after": 10})
    # A reset may destroy what the kernel had received but not yet handed over.
    assert heard.ids == tuple(range(10, 20))[: len(heard.ids)]
    assert len(heard.ids) == 10 or how == "reset"
    assert heard.failed.kind == "interrupted"
    assert f"{len(heard.ids)} tokens" in heard.failed.message


async def test_a_stream_cut_after_its_finish_reason_is_complete() -> None:
    """With the finish reason the answer is whole; only the missing usage is noted."""
    heard = await hear_reply(steps=words(5), fault={"kind": "close", "after": 5})
    assert heard.finished.finish_reason == "stop"
    assert set(heard.notes) == {"no_usage"}


async def test_done_without_a_finish_reason() -> None:
    """The engine said that it is done, but not why: accepted, and noted."""
    heard = await hear_reply(steps=words(5), finish_reason=None)
    assert heard.finished.finish_reason is None
    assert "why it stopped" in heard.notes["other"]


@pytest.mark.parametrize("reason", ["abort", "error"])
async def test_an_engine_that_gives_up(reason: str) -> None:
    """Finish reasons that mean failure are failures."""
    heard = await hear_reply(steps=words(5), finish_reason=reason)
    assert heard.failed.kind == "interrupted"
    assert reason in heard.failed.message


async def test_nothing_at_all() -> None:
    """[DONE] alone, and an empty body, are no answers."""
    for raw in (["data: [DONE]\n\n"], [""], [": ping\n\n"]):
        assert (await hear_reply(raw=raw)).failed.kind == "protocol"


async def test_no_retry_once_a_token_was_shown() -> None:
    """A stream that fails after tokens is not sent again (B15)."""
    async with serving(
        {"replies": [{"steps": words(9), "fault": {"kind": "reset", "after": 5}}, {"steps": words(9)}]}
    ) as server:
        heard = await ask(server)
        assert (len(heard.ids), heard.failed.kind, len(server.requests)) == (5, "interrupted", 1)


async def test_one_visible_retry_on_a_connection_that_was_closed_while_idle() -> None:
    """A kept connection that the server had closed is retried once, on a new one, with a note (B15)."""
    async with serving({"reply": {"steps": words(2)}, "drop_reused": True}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url, poll_hz=0)
        first = [event async for event in engine.stream(HELLO, zero=0.0)]
        again = [event async for event in engine.stream(HELLO, zero=0.0)]
        assert [event.kind for event in again if event.__class__.__name__ == "Noted" and event.kind == "retried"] == [
            "retried"
        ]
        assert [type(event) for event in again][-1] is type(first[-1])
        assert len(server.requests) == 2
        assert await engine.tokenize(HELLO) is not None
        await engine.aclose()


@pytest.mark.parametrize(
    ("status", "kind"), [(429, "rejected"), (503, "unavailable"), (500, "error"), (401, "rejected")]
)
async def test_refusals_are_not_retried(status: int, kind: str) -> None:
    """One request, one refusal, counted once: hidden retries would change load and latency (D12, D13)."""
    async with serving({"reply": {"status": status, "body": {"error": {"message": "not now"}}}}) as server:
        heard = await ask(server)
        assert (heard.failed.kind, len(server.requests)) == (kind, 1)
        assert "not now" in heard.failed.message


async def test_nobody_there() -> None:
    """A dead port is "unavailable", for the stream and with a model still to be found."""
    async with serving() as server:
        url = server.base_url
    for model in ("m", None):
        heard = await ask(url, model=model)
        assert heard.failed.kind == "unavailable"
        assert url in heard.failed.message


async def test_a_stall_after_tokens() -> None:
    """Ten tokens and then silence end as "stalled" with the tokens kept (B23)."""
    heard = await hear_reply(LONG, {"limits": SHORT}, steps=words(20), fault={"kind": "silence", "after": 10})
    assert (heard.failed.kind, len(heard.ids)) == ("stalled", 10)
    assert "10 tokens" in heard.failed.message


async def test_a_long_prefill_has_its_own_limit() -> None:
    """The first token may take longer than a stall; only its own limit ends the wait (B23)."""
    heard = await hear_reply(LONG, {"limits": SHORT}, steps=words(3), first_s=0.3)
    assert heard.finished.finish_reason == "stop"
    never = await hear_reply(LONG, {"limits": SHORT}, fault={"kind": "silence", "after": 0})
    assert never.failed.kind == "stalled"
    assert "No first token" in never.failed.message


async def test_comments_keep_the_line_alive() -> None:
    """While comments come, a pause may be as long as for a first token, not longer (B06, B23)."""
    wire = {"comment_every_s": 0.05}
    steps = [*words(2), {"ids": [12], "text": "late", "at": 0.35}]
    heard = await hear_reply(LONG, {"limits": SHORT}, steps=steps, wire=wire)
    assert heard.finished.finish_reason == "stop"
    ever = await hear_reply(LONG, {"limits": SHORT}, steps=words(2), wire=wire, fault={"kind": "alive", "after": 1})
    assert ever.failed.kind == "stalled"


async def test_a_limit_for_the_whole_answer() -> None:
    """An answer without end is stopped by the total limit, which is named."""
    heard = await hear_reply(LONG, {"limits": replace(Limits(), total_s=0.3)}, tokens=10_000, step_s=0.01)
    assert heard.failed.kind == "stalled"
    assert "limit for one answer" in heard.failed.message


async def test_silence_after_the_finish_reason_is_no_failure() -> None:
    """Usage and [DONE] are waited for a little; without them the answer is still complete."""
    heard = await hear_reply(HELLO, {"limits": SHORT}, steps=words(3), fault={"kind": "silence", "after": 3})
    assert heard.finished.finish_reason == "stop"


async def test_slow_headers() -> None:
    """A server that does not even answer with a status line ends at the first-token limit."""
    heard = await hear_reply(HELLO, {"limits": SHORT}, delay_s=30.0)
    assert heard.failed.kind == "stalled"


async def test_closing_the_iterator_aborts_the_request() -> None:
    """Stop closes the connection at once, and the engine aborts (C02)."""
    async with serving({"reply": {"tokens": 5000, "step_s": 0.01}}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)
        async with aclosing(engine.stream(LONG, zero=0.0)) as events:
            async for event in events:
                if isinstance(event, Tokens) and event.ids:
                    break
        await server.idle.wait()
        assert (server.counters.running, server.counters.aborted) == (0, 1)
        await engine.aclose()


@pytest.mark.parametrize(
    "script", [{"tokens": 5000, "step_s": 0.01}, {"delay_s": 60.0}, {"fault": {"kind": "silence"}}]
)
async def test_cancelling_at_any_moment_aborts_the_request(script: dict[str, object]) -> None:
    """Before the head, before the first token and in the middle; nothing is left open (C02)."""
    async with serving({"reply": script}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)

        async def read() -> None:
            async for _ in engine.stream(LONG, zero=0.0):
                pass

        task = asyncio.create_task(read())
        while not server.requests:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.idle.wait()
        await engine.aclose()
        while server.connections:
            await asyncio.sleep(0.005)
        assert server.counters.running == 0


async def test_closing_the_engine_ends_its_streams() -> None:
    """``aclose`` while a stream runs: the stream ends with a failure instead of hanging."""
    async with serving({"reply": {"tokens": 5000, "step_s": 0.01}}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)
        seen = []
        async for event in engine.stream(LONG, zero=0.0):
            if isinstance(event, Tokens) and not any(isinstance(earlier, Tokens) for earlier in seen):
                await engine.aclose()
            seen.append(event)
        assert isinstance(seen[-1], Failed)


async def test_an_engine_that_dies() -> None:
    """Partial text, a failure with the engine's words, and /health that says so afterwards (A23)."""
    async with serving({"k": 4, "reply": {"steps": words(20), "fault": {"kind": "die", "after": 5}}}) as server:
        engine = VllmEngine(Side.SPECULATIVE, server.base_url)
        assert await engine.healthy()
        events = [event async for event in engine.stream(HELLO, zero=0.0)]
        assert isinstance(events[-1], Failed)
        assert sum(len(event.ids) for event in events if isinstance(event, Tokens)) == 5
        assert not await engine.healthy()
        await engine.aclose()


async def test_one_side_never_delays_the_other() -> None:
    """A silent engine does not hold up a stream from another one."""
    async with (
        serving({"reply": {"fault": {"kind": "silence"}}}) as silent,
        serving({"reply": {"steps": words(5)}}) as lively,
    ):
        engine = VllmEngine(Side.STANDARD, silent.base_url)
        stream = engine.stream(LONG, zero=0.0)
        stuck = asyncio.ensure_future(anext(itertools_skip(stream)))
        heard = await ask(lively)
        assert heard.finished.finish_reason == "stop"
        assert not stuck.done()
        stuck.cancel()
        await asyncio.gather(stuck, return_exceptions=True)
        await stream.aclose()
        await engine.aclose()


async def itertools_skip(stream):
    """Everything after the events that come before the request."""
    async for event in stream:
        if isinstance(event, Tokens):
            yield event


async def test_stamps_are_taken_once_per_arrival() -> None:
    """Two events that arrive together have the same stamp; the clock is not asked while decoding (D18)."""
    ticks = itertools.count()
    pair = "".join(f'data: {{"choices":[{{"index":0,"text":"{text}","token_ids":[{text}]}}]}}\n\n' for text in "12")
    later = 'data: {"choices":[{"index":0,"text":"3","token_ids":[3],"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    heard = await hear(
        {"reply": {"raw": [{"data": pair, "at": 0.05}, {"data": later, "at": 0.1}]}}, clock=lambda: float(next(ticks))
    )
    first, second, third = (event.at for event in heard.tokens)
    assert first == second < third
    assert heard.finished.at == third
