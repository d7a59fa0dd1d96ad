"""The guard: nobody gets past the password, every answer carries the headers, streams are not held back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from specdemo.ui.guard import Guard


async def _page(request: Request) -> Response:
    return HTMLResponse("<html><head><title>x</title></head></html>")


async def _echo(request: Request) -> Response:
    return PlainTextResponse(request.url.path)


async def _stream(request: Request) -> Response:
    async def body() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"data: x\n\n"
            await asyncio.sleep(0)

    return StreamingResponse(body(), media_type="text/event-stream")


INNER = Starlette(
    routes=[Route("/", _page), Route("/stream", _stream), Route("/healthz", _echo), Route("/{rest:path}", _echo)]
)


def client(guard: Guard, **more: str) -> httpx.AsyncClient:
    """A client of the guarded application."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(guard), base_url="http://page", headers=more)


async def test_every_answer_has_the_headers() -> None:
    """Pages, files, refusals and streams all carry the content policy and forbid sniffing."""
    async with client(Guard(INNER, auth="ann:secret")) as http:
        for path in ("/", "/stream", "/healthz", "/anything"):
            reply = await http.get(path)
            assert "default-src 'self'" in reply.headers["content-security-policy"]
            assert reply.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("given", ["", "Basic", "Basic !!!", "Bearer YW5uOnNlY3JldA==", "Basic YW5uOndyb25n"])
async def test_wrong_passwords_are_refused(given: str) -> None:
    """Our own routes ask for the password as the page does; the health check alone is open."""
    async with client(Guard(INNER, auth="ann:secret"), authorization=given) as http:
        for path in ("/", "/stream", "/runs/abc/events", "/assets/js/pane.mjs"):
            assert (await http.get(path)).status_code == 401
        assert (await http.get("/healthz")).status_code == 200


async def test_right_password_opens() -> None:
    """Name and password as a browser sends them, with signs beyond ASCII."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(Guard(INNER, auth="ann:sécret")), base_url="http://page", auth=("ann", "sécret")
    ) as http:
        assert (await http.get("/")).status_code == 200


@pytest.mark.parametrize(
    "asked, seen", [("/demo/runs/1/events", "/runs/1/events"), ("/runs/1/events", "/runs/1/events"), ("/demolition", "/demolition")]
)  # fmt: skip
async def test_sub_path_with_and_without_stripping(asked: str, seen: str) -> None:
    """Proxies that keep the prefix and proxies that strip it both work (C14); a mere look-alike is left alone."""
    async with client(Guard(INNER, root_path="/demo")) as http:
        assert (await http.get(asked)).text == seen


async def test_sub_path_without_slash_is_sent_on() -> None:
    """Relative addresses on the page need the slash at its end."""
    async with client(Guard(INNER, root_path="/demo")) as http:
        reply = await http.get("/demo")
        assert reply.status_code == 307
        assert reply.headers["location"] == "/demo/"


async def test_head_goes_into_the_page_only() -> None:
    """The language script comes first in the page's head; other answers are untouched."""
    async with client(Guard(INNER, head="<script></script>")) as http:
        page = await http.get("/")
        assert page.text.startswith("<html><head><script></script><title>")
        assert int(page.headers["content-length"]) == len(page.content)
        assert (await http.get("/other")).text == "/other"


async def test_streams_pass_piece_by_piece() -> None:
    """No middleware gathers an event stream before it goes out."""
    sent: list[dict] = []

    async def receive() -> dict:
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "path": "/stream",
        "method": "GET",
        "headers": [],
        "query_string": b"",
        "raw_path": b"/stream",
    }
    await Guard(INNER, head="<script></script>")(scope, receive, send)  # type: ignore[arg-type]
    assert [m.get("body") for m in sent if m.get("body")] == [b"data: x\n\n"] * 3
