"""The guard: nobody gets past the password, every answer carries the headers, streams are not held back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from specdemo.ui.door import LOCAL, Door
from specdemo.ui.guard import Guard
from specdemo.ui.quota import Allowance, Quota
from specdemo.ui.visitors import Visitor


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
            wanted = "default-src 'self'" if path == "/" else "default-src 'none'"
            assert wanted in reply.headers["content-security-policy"]
            assert "frame-ancestors 'self'" in reply.headers["content-security-policy"]
            assert reply.headers["x-content-type-options"] == "nosniff"


async def test_only_scripts_that_were_in_the_page_run() -> None:
    """Scripts carry a nonce that is new each time; inline scripts and handlers without it are forbidden."""
    async with client(Guard(INNER, head="<script></script>")) as http:
        first, second = await http.get("/"), await http.get("/")
    policies = [reply.headers["content-security-policy"] for reply in (first, second)]
    nonces = [re.search(r"script-src 'self' 'nonce-([\w-]{22})' 'unsafe-eval';", policy)[1] for policy in policies]  # type: ignore[index]
    assert nonces[0] != nonces[1]
    assert f'<script nonce="{nonces[0]}">' in first.text
    assert "'unsafe-inline'" not in policies[0].partition("script-src")[2].partition(";")[0]


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
        assert re.match(r'<html><head><script nonce="[\w-]+"></script><title>', page.text)
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


async def _swallow(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


BODIES = Starlette(routes=[Route("/gradio_api/upload", _swallow, methods=["POST"]), Route("/x", _swallow, methods=["POST"])])  # fmt: skip


@pytest.mark.parametrize("stated", [True, False])
async def test_bodies_have_a_limit(stated: bool) -> None:
    """What is larger than an upload may be is refused, whether its size is stated first or comes out while it arrives."""

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(8):
            yield b"x" * 1_000_000

    heard: list[str] = []
    async with client(Guard(BODIES, upload_bytes=6_000_000, refused=heard.append)) as http:
        body = b"x" * 8_000_000 if stated else pieces()
        reply = await http.post("/gradio_api/upload", content=body)  # type: ignore[arg-type]
        assert reply.status_code == 413
        assert "6 MB" in reply.json()["error"]
        fits = await http.post("/gradio_api/upload", content=b"x" * 5_000_000)
        assert fits.text == "5000000"
        assert "超过" in (await http.post("/x?lang=zh", content=b"x" * 5_000_000)).json()["error"]
    assert heard == ["size", "size"]


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/gradio_api/deep_link?session_hash=x"), ("GET", "/gradio_api/proxy=http://169.254.169.254/x"),
        ("POST", "/gradio_api/stream/x"), ("POST", "/gradio_api/process_recording"), ("POST", "/gradio_api/vibe-edit"),
        ("GET", "/gradio_api/vibe-code"), ("GET", "/gradio_api/runs"), ("POST", "/gradio_api/run-history/connect"),
        ("GET", "/gradio_api/profiling/traces"), ("GET", "/monitoring/summary"), ("POST", "/login"),
        ("GET", "/gradio_api/token"), ("GET", "/gradio_api/user"), ("PUT", "/gradio_api/queue/join"),
        ("GET", "/gradio_api/dev/reload"), ("GET", "/gradio_api/file/etc/passwd"), ("GET", "/svelte/x"),
        ("GET", "/gradio_api/custom_component/1/server/component/x.js"), ("DELETE", "/gradio_api/queue/data"),
    ],
)  # fmt: skip
async def test_unused_routes_of_gradio_are_closed(method: str, path: str) -> None:
    """What the page does not use is not there: no proxy, no recording, no session of somebody else."""
    async with client(Guard(INNER)) as http:
        assert (await http.request(method, path)).status_code in (404, 405)
        assert (await http.get("/gradio_api/info")).status_code == 200


@pytest.mark.parametrize(
    "headers, status",
    [
        ({"sec-fetch-site": "cross-site"}, 403), ({"sec-fetch-site": "same-site"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200), ({}, 200),
        ({"origin": "http://evil.example", "content-type": "text/plain"}, 403),
        ({"origin": "null", "content-type": "text/plain"}, 403),
        ({"origin": "null", "host": "", "content-type": "text/plain"}, 403),
        ({"origin": "http://page", "host": "page:80", "content-type": "text/plain"}, 200),
        ({"origin": "https://Page", "host": "page:443", "content-type": "text/plain"}, 200),
        ({"origin": "https://page", "host": "page:80", "content-type": "text/plain"}, 403),
        ({"origin": "http://page:8080", "x-forwarded-port": "8080", "content-type": "text/plain"}, 200),
        ({"origin": "http://page", "x-forwarded-port": "8080", "content-type": "text/plain"}, 200),
        ({"origin": "http://page:9", "x-forwarded-port": "8080", "content-type": "text/plain"}, 403),
        ({"origin": "http://[::1]:8080", "host": "[::1]:8080", "content-type": "text/plain"}, 200),
        ({"origin": "https://a.org:1", "x-forwarded-host": "a.org, in", "x-forwarded-port": "1, 80", "content-type": "x/y"}, 200),
        ({"origin": "http://page", "content-type": "text/plain"}, 200),
    ],
)  # fmt: skip
async def test_other_sites_change_nothing(headers: dict[str, str], status: int) -> None:
    """A form or script of another site cannot use a visitor's password or cookie; a program is no site."""
    async with client(Guard(BODIES)) as http:
        assert (await http.post("/x", headers=headers)).status_code == status


