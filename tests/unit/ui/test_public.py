"""A page that is open to strangers, attacked over HTTP: every handler by raw POST, hidden ones included."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from gradio.state_holder import SessionState

from specdemo.ui import sessions
from specdemo.ui.front import Front
from specdemo.ui.quota import Allowance, Quota
from specdemo.ui.server import build_app, listen, serve
from tests.unit.ui.pair import World, world

INSIDE = ("904711409", "vllm serve", "127.0.0.1:9", "<weights>", "Traceback", 'File "')
GARBAGE: tuple[Any, ...] = (
    None, "", "x" * 2000, -1, 1e308, True, [], {}, [[["deep"]]], {"run": "../../etc/passwd"}, "\x00\u202e", '{"run": {}}',
    {"side": "standard", "action": "stop"}, {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
)  # fmt: skip


RACE: list[Any] = ["hi", "", 8, 0, "race", None, False, True]
"""The parameters of ``race`` in order."""


@asynccontextmanager
async def served(place: World, **options: Any) -> AsyncIterator[str]:
    """The whole application on a port of its own; yields its address."""
    bound, stop = listen("127.0.0.1", 0), asyncio.Event()
    app = build_app(place.services, front=Front(**{"secret": "s", "metrics": False, **options}))
    running = asyncio.create_task(serve(app, bound, stop=stop))
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        stop.set()
        await running
        await place.services.registry.aclose()


@asynccontextmanager
async def visiting(place: World, **options: Any) -> AsyncIterator[httpx.AsyncClient]:
    """A browser's cookie jar on the whole application."""
    async with served(place, **options) as url, browser(url) as http:
        yield http


@asynccontextmanager
async def browser(url: str) -> AsyncIterator[httpx.AsyncClient]:
    """One visitor's cookie jar."""
    async with httpx.AsyncClient(base_url=url, timeout=30) as http:
        await http.get("/")
        yield http


async def post(http: httpx.AsyncClient, function: int, data: list[Any], **more: Any) -> str:
    """One event as a page sends it, read to its end; returns all that came back."""
    body = {"data": data, "fn_index": function, "session_hash": more.pop("session", "s1"), "event_data": None, **more}
    joined = await http.post("/gradio_api/queue/join", json=body)
    if joined.status_code != 200:
        assert joined.status_code < 500, joined.text
        return joined.text
    reply = await http.get("/gradio_api/queue/data", params={"session_hash": body["session_hash"]})
    return reply.text


async def listeners(http: httpx.AsyncClient) -> list[dict[str, Any]]:
    """Everything that can be called, hidden or not."""
    found: list[dict[str, Any]] = (await http.get("/config")).json()["dependencies"]
    return [listener for listener in found if listener["backend_fn"]]


def named(listeners: list[dict[str, Any]], name: str) -> int:
    """The number of a listener by its handler's name."""
    return next(int(listener["id"]) for listener in listeners if listener["api_name"] == name)


async def test_every_handler_takes_garbage_calmly() -> None:
    """Whatever is posted to whichever handler, the answer tells nothing of the inside and no engine is touched."""
    place = world(public=True, quota=Quota(Allowance(runs_per_minute=1)))
    async with visiting(place) as http:
        for listener in await listeners(http):
            answers = [
                post(
                    http,
                    listener["id"],
                    [junk] * len(listener["inputs"]),
                    event_data=junk,
                    session=f"s{listener['id']}-{n}",
                )
                for n, junk in enumerate(GARBAGE)
            ]
            for junk, said in zip(GARBAGE, await asyncio.gather(*answers), strict=True):
                assert not [word for word in INSIDE if word in said], (listener["api_name"], junk, said[:600])
    assert place.control.commands == []
    assert all(engine.open_streams == 0 for engine in place.engines.values())


@pytest.mark.parametrize("action", ["start", "stop", "restart"])
async def test_hidden_engine_commands_are_refused(action: str) -> None:
    """The handler of the hidden engine buttons, posted to by hand, refuses; on a private page the same post works."""
    for public, commands in ((True, 0), (False, 1)):
        place = world(public=public)
        async with visiting(place) as http:
            found = named(await listeners(http), "commanded")
            said = await post(http, found, [], event_data={"side": "standard", "action": action})
            switched = await http.post("/engines/speculation", json={"method": "ngram"})
        assert len(place.control.commands) == commands
        assert ("cannot be controlled" in said) is public
        if public:
            assert switched.status_code == 403


async def test_addresses_of_engines_are_not_taken_from_visitors() -> None:
    """C17: no handler, endpoint or route has a place for an address, a key or a file; extra ones are dropped or refused."""
    place = world(pause=0.0, public=True)
    async with visiting(place) as http:
        info = (await http.get("/gradio_api/info")).json()
        names = {p["parameter_name"] for end in info["named_endpoints"].values() for p in end["parameters"]}
        assert names == {"prompt", "system", "max_tokens", "temperature", "mode", "seed", "plain", "keep"}
        for url in (
            "http://169.254.169.254/",
            "http://127.0.0.1:7860",
            "http://10.0.0.5",
            "http://[::ffff:127.0.0.1]/",
        ):
            body = {"prompt": "hi", "base_url": url, "standard_url": url, "api_key": "k"}
            reply = await http.post("/gradio_api/call/v2/race", json=body)
            assert url not in reply.text
            assert (await http.get(f"/gradio_api/proxy={url}")).status_code == 404
            assert (await http.get(f"/gradio_api/file={url}")).status_code in (403, 404)
    assert all(engine.asked == [] for engine in place.engines.values())


