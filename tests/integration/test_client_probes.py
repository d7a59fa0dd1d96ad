"""What is asked beside streams: facts, tokenize, counters, candidates, score."""

import pytest

from specdemo.core.engine import EngineSpec, Speculation
from specdemo.core.events import CountersRead, Side
from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.engines.client import VllmEngine
from specdemo.errors import EngineProtocolError, EngineRejected, EngineStalled
from tests.fakes.asking import HELLO, SHORT, ask, words
from tests.fakes.vllm import Server, serving


def engine_of(server: Server, **options: object) -> VllmEngine:
    """A client for a scripted server."""
    return VllmEngine(Side.SPECULATIVE, server.base_url, **options)  # type: ignore[arg-type]


async def test_facts_of_an_attached_engine() -> None:
    """Model, version, limits and speculation come from the engine's own routes."""
    async with serving({"k": 4, "version": "0.32.0+cpu"}) as server:
        engine = engine_of(server)
        assert engine.model == ""
        facts = await engine.facts()
        assert (facts.model, engine.model, facts.version, facts.max_model_len) == (
            "smollm2",
            "smollm2",
            "0.32.0+cpu",
            2048,
        )
        assert (facts.speculating, facts.k, facts.method, facts.managed, facts.device) == (True, 4, None, False, "cpu")
        assert ("prefix_caching", "False") in facts.settings
        assert facts.root == "/models/smollm2"
        await engine.aclose()
    async with serving() as server:
        engine = engine_of(server)
        assert (await engine.facts()).speculating is False
        await engine.aclose()


async def test_facts_from_the_developer_route() -> None:
    """Where /server_info is there, method, k, lossy mode and dtype come from it."""
    config = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 5, "rejection_sample_method": "synthetic"},
              "model_config": {"dtype": "torch.float32", "seed": 0, "quantization": None}}  # fmt: skip
    async with serving({"k": 4, "server_info": {"vllm_config": config}}) as server:
        engine = engine_of(server)
        facts = await engine.facts()
        assert (facts.method, facts.k, facts.lossy, facts.dtype) == ("ngram", 5, "synthetic", "float32")
        assert ("seed", "0") in facts.settings
        await engine.aclose()


async def test_facts_of_a_managed_engine() -> None:
    """What it was started with fills what the engine does not say; shared devices have equal keys."""
    spec = EngineSpec(
        Side.SPECULATIVE,
        "folder",
        "smollm2",
        "cpu",
        dtype="float32",
        cores="0-1",
        speculation=Speculation("ngram", 4, ()),
    )
    async with serving({"metrics_route": False, "version": None}) as server:
        engine = engine_of(server, spec=spec, model="smollm2")
        facts = await engine.facts()
        assert (facts.speculating, facts.method, facts.k, facts.dtype, facts.managed) == (
            True,
            "ngram",
            4,
            "float32",
            True,
        )
        assert (facts.device, facts.device_key, facts.version) == ("cpu", "cpu:0-1@here", None)
        assert await engine.counters() is None
        await engine.aclose()


async def test_a_model_that_is_not_served() -> None:
    """Another model's name, or no model at all, is named instead of asked for."""
    async with serving({"models": ["a", "b"]}) as server:
        engine = engine_of(server, model="smollm2")
        with pytest.raises(EngineRejected, match=r"'smollm2' but a, b"):
            await engine.facts()
        heard = await ask(server, model="smollm2")
        assert "does not exist" in heard.failed.message
        await engine.aclose()
        server.use({"models": [""]})
        engine = engine_of(server)
        with pytest.raises(EngineProtocolError, match="lists no model"):
            await engine.facts()
        await engine.aclose()


async def test_tokenize() -> None:
    """Chat and text by the engine's own route; ids as they are; None without the route."""
    async with serving() as server:
        engine = engine_of(server)
        chatting = await engine.tokenize(chat("hello there"))
        plain = await engine.tokenize(Prompt(text="hello there"))
        assert chatting is not None
        assert plain == (1, *server.words.encode("hello there"))
        assert len(chatting) > len(plain)
        assert await engine.tokenize(Prompt(token_ids=(5, 6))) == (5, 6)
        server.use({"tokenize": False})
        assert await engine.tokenize(chat("x")) is None
        await engine.aclose()


async def test_candidates() -> None:
    """Best first with ids, texts and values, and the wanted ones however far down."""
    table = [[40 + rank, -0.1 - rank] for rank in range(20)]
    async with serving({"candidates": table}) as server:
        engine = engine_of(server)
        found = await engine.candidates([1, 2, 3], wanted=(52,))
        assert [(top.id, top.logprob) for top in found] == [
            *[(40 + rank, -0.1 - rank) for rank in range(5)],
            (52, -12.1),
        ]
        assert found[0].text == "<40>"
        asked = server.requests[-1]
        assert (asked["prompt"], asked["max_tokens"], asked["temperature"], asked["logprobs"]) == (
            [1, 2, 3],
            1,
            0.0,
            20,
        )
        missing = await engine.candidates([1], wanted=(99,))
        assert [top.id for top in missing] == [40, 41, 42, 43, 44]
        assert server.requests[-1]["logprob_token_ids"] == [99]
        await engine.aclose()


