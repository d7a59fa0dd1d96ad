"""Reported faults of engines and numbers, as far as the client must deliver the facts (sections A and D)."""

from typing import Any

import pytest

from specdemo.core.events import CountersRead
from specdemo.core.prompt import Prompt, Sampling, chat
from tests.fakes.asking import ask, hear, hear_reply, words
from tests.fakes.vllm import serving


async def test_an_unsupported_parameter_is_sent_and_its_refusal_told() -> None:
    """min_p reaches both engines; the one that refuses says so in the server's words (A06)."""
    prompt = chat("x", sampling=Sampling(max_tokens=8, temperature=0.8, min_p=0.05))
    said = "The min_p and logit_bias sampling parameters are not yet supported with speculative decoding."
    async with serving({"k": 4, "refuse": {"min_p": said}}) as spec, serving() as std:
        refused, fine = await ask(spec, prompt), await ask(std, prompt)
    assert refused.failed.kind == "rejected"
    assert "min_p and logit_bias" in refused.failed.message
    assert fine.finished.finish_reason == "length"
    assert spec.requests[0]["min_p"] == std.requests[0]["min_p"] == 0.05


async def test_no_drafts_is_zero_drafted_not_an_error() -> None:
    """Counters that stand still and a metrics object without drafts arrive as they are (A07, A37)."""
    heard = await hear({"k": 4, "reply": {"text": "five new words here now"}}, poll_hz=2.0)
    first, *_, last = [event.counters for event in heard.of(CountersRead)]
    assert (first.draft_tokens, last.draft_tokens) == (0, 0)
    assert heard.finished.speculation is not None
    assert (heard.finished.speculation.drafted, heard.finished.speculation.steps) == (0, 0)
    assert heard.finished.speculation.accepted_per_step is None


async def test_own_numbers_beside_those_of_the_whole_engine() -> None:
    """Other people's requests move the counters; the request's own object is delivered beside them (A12)."""
    own = {"speculative_decoding": {"num_spec_steps": 25, "num_draft_tokens": 100, "num_accepted_draft_tokens": 80}}
    async with serving({"k": 4, "reply": {"steps": words(3), "step_s": 0.02, "metrics": own}}) as server:
        server.counters.draft_tokens, server.counters.accepted = 900, 90
        heard = await ask(server, poll_hz=2.0)
    assert heard.finished.speculation is not None
    assert (heard.finished.speculation.drafted, heard.finished.speculation.accepted) == (100, 80)
    assert heard.of(CountersRead)[0].counters.draft_tokens == 900


async def test_more_accepted_than_delivered() -> None:
    """Delivered tokens are what was delivered; the engine's larger figure stays apart (A13)."""
    steps = [{"ids": [1], "text": "a"}, {"ids": [2, 3], "text": "bc", "accepted": 5, "drafted": 5}]
    heard = await hear({"k": 5, "reply": {"steps": steps, "usage": {"prompt_tokens": 1, "completion_tokens": 3}}})
    assert len(heard.ids) == 3
    assert heard.finished.usage is not None
    assert heard.finished.usage.completion_tokens == 3
    assert heard.finished.speculation is not None
    assert heard.finished.speculation.accepted == 5


async def test_surplus_ids_in_the_last_burst_are_delivered() -> None:
    """Ids behind a stop string are not hidden; text is as the engine trimmed it (A14)."""
    steps = [{"ids": [5], "text": "a"}, {"ids": [6, 7, 8, 9], "text": "bc"}]
    heard = await hear_reply(steps=steps, stop_reason="STOP", finish_reason="stop")
    assert (heard.ids, heard.text) == ((5, 6, 7, 8, 9), "abc")
    assert heard.finished.stop_reason == "STOP"


async def test_usage_and_received_may_differ() -> None:
    """Both the reported and the received count arrive (A16), and the finish reason as sent (A17)."""
    heard = await hear_reply(steps=words(6), usage={"prompt_tokens": 1, "completion_tokens": 8}, finish_reason="length")
    assert (len(heard.ids), heard.finished.usage and heard.finished.usage.completion_tokens) == (6, 8)
    assert heard.finished.finish_reason == "length"


async def test_hollow_logprobs_are_missing() -> None:
    """0.0 for every token is no value (A18)."""
    zero = {"content": [{"token": "a", "logprob": 0.0, "top_logprobs": [{"token": "a", "logprob": 0.0}]}]}
    steps = [{"ids": [1 + index], "text": "a", "logprobs": zero} for index in range(5)]
    heard = await hear_reply(chat("x", sampling=Sampling(max_tokens=64), logprobs=1), steps=steps)
    assert [entry.logprob for event in heard.tokens for entry in event.logprobs or ()] == [None] * 5


