"""Engines that somebody else runs: looked at, never started or stopped."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from specdemo.core.engine import EngineSpec, EngineState
from specdemo.core.events import SIDES, Side
from specdemo.engines.attached import AttachedControl, Target
from specdemo.engines.probe import Probe
from specdemo.errors import UsageError

Handler = Callable[[httpx.Request], httpx.Response]


def engine(
    *, health: int | None = 200, models: object = ("demo",), version: str = "0.33.0", key: str | None = None
) -> Handler:
    """A server by its answers; ``health`` None means that nobody listens."""

    def answer(request: httpx.Request) -> httpx.Response:
        if health is None:
            raise httpx.ConnectError("refused", request=request)
        if request.url.path == "/health":
            return httpx.Response(health)
        if key is not None and request.headers.get("Authorization") != f"Bearer {key}":
            return httpx.Response(401, json={"error": "Unauthorized"})
        if request.url.path == "/v1/models":
            body = {"data": [{"id": name} for name in models]} if isinstance(models, tuple) else models
            return httpx.Response(200, json=body)
        return httpx.Response(200, json={"version": version})

    return answer


def probe(handler: Handler, key: str | None = None) -> Probe:
    return Probe("http://engine", api_key=key, transport=httpx.MockTransport(handler))


def control(standard: Handler, speculative: Handler | None = None, *, model: str | None = None) -> AttachedControl:
    handlers = (standard, speculative or engine())
    targets = [
        Target(side, f"http://{side}", probe(handler), model) for side, handler in zip(SIDES, handlers, strict=True)
    ]
    return AttachedControl(*targets, clock=lambda: 5.0)


async def test_both_ready() -> None:
    """A server with /health and a list of models is ready, with its version and the model that it has."""
    both = control(engine())
    await both.look()
    for status in both.statuses():
        assert (status.state, status.managed, status.version) == (EngineState.READY, False, "0.33.0")
        assert status.model == "demo"
        assert status.error is None
    await both.aclose()


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (engine(health=None), "Nobody answers at http://standard"),
        (engine(health=503, models={"detail": "x"}), "says that its engine is gone"),
        (engine(health=503), "says that its engine is gone"),
        (engine(health=502), "says that its engine is gone"),
        (engine(health=404, models={"object": "list"}), "does not list its models"),
        (engine(models={"object": "list"}), "does not list its models"),
        (engine(key="sk-1"), "a key may be missing"),
        (engine(models=("other", "third")), "does not serve the expected model demo; it has other, third"),
        (engine(models=()), "it has none"),
    ],
)
async def test_not_ready(handler: Handler, words: str) -> None:
    """A28: silence, a dead engine, no models, a missing key and a wrong model each have their sentence."""
    both = control(handler, model="demo")
    await both.look()
    standard, speculative = both.statuses()
    assert standard.state is EngineState.FAILED
    assert words in str(standard.error)
    assert speculative.state is EngineState.READY
    await both.aclose()


async def test_a_key_is_sent_and_not_shown() -> None:
    """C21: the key opens the door and appears in no status."""
    target = [Target(side, "http://x", probe(engine(key="sk-1"), "sk-1")) for side in SIDES]
    both = AttachedControl(*target)
    await both.look()
    assert both.statuses()[0].state is EngineState.READY
    assert "sk-1" not in repr(both.statuses())
    await both.aclose()


async def test_an_engine_that_was_ready_is_dead() -> None:
    """Gone after it was ready is "dead", and ready again once it is back; seconds count from the change."""
    up = [True]
    now = [0.0]

    def handler(request: httpx.Request) -> httpx.Response:
        return engine(health=200 if up[0] else None)(request)

    targets = [Target(side, "http://x", probe(handler)) for side in SIDES]
    both = AttachedControl(*targets, clock=lambda: now[0])
    await both.look()
    up[0], now[0] = False, 10.0
    await both.look()
    now[0] = 14.0
    await both.look()
    dead = both.statuses()[0]
    assert (dead.state, dead.seconds, dead.model) == (EngineState.DEAD, 4.0, "demo")
    up[0] = True
    await both.look()
    assert both.statuses()[0].state is EngineState.READY
    await both.aclose()


async def test_a_dead_engine_whose_server_goes_on() -> None:
    """A23: vLLM's server may answer on after its engine is gone, and lists its models all the same."""
    answers = [engine(), engine(health=503)]

    def handler(request: httpx.Request) -> httpx.Response:
        return answers[0](request)

    both = control(handler)
    await both.look()
    assert both.statuses()[0].state is EngineState.READY
    answers.pop(0)
    await both.look()
    assert both.statuses()[0].state is EngineState.DEAD
    await both.aclose()


@pytest.mark.parametrize("status", [401, 403, 404, 405, 501])
async def test_a_server_without_health_is_ready(status: int) -> None:
    """OpenAI-compatible servers without /health count by their list of models."""
    both = control(engine(health=status))
    await both.look()
    assert both.statuses()[0].state is EngineState.READY
    await both.aclose()


async def test_it_keeps_looking() -> None:
    """Opened, it looks again and again by itself until it is closed."""
    looks: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        looks.append(request.url.path)
        return engine()(request)

    targets = [Target(side, "http://x", probe(handler)) for side in SIDES]
    both = AttachedControl(*targets, interval_s=0.0)
    await both.open()
    first = len(looks)
    while len(looks) < 3 * first:
        await both.look()
    await both.aclose()


@pytest.mark.parametrize("action", ["start", "stop", "restart"])
async def test_control_is_elsewhere(action: str) -> None:
    """Starting and stopping belong to whoever runs the engine: one sentence says so."""
    both = control(engine())
    with pytest.raises(UsageError, match="attached by its URL"):
        await getattr(both, action)(Side.STANDARD)
    await both.aclose()


@pytest.mark.parametrize(
    ("statuses", "problem"),
    [
        ((200, 200), None),
        ((200, 400), None),
        ((200, 500), "HTTP 500"),
        ((400, 200), "HTTP 400"),
    ],
)
async def test_the_warm_up(statuses: tuple[int, int], problem: str | None) -> None:
    """A29: logprobs and the chat template are warmed up; a base model without a template (400) is no failure."""
    asked: list[str] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(statuses[0 if request.url.path == "/v1/completions" else 1], json={})

    one = probe(handler)
    found = await one.warm_up(EngineSpec(Side.STANDARD, "owner/model", "demo", "cpu"))
    assert asked == ["/v1/completions", "/v1/chat/completions"]
    assert (found is None) == (problem is None)
    assert problem is None or problem in str(found)
    await one.aclose()


@pytest.mark.parametrize("body", [b"", b"[", b"[1]", b'{"version": 5}', b'{"data": [1, {"id": 2}]}', b"[" * 100_000])
async def test_hostile_answers(body: bytes) -> None:
    """Whatever a stranger answers, a probe returns "unknown" and raises nothing."""
    one = probe(lambda request: httpx.Response(200, content=body))
    assert await one.version() is None
    assert not await one.models()
    await one.aclose()


@pytest.mark.parametrize("pause", [0.0, 0.01])
async def test_a_stranger_who_never_ends(pause: float) -> None:
    """An endless body (a camera, a feed) costs bounded memory and time, and its status still counts (A28)."""
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            yield b" " * 100_000 if not pause else b" "
            sent += 1
            await asyncio.sleep(pause)

    handler = httpx.MockTransport(lambda request: httpx.Response(200, content=endless()))
    one = Probe("http://engine", timeout_s=0.3, transport=handler)
    async with asyncio.timeout(5):
        assert await one.health() == "ok"
        assert await one.models() is None
    assert sent < 100
    await one.aclose()