async def test_fewer_candidates_where_the_engine_allows_fewer() -> None:
    """An engine that refuses 20 is asked for fewer; one that refuses all refuses the probe."""
    async with serving({"refuse": {"logprobs": "too many"}}) as server:
        engine = engine_of(server)
        with pytest.raises(EngineRejected, match="too many"):
            await engine.candidates([1])
        assert [body["logprobs"] for body in server.requests] == [20, 5, 2, 1]
        await engine.aclose()


async def test_score() -> None:
    """One entry an output position: own value and rank, best first beside it."""
    async with serving({"score_gaps": {"3": 0.5}}) as server:
        engine = engine_of(server)
        found = await engine.score([1, 2], [7, 8, 9])
        assert [(entry.id, entry.rank, entry.logprob) for entry in found] == [(7, 1, -0.1), (8, 2, -0.6), (9, 1, -0.1)]
        assert [top.logprob for top in found[1].top] == [-0.1, -0.6]
        assert await engine.score([1], []) == ()
        await engine.aclose()


async def test_counters_during_a_stream() -> None:
    """Before, during and after a speculative stream; only before and after for a standard one."""
    async with serving({"k": 4, "reply": {"tokens": 40, "bursts": [1, 3], "step_s": 0.02}}) as server:
        heard = await ask(server, poll_hz=20.0)
        readings = [event.counters.draft_tokens for event in heard.of(CountersRead)]
        assert readings[0] == 0
        assert readings[-1] == server.counters.draft_tokens > 0
        assert len(readings) > 2
    async with serving({"reply": {"tokens": 40, "step_s": 0.01}}) as server:
        heard = await ask(server, poll_hz=20.0)
        assert [event.counters.drafts for event in heard.of(CountersRead)] == [None, None]


async def test_a_metrics_route_that_hangs_delays_little() -> None:
    """A stream goes on without counters when /metrics does not answer in time."""
    async with serving({"metrics_text": "", "reply": {"steps": words(3)}}) as server:
        heard = await ask(server, poll_hz=20.0)
        assert heard.finished.finish_reason == "stop"
        assert heard.of(CountersRead) == []


async def test_probes_have_limits() -> None:
    """A probe that gets no answer ends at its limit."""
    async with serving({"reply": {"delay_s": 60.0}}) as server:
        from dataclasses import replace

        engine = engine_of(server, model="smollm2", limits=replace(SHORT, request_s=0.1))
        with pytest.raises(EngineStalled, match=r"0\.1 s"):
            await engine._session.ask("POST", server.base_url + "/v1/chat/completions", {"messages": []})
        await engine.aclose()


async def test_requests_are_equal_and_complete() -> None:
    """Every sampling field is sent with its value, whatever it is, the same on both sides (A04)."""
    sampling = Sampling(max_tokens=5, temperature=0.7, top_p=0.9, top_k=20, min_p=0.1, presence_penalty=0.2, frequency_penalty=0.3,
                        repetition_penalty=1.1, seed=42, stop=("x", "y"), ignore_eos=True)  # fmt: skip
    expected = {"max_tokens": 5, "temperature": 0.7, "top_p": 0.9, "top_k": 20, "min_p": 0.1, "presence_penalty": 0.2, "frequency_penalty": 0.3,
                "repetition_penalty": 1.1, "seed": 42, "stop": ["x", "y"], "ignore_eos": True, "n": 1}  # fmt: skip
    async with serving() as server:
        for prompt in (
            chat("a", system="b", sampling=sampling, logprobs=3),
            Prompt(text="a", sampling=sampling, logprobs=3),
        ):
            await ask(server, prompt, cache_salt="salt")
        chatting, plain = server.requests
        for body in (chatting, plain):
            assert {name: body[name] for name in expected} == expected
            assert (body["stream"], body["stream_options"], body["return_token_ids"], body["cache_salt"]) == (
                True, {"include_usage": True}, True, "salt",
            )  # fmt: skip
        assert (chatting["logprobs"], chatting["top_logprobs"], plain["logprobs"], plain["prompt"]) == (True, 3, 3, "a")
        assert [turn["role"] for turn in chatting["messages"]] == ["system", "user"]
        await ask(server, HELLO)
        defaults = server.requests[-1]
        assert set(expected) - {"seed"} <= set(defaults)
        assert "cache_salt" not in defaults
