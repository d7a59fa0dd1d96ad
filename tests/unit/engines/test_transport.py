"""The direct transport: kept connections, back-pressure, bad requests."""

import asyncio
import contextlib
import time

import httpx
import pytest

from specdemo.engines.limits import Limits
from specdemo.engines.transport import BODY, Body, DirectTransport, StaleConnection
from tests.fakes.vllm import serving


def client(**limits: float) -> httpx.AsyncClient:
    """An httpx client over the transport."""
    return httpx.AsyncClient(transport=DirectTransport(time.monotonic, Limits(**limits)), trust_env=False, timeout=5)


async def test_connections_are_kept_and_forgotten() -> None:
    """The next request takes the same connection while it is fresh, a new one when it has been idle too long."""
    async with serving() as server, client() as http:
        for _ in range(3):
            assert (await http.get(server.base_url + "/version")).json() == {"version": "0.32.0"}
        assert server.accepted == 1
    async with serving() as server, client(idle_s=0.0) as http:
        for _ in range(3):
            await http.get(server.base_url + "/version")
        assert server.accepted == 3


async def test_only_a_few_idle_connections_are_kept() -> None:
    """A burst of requests does not leave a crowd of open sockets."""
    async with serving() as server, client() as http:
        await asyncio.gather(*(http.get(server.base_url + "/version") for _ in range(12)))
        while len(server.connections) > 4:
            await asyncio.sleep(0.005)
    assert server.accepted <= 12


async def test_a_kept_connection_that_was_closed_is_named() -> None:
    """Only a connection that had been kept can be stale; a new one that is closed is a plain error."""
    async with serving({"drop_reused": True}) as server, client() as http:
        await http.get(server.base_url + "/version")
        with pytest.raises(StaleConnection):
            await http.get(server.base_url + "/version")

    async def slam(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(slam, "127.0.0.1", 0) as listener, client() as http:
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(httpx.TransportError) as caught:
            await http.get(f"http://127.0.0.1:{port}/")
        assert not isinstance(caught.value, StaleConnection)


async def test_a_closed_idle_connection_is_not_taken() -> None:
    """When the server closes an idle connection in time for us to see it, the next request opens a new one at once."""
    async with serving() as server, client() as http:
        await http.get(server.base_url + "/version")
        for connection in list(server.connections):
            connection.close()
        while server.connections:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.02)
        assert (await http.get(server.base_url + "/version")).status_code == 200


async def test_an_idle_connection_that_is_over_is_forgotten() -> None:
    """Not only when the next request looks for one: it holds what it was opened for."""
    async with serving() as server:
        transport = DirectTransport(time.monotonic, Limits())
        async with httpx.AsyncClient(transport=transport, trust_env=False, timeout=5) as http:
            await asyncio.gather(*(http.get(server.base_url + "/version") for _ in range(3)))
            assert sum(map(len, transport._idle.values())) == len(transport._open) > 1
            for connection in list(server.connections):
                connection.close()
            while transport._open:
                await asyncio.sleep(0.005)
            assert not any(transport._idle.values())


async def test_after_one_stale_connection_the_retry_opens_a_new_one() -> None:
    """A restart or a firewall ends all kept connections, and does not always say so: each would fail in turn."""
    async with serving({"drop_reused": True}) as server, client() as http:
        await asyncio.gather(*(http.get(server.base_url + "/version") for _ in range(4)))
        opened = server.accepted
        with pytest.raises(StaleConnection):
            await http.get(server.base_url + "/version")
        assert (await http.get(server.base_url + "/version")).status_code == 200
        assert server.accepted == opened + 1