@pytest.mark.parametrize(
    "host, status", [("localhost:7860", 200), ("127.0.0.1:7860", 200), ("[::1]:7860", 200), ("evil.example", 421), ("demo.example:99", 200)]
)  # fmt: skip
async def test_host_names(host: str, status: int) -> None:
    """A stranger's name that leads to this machine (DNS rebinding) is not answered; local and listed names are."""
    door = Door(hosts=frozenset({LOCAL, "demo.example"}))
    async with client(Guard(INNER, door=door), host=host) as http:
        assert (await http.get("/x")).status_code == status
        assert (await http.get("/healthz")).status_code == 200


async def test_token_opens_for_programs() -> None:
    """A bearer token stands in for name and password, and only the right one."""
    guard = Guard(INNER, door=Door("ann:secret", "t0ken-of-programs"))
    for given, status in (("Bearer t0ken-of-programs", 200), ("Bearer wrong", 401), ("Bearer ", 401)):
        async with client(guard, authorization=given) as http:
            assert (await http.get("/x")).status_code == status


async def test_guessing_passwords_is_slow() -> None:
    """After ten wrong passwords from an address it has to wait, with the right one too; others come in."""
    guard = Guard(INNER, auth="ann:secret", quota=Quota(clock=lambda: 0.0))
    transport = httpx.ASGITransport(guard, client=("192.0.2.1", 1))
    async with httpx.AsyncClient(transport=transport, base_url="http://page") as http:
        codes = [(await http.get("/x", auth=("ann", f"guess{n}"))).status_code for n in range(12)]
        assert codes == [401] * 10 + [429] * 2
        assert (await http.get("/x", auth=("ann", "secret"))).status_code == 429
        assert (await http.get("/x")).status_code == 401  # nothing was tried
    async with client(guard) as http:
        assert (await http.get("/x", auth=("ann", "secret"))).status_code == 200


async def test_requests_and_streams_have_limits() -> None:
    """Too many requests get 429 with the time to wait, in the visitor's language; streams are counted while open."""
    quota = Quota(Allowance(requests_per_minute=3, streams=1, per_address=1), clock=lambda: 0.0)
    async with client(Guard(INNER, quota=quota)) as http:
        assert [(await http.get("/x")).status_code for _ in range(3)] == [200] * 3
        refused = await http.get("/x", headers={"accept-language": "zh-CN"})
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "20")
        assert "请" in refused.json()["detail"]
        for query, accept, chinese in (
            ("?lang=zh", "en", True),
            ("?lang=en", "zh-CN", False),
            ("?lang=fr", "zh-CN", True),
        ):
            said = (await http.get(f"/x{query}", headers={"accept-language": accept})).json()["detail"]
            assert ("请" in said) is chinese, query  # a choice of the page's address comes before the browser's
        assert (await http.get("/assets/js/pane.mjs")).status_code == 200
        assert (await http.get("/healthz")).status_code == 200
    held = Quota(Allowance(streams=1))
    async with client(Guard(INNER, quota=held)) as http:
        place = held.stream(Visitor(address="127.0.0.1"))
        assert (await http.get("/runs/x/events")).status_code == 429
        place()
        assert (await http.get("/runs/x/events")).status_code == 200
