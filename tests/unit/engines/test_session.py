"""What stands between an engine and its client, and what it may say of itself."""

import asyncio
import time

import pytest

from specdemo.core.events import SIDES, Side
from specdemo.engines.attached import AttachedControl, Target
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from specdemo.engines.probe import Probe
from specdemo.engines.session import Session
from specdemo.engines.transport import DirectTransport
from specdemo.engines.url import parse_base_url
from specdemo.errors import EngineRejected
from tests.fakes.vllm import serving


@pytest.mark.parametrize(
    ("bypass", "direct"),
    [
        ("engine.corp", True),
        (".corp", True),
        ("engine.corp:8000", True),
        ("engine.corp:9000", False),
        ("other.corp:8000", False),
        ("*", True),
        ("", False),
    ],
)
def test_no_proxy_with_and_without_a_port(bypass: str, direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exception for one port is an exception (B19)."""
    for name in ("NO_PROXY", "ALL_PROXY", "all_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", bypass)
    base = parse_base_url("http://engine.corp:8000")
    session = Session(base, api_key=None, ca_file=None, clock=time.monotonic, limits=Limits())
    assert isinstance(session._transport, DirectTransport) is direct


@pytest.mark.parametrize("name", ["x" * 100_000, "a\x1b[31m\u202eb"])
async def test_foreign_model_names_fit_into_a_sentence(name: str) -> None:
    """However long or strange the names are that a server lists."""
    async with serving({"models": [name] * 9}) as server:
        engine = VllmEngine(Side.STANDARD, server.base_url, model="m")
        with pytest.raises(EngineRejected) as caught:
            await engine.facts()
        await engine.aclose()
        probe = Probe(server.base_url)
        control = AttachedControl(*(Target(side, server.base_url, probe, "m") for side in SIDES))
        await control.look()
        said = [str(caught.value), *(str(status.error) for status in control.statuses())]
        await control.aclose()
    for text in said:
        assert len(text) < 600
        assert text.isprintable()


@pytest.mark.parametrize("path", ["/version", "/server_info"])
@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 2\r\n\r\nxx"])
async def test_a_route_that_is_only_asked_for_may_fail(path: str, answer: bytes) -> None:
    """An engine that lists its model can be used, whatever its other routes answer, if anything."""
    models = b'{"data":[{"id":"m"}]}'

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        found = models if "/v1/models" in head else b""
        said = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (200 if found else 404, len(found))
        writer.write(answer if f" {path}" in head else said + found)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as listener:
        port = listener.sockets[0].getsockname()[1]
        engine = VllmEngine(Side.STANDARD, f"http://127.0.0.1:{port}")
        assert ((await engine.facts()).model, (await engine.facts()).version) == ("m", None)
        await engine.aclose()