async def test_real_logprobs_arrive_with_ids() -> None:
    """One entry a token with its id, in chat and plain completions."""
    for prompt in (
        chat("x", sampling=Sampling(max_tokens=6), logprobs=2),
        Prompt(text="x", sampling=Sampling(max_tokens=6), logprobs=2),
    ):
        heard = await hear({"k": 4, "reply": {"bursts": [3, 2]}}, prompt)
        entries = [entry for event in heard.tokens for entry in event.logprobs or ()]
        assert tuple(entry.id for entry in entries) == heard.ids
        assert {entry.logprob for entry in entries} == {-0.25}
        assert all(len(entry.top) == 2 for entry in entries)
        assert all(event.pieces is not None for event in heard.tokens if event.ids)


async def test_the_servers_ids_are_used() -> None:
    """Nothing is tokenized again: the ids are the server's, however it splits (A20, D08)."""
    heard = await hear_reply(
        steps=[{"ids": [101], "text": "deter"}, {"ids": [102], "text": "mine"}, {"ids": [103], "text": " " * 15}]
    )
    assert (heard.ids, heard.text) == ((101, 102, 103), "determine" + " " * 15)


async def test_older_servers_work_at_a_named_level() -> None:
    """Without ids, usage and metrics the text still comes, and each gap is named (D08, issue: older servers)."""
    heard = await hear_reply(steps=words(5), token_ids=False, prompt_ids=False, usage="none", metrics="none")
    assert (heard.ids, heard.finished.usage, heard.finished.prompt_token_ids) == ((), None, None)
    assert set(heard.notes) == {"no_token_ids", "no_usage"}
    lost: dict[str, Any] = {"choices": [{"index": 0, "delta": {"content": "?"}}]}
    partly = await hear_reply(steps=words(5), fault={"kind": "inject", "after": 2, "body": lost})
    assert set(partly.notes) == {"token_ids_lost"}


async def test_no_chat_template() -> None:
    """The server's reason is told (A29)."""
    said = "default chat template is no longer allowed, so you must provide a chat template"
    heard = await hear_reply(status=400, body={"error": {"message": said}})
    assert "chat template" in heard.failed.message


async def test_prompt_counts_are_delivered() -> None:
    """Each side's own prompt count and ids arrive, so a second start token shows (A36)."""
    once = await hear({"bos": [1]}, Prompt(text="a b", sampling=Sampling(max_tokens=2)))
    twice = await hear({"bos": [1, 1]}, Prompt(text="a b", sampling=Sampling(max_tokens=2)))
    assert once.finished.usage is not None
    assert twice.finished.usage is not None
    assert twice.finished.usage.prompt_tokens == once.finished.usage.prompt_tokens + 1
    assert twice.finished.prompt_token_ids == (1, *(once.finished.prompt_token_ids or ()))


async def test_other_requests_in_flight_can_be_seen() -> None:
    """The scripted engine flips a token when busy, as a real one may (A03): one at a time it never does."""
    async with serving({"flip_when_busy": True, "reply": {"tokens": 8}}) as server:
        alone = [(await ask(server)).ids for _ in range(3)]
    assert len(set(alone)) == 1


@pytest.mark.parametrize("count", [0, 1, 2])
async def test_very_short_answers(count: int) -> None:
    """Answers of no, one and two tokens end well (D14)."""
    heard = await hear_reply(tokens=count)
    assert len(heard.ids) == count
    assert heard.finished.finish_reason == "stop"
    assert heard.notes == {}


async def test_bursts_stay_bursts() -> None:
    """25 chunks of four tokens are 25 events of four ids (D04, D06)."""
    heard = await hear(
        {"k": 4, "reply": {"steps": [{"ids": [1, 2, 3, 4], "text": "abcd"}], "repeat": 25}},
        chat("x", sampling=Sampling(max_tokens=100)),
    )
    assert [len(event.ids) for event in heard.tokens if event.ids] == [4] * 25


@pytest.mark.parametrize("name", ["chat", "code", "list", "summ", "zh"])
async def test_recorded_streams(name: str) -> None:
    """The recorded streams of both engines come through whole and equal, with the engine's own numbers."""
    prompt = chat("x", sampling=Sampling(max_tokens=160))
    std = await hear({"reply": {"trace": f"std-{name}", "speed": 0}}, prompt)
    spec = await hear({"k": 4, "reply": {"trace": f"ngram-{name}", "speed": 0}}, prompt)
    assert std.ids == spec.ids
    assert std.finished.usage is not None
    assert std.finished.usage.completion_tokens == len(std.ids)
    assert (std.finished.speculation, spec.finished.speculation is not None) == (None, True)


async def test_server_timings() -> None:
    """The engine's own clock is delivered in seconds."""
    heard = await hear_reply(steps=words(2), timings={"time_to_first_token_ms": 20.0, "tokens_per_second": 50.0})
    assert heard.finished.timings is not None
    assert (heard.finished.timings.ttft_s, heard.finished.timings.tokens_per_s) == (0.02, 50.0)