async def test_limits_hold_for_the_page_and_for_programs() -> None:
    """Runs a minute count together, whether Run was pressed or an endpoint called, and the refusal says when."""
    place = world(public=True, quota=Quota(Allowance(runs_per_minute=2), clock=lambda: 0.0))
    async with visiting(place) as http:
        found = await listeners(http)
        form = ["hi", "", "race", 8, 0, 1, 0, 0, None, 0, 0, 1, False, False, False, *[None] * 8]
        run, race = named(found, "run"), named(found, "race")
        inputs = len(next(listener for listener in found if listener["id"] == run)["inputs"])
        asked = RACE[: len(next(listener for listener in found if listener["id"] == race)["inputs"])]
        assert "Finished" in await post(http, run, form[:inputs])
        assert "speedup" in await post(http, race, asked, session="s2")
        for function, data in ((run, form[:inputs]), (race, asked)):
            assert "2 runs a minute" in await post(http, function, data, session=f"s{function}-3")
        called = (await http.post("/gradio_api/call/race", json={"data": asked})).json()["event_id"]
        assert "2 runs a minute" in (await http.get(f"/gradio_api/call/race/{called}")).text
        direct = await http.post("/gradio_api/run/race", json={"data": asked})
        assert "speedup" not in direct.text
    assert place.services.telemetry.registry.get_sample_value("specdemo_refusals_total", {"reason": "runs"}) >= 3


async def test_a_session_name_proves_nothing() -> None:
    """C16: who sends another visitor's session name learns nothing of that visitor's latest run."""
    place = world(public=True)
    async with served(place) as url, browser(url) as ann, browser(url) as ben:
        found = await listeners(ann)
        inputs = len(next(listener for listener in found if listener["api_name"] == "run")["inputs"])
        form = ["secret of Ann", "", "race", 8, 0, 1, 0, 0, None, 0, 0, 1, False, False, False, *[None] * 8][:inputs]
        await post(ann, named(found, "run"), form, session="shared")
        [run] = place.services.registry._runs
        for name in ("stopped", "settled"):
            inputs = len(next(listener for listener in found if listener["api_name"] == name)["inputs"])
            assert run in await post(ann, named(found, name), ["{}"] * inputs, session="shared"), name
            assert run not in await post(ben, named(found, name), ["{}"] * inputs, session="shared"), name


async def test_metrics_are_for_the_operator() -> None:
    """Strangers get no figures; a token opens them; they name no prompt, run, address or model."""
    place = world(public=True)
    async with visiting(place) as http:
        assert (await http.get("/metrics")).status_code == 404
    app = build_app(place.services, front=Front(secret="s", auth="ann:pw", metrics=False, metrics_token="m3trics"))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page") as http:
        assert (await http.get("/metrics")).status_code == 401
        live = place.services.start(_plan("a prompt of mine"))
        await place.services.registry.finished(live)
        await asyncio.sleep(0)
        reply = await http.get("/metrics", headers={"authorization": "Bearer m3trics"})
    assert reply.status_code == 200
    assert 'specdemo_runs_total{mode="race",outcome="finished"} 1.0' in reply.text
    assert 'specdemo_engine_state{side="standard",state="ready"} 1.0' in reply.text
    assert "process_resident_memory_bytes" in reply.text
    assert not [word for word in ("a prompt of mine", live.id, "scripted", "127.0.0.1") if word in reply.text]


def _plan(text: str) -> Any:
    from specdemo.core.prompt import chat
    from specdemo.core.run import RunPlan

    return RunPlan(prompt=chat(text), warmup=False)


async def test_readiness_ends_before_the_page() -> None:
    """A page that is closing is not ready, so that a load balancer sends nobody; it still answers."""
    place = world()
    async with visiting(place) as http:
        assert (await http.get("/readyz")).status_code == 200
        place.services.quota.closing = True
        assert (await http.get("/readyz")).status_code == 503
        assert (await http.get("/healthz")).status_code == 200
        found = await listeners(http)
        race = next(listener for listener in found if listener["api_name"] == "race")
        assert "restarted" in await post(http, race["id"], RACE[: len(race["inputs"])])


async def test_sessions_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """C05: what Gradio remembers of each page is bounded, also for those that never say that they go."""
    monkeypatch.setattr(sessions, "MOST_SESSIONS", 8)
    gc.collect()
    before = sum(isinstance(found, SessionState) for found in gc.get_objects())
    async with visiting(world(public=True)) as http:
        arrived = named(await listeners(http), "arrived")
        for number in range(24):
            assert "process_completed" in await post(http, arrived, [], session=f"page-{number}")
        gc.collect()
        held = sum(isinstance(found, SessionState) for found in gc.get_objects()) - before
    assert 1 <= held <= 8