async def test_a_kept_connection_that_breaks_later_is_not_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that took the request and died over it would die again: that request is not sent twice."""
    monkeypatch.setattr("specdemo.engines.transport.STALE_S", 0.05)
    async with serving({"reply": {"delay_s": 10}}) as server, client() as http:
        await http.get(server.base_url + "/version")
        asked = asyncio.create_task(http.post(server.base_url + "/v1/completions", json={"stream": True}))
        while not server.requests:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.1)
        for connection in list(server.connections):
            connection.reset()
        with pytest.raises(httpx.TransportError) as caught:
            await asked
        assert not isinstance(caught.value, StaleConnection)


async def test_a_slow_reader_holds_the_server_back() -> None:
    """What nobody reads yet is bounded; everything arrives once it is read."""
    size, pieces = 1_000_000, 30
    script = {"reply": {"raw": [{"data": "x" * size, "repeat": 1}] * pieces}}
    async with serving(script) as server, client() as http:
        request = http.build_request(
            "POST", server.base_url + "/v1/completions", json={"stream": True, "max_tokens": 5}
        )
        response = await http.send(request, stream=True)
        body = response.extensions[BODY]
        assert isinstance(body, Body)
        link = body._link
        assert link is not None
        while not link._paused:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        assert link._size < 4_000_000
        total = 0
        async for data in response.aiter_raw():
            total += len(data)
        assert total == size * pieces
        assert await body.read() is None


async def test_reads_time_out_at_their_deadline() -> None:
    """A deadline that comes nearer between two reads counts."""
    async with serving({"reply": {"fault": {"kind": "silence"}}}) as server, client() as http:
        request = http.build_request(
            "POST", server.base_url + "/v1/completions", json={"stream": True, "max_tokens": 5}
        )
        response = await http.send(request, stream=True)
        body, loop = response.extensions[BODY], asyncio.get_running_loop()
        body.watch(lambda: loop.time() + 60)
        waiting = asyncio.create_task(body.read())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        until = loop.time() + 0.05
        body.watch(lambda: until)
        with pytest.raises(TimeoutError):
            await body.read()
        with pytest.raises(TimeoutError):
            await body.read()
        await response.aclose()


@pytest.mark.parametrize("end", ["left", "cut", "refused", "whole"])
async def test_connections_that_are_over_are_forgotten(end: str) -> None:
    """However a connection ends, nothing of it and of what it was opened for is held on to."""
    script: dict[str, object] = {
        "left": {"reply": {"fault": {"kind": "silence"}}},
        "cut": {"reply": {"raw": ["data: x"], "fault": {"kind": "reset"}}},
        "refused": {"reply": {"status": 503, "body": "no", "headers": {"connection": "close"}}},
        "whole": {},
    }[end]
    async with serving(script) as server:
        transport = DirectTransport(time.monotonic, Limits())
        async with httpx.AsyncClient(transport=transport, trust_env=False, timeout=5) as http:
            for _ in range(3):
                request = http.build_request(
                    "POST", server.base_url + "/v1/completions", json={"stream": True, "max_tokens": 5}
                )
                response = await http.send(request, stream=True)
                if end != "left":
                    with contextlib.suppress(httpx.TransportError):
                        await response.aread()
                await response.aclose()
            while len(transport._open) > (1 if end == "whole" else 0):
                await asyncio.sleep(0.005)


async def test_nothing_can_be_smuggled_into_the_head() -> None:
    """A line break in a header is refused before anything is sent."""
    async with serving() as server, client() as http:
        with pytest.raises(httpx.LocalProtocolError, match="line break"):
            await http.get(server.base_url + "/version", headers={"x-a": "1\r\nx-b: 2"})
        assert server.accepted == 0


async def test_closing_the_transport_closes_everything() -> None:
    """Open and idle connections are gone."""
    async with serving({"reply": {"fault": {"kind": "silence"}}}) as server:
        http = client()
        await http.get(server.base_url + "/version")
        request = http.build_request(
            "POST", server.base_url + "/v1/completions", json={"stream": True, "max_tokens": 5}
        )
        await http.send(request, stream=True)
        await http.aclose()
        while server.connections:
            await asyncio.sleep(0.005)
