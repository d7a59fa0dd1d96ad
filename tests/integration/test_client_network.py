"""Addresses, proxies, certificates, keys (faults B18, B19, B21, B24, C21)."""

import shutil
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest

from specdemo.core.events import Side, Started, Tokens
from specdemo.engines.client import VllmEngine
from specdemo.errors import ConfigError, EngineError, EngineProtocolError, EngineRejected
from tests.fakes.asking import HELLO, ask, checked, words
from tests.fakes.vllm import serving

KEY = "sk-test-123"


def has_ipv6() -> bool:
    """Whether this machine has an IPv6 loopback."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


IPV6 = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback on this machine")


@pytest.mark.parametrize(
    "form",
    ["127.0.0.1:{}", "http://127.0.0.1:{}", "http://127.0.0.1:{}/", "http://127.0.0.1:{}/v1", "http://127.0.0.1:{}/v1/",
     "http://127.0.0.1:{}/v1/chat/completions", "http://127.0.0.1:{}/proxy/llm/v1", " http://127.0.0.1:{} ", "localhost:{}"],
)  # fmt: skip
async def test_every_address_form_reaches_one_route(form: str) -> None:
    """The completions route, /metrics and /health are found from each usual form (B18, B21)."""
    async with serving({"k": 4, "reply": {"steps": words(2)}}) as server:
        engine = VllmEngine(Side.SPECULATIVE, form.format(server.port))
        heard = checked([event async for event in engine.stream(HELLO, zero=0.0)])
        assert heard.finished.finish_reason == "stop"
        assert await engine.healthy()
        assert await engine.counters() is not None
        await engine.aclose()


@IPV6
@pytest.mark.parametrize("form", ["http://[::1]:{}", "localhost:{}"])
async def test_a_server_on_ipv6_only(form: str) -> None:
    """Both the literal address and the name work (B21)."""
    async with serving({"reply": {"steps": words(2)}}, host="::1") as server:
        heard = await ask(form.format(server.port))
        assert heard.finished.finish_reason == "stop"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_loopback_goes_direct(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy in the environment never stands before an engine on this machine (B19, C24)."""
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with serving({"reply": {"steps": words(2)}}) as server:
        assert (await ask(f"localhost:{server.port}")).finished.finish_reason == "stop"


async def test_other_hosts_use_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A remote engine is reached through the proxy that the environment names, and streams through it."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    async with serving({"reply": {"steps": words(3), "step_s": 0.01}}) as proxy:
        monkeypatch.setenv("http_proxy", proxy.base_url.removeprefix("http://"))
        heard = await ask("http://engine.example:8000")
        assert (heard.text, heard.finished.finish_reason) == ("w0 w1 w2 ", "stop")
        assert proxy.headers[0]["host"] == "engine.example:8000"
        monkeypatch.setenv("no_proxy", "engine.example")
        assert (await ask("http://engine.example:8000")).failed.kind == "unavailable"


async def test_a_proxy_that_is_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken proxy setting is named before anything is sent."""
    monkeypatch.setenv("http_proxy", "gopher://x")
    with pytest.raises(ConfigError, match="proxy"):
        VllmEngine(Side.STANDARD, "http://engine.example:8000")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private certificate for 127.0.0.1, its own authority."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl program to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=engine", "-keyout", "key.pem",
         "-out", "cert.pem", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    return folder


async def test_a_private_authority(authority: Path) -> None:
    """A remote engine with a private certificate works with its CA file, and says what is missing without it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(authority / "cert.pem", authority / "key.pem")
    async with serving({"reply": {"steps": words(3), "step_s": 0.01}}, tls=context) as server:
        heard = await ask(server, ca_file=authority / "cert.pem")
        assert (heard.text, heard.finished.finish_reason) == ("w0 w1 w2 ", "stop")
        refused = await ask(server)
        assert refused.failed.kind == "unavailable"
        assert "CA file" in refused.failed.message
        wrong = await ask(server.base_url.replace("https", "http"), ca_file=authority / "cert.pem")
        assert wrong.failed.kind in {"interrupted", "protocol"}


async def test_https_to_a_plain_server() -> None:
    """The scheme is named as the likely mistake."""
    async with serving() as server:
        heard = await ask(server.base_url.replace("http", "https"))
        assert "http:// or https://" in heard.failed.message


def test_a_bad_ca_file(tmp_path: Path) -> None:
    """A file that is missing or holds no certificates is named at once."""
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "none.pem"):
        with pytest.raises(ConfigError, match="CA file"):
            VllmEngine(Side.STANDARD, "https://h", ca_file=tmp_path / name)


