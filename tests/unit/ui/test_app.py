"""The whole application without a browser: what Gradio publishes, what it sends, and how it ends."""

from __future__ import annotations

import asyncio
import re
import socket

import httpx
import pytest

from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan
from specdemo.errors import ConfigError
from specdemo.ui.server import build_app, listen, serve
from tests.unit.ui.pair import world


def client(**options: object) -> httpx.AsyncClient:
    """A client of the application under its guard."""
    app = build_app(world().services, **options)  # type: ignore[arg-type]
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page")


async def test_only_the_two_endpoints_are_published() -> None:
    """Programs see ``race`` and ``race_stream`` with typed parameters; the page's own listeners stay private."""
    async with client() as http:
        info = (await http.get("/gradio_api/info")).json()
    assert set(info["named_endpoints"]) == {"/race", "/race_stream"}
    names = [parameter["parameter_name"] for parameter in info["named_endpoints"]["/race"]["parameters"]]
    assert names[:5] == ["prompt", "system", "max_tokens", "temperature", "mode"]


async def test_page_is_quiet_and_bilingual() -> None:
    """No analytics, no run history, no error texts of the inside; both languages travel with the page."""
    async with client() as http:
        config = (await http.get("/config")).json()
        page = (await http.get("/")).text
    assert config["analytics_enabled"] is False
    assert not config.get("run_history", False)
    assert config["show_error"] is False
    assert re.search(r'<head><link rel="icon"[^>]*><script nonce="[\w-]+" src="assets/js/language.js">', page)
    assert "运行" in str(config["i18n_translations"])


async def test_taken_port_is_one_sentence() -> None:
    """A port in use is a setting to change, not a traceback."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(1)
        with pytest.raises(ConfigError, match="choose another"):
            listen("127.0.0.1", held.getsockname()[1])


async def test_serving_ends_when_asked() -> None:
    """``stop`` ends the server although a viewer's stream is still open."""
    place = world(gate=asyncio.Event())
    bound = listen("127.0.0.1", 0)
    stop = asyncio.Event()
    running = asyncio.create_task(serve(build_app(place.services), bound, stop=stop))
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    async with httpx.AsyncClient(timeout=20) as http, http.stream("GET", f"{url}/runs/{live.id}/events") as stream:
        pieces = stream.aiter_bytes()
        assert (await anext(pieces)).startswith(b"id: 0\n")
        stop.set()
        await running
    await place.services.registry.aclose()
    with pytest.raises(httpx.ConnectError):
        async with httpx.AsyncClient() as http:
            await http.get(url + "/healthz")