async def test_the_key_is_sent_and_never_shown() -> None:
    """The key reaches the server, and no message repeats it, not even one in which the server does (C21)."""
    echo = {"status": 401, "body": {"error": {"message": f"Incorrect API key provided: {KEY}"}}}
    async with serving(
        {"api_key": KEY, "replies": [{"steps": words(2)}, echo, {"body": {"error": f"bad {KEY}"}}]}
    ) as server:
        assert (await ask(server, api_key=KEY)).finished.finish_reason == "stop"
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        for _ in range(2):
            heard = await ask(server, api_key=KEY)
            assert KEY not in repr(heard.events)
            assert "***" in heard.failed.message
        refused = await ask(server, api_key="sk-wrong")
        assert refused.failed.kind == "rejected"
        assert "API key" in refused.failed.message


async def test_user_and_password_in_the_address() -> None:
    """They travel as basic authentication and show nowhere (C21)."""
    async with serving({"reply": {"status": 401, "body": "no entry for s3cret-pw"}}) as server:
        heard = await ask(server.base_url.replace("://", "://user:s3cret-pw@"))
        assert server.headers[0]["authorization"] == "Basic dXNlcjpzM2NyZXQtcHc="
        assert "s3cret-pw" not in repr(heard.events)


def test_a_key_that_cannot_be_sent() -> None:
    """Line breaks in a key could forge headers; the mistake is named."""
    for key in ("sk\r\nx: y", "schlüssel"):
        with pytest.raises(ConfigError, match="API key"):
            VllmEngine(Side.STANDARD, "h", api_key=key)


async def test_a_buffering_proxy_is_stated() -> None:
    """Chunks that come in clumps are stated, plain and compressed (B24)."""
    for gzip in (False, True):
        wire = {"buffer_events": 16, "gzip": gzip}
        async with serving({"reply": {"steps": words(64), "step_s": 0.006, "wire": wire}}) as server:
            heard = await ask(server)
        assert "chunks arrive at once" in heard.notes["clumped"]
        assert heard.text == "".join(step["text"] for step in words(64))


async def test_redirects_are_not_followed() -> None:
    """A redirect could lead to any place; it is named instead."""
    async with serving({"reply": {"status": 307, "body": "", "headers": {"location": "http://10.0.0.5/v1"}}}) as server:
        heard = await ask(server)
        assert heard.failed.kind == "rejected"
        assert "10.0.0.5" in heard.failed.message


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9\r\n\r\n",
        b"\x00" * 100,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"x" * 100_000,
    ],
)
async def test_a_server_that_speaks_something_else(answer: bytes) -> None:
    """Another protocol on the port is a clear failure."""
    import asyncio

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(100)
        writer.write(answer)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        heard = await ask(f"127.0.0.1:{port}", model="m")
        assert heard.failed.kind == "protocol"
        assert "proper HTTP" in heard.failed.message


async def test_another_transport() -> None:
    """The client works over any httpx transport (proxies, mocks), stamping when a piece comes out of it."""

    async def answer(request: httpx.Request) -> httpx.Response:
        async def pieces() -> Any:
            yield b'data: {"choices":[{"index":0,"text":"a","token_ids":[1]}]}\n\n'
            yield b'data: {"choices":[{"index":0,"text":"b","token_ids":[2],"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=pieces())

    engine = VllmEngine(Side.STANDARD, "h", model="m", transport=httpx.MockTransport(answer))
    events = [event async for event in engine.stream(HELLO, zero=0.0)]
    assert [event.text for event in events if isinstance(event, Tokens)] == ["a", "b"]
    assert isinstance(events[0], Started)
    await engine.aclose()


async def test_a_reply_over_the_limit() -> None:
    """A body without end is refused at the limit, for small requests too."""
    async with serving({"metrics_filler": 100_000}) as server:
        from specdemo.engines.limits import Limits

        engine = VllmEngine(Side.STANDARD, server.base_url, limits=Limits(metrics_bytes=10_000, body_bytes=10))
        assert await engine.counters() is None
        with pytest.raises(EngineProtocolError, match="size limit"):
            await engine.facts()
        await engine.aclose()


async def test_errors_of_small_requests() -> None:
    """A refused or dead small request is an EngineError with the place in it."""
    async with serving({"api_key": KEY}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url)
        with pytest.raises(EngineRejected, match="API key"):
            await engine.facts()
        url = server.base_url
        await engine.aclose()
    engine = VllmEngine(Side.STANDARD, url)
    with pytest.raises(EngineError, match=url):
        await engine.facts()
    await engine.aclose()
