"""A small HTTP/1.1 server connection with full control over every byte and over how a connection ends."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, urlsplit

REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed",
           429: "Too Many Requests", 500: "Internal Server Error", 503: "Service Unavailable"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request:
    """One request, read in full. ``headers`` have lower-case names; ``reused`` counts earlier requests on its socket."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    reused: int = 0

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; {} if it is none."""
        try:
            value = json.loads(self.body)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}


Serve = Callable[[Request, "Connection"], Awaitable[None]]


class Connection(asyncio.Protocol):
    """One client connection: requests in, bytes out. ``gone`` is set as soon as the client has closed it."""

    def __init__(self, serve: Serve, opened: set[Connection]) -> None:
        self._serve = serve
        self._opened = opened
        self._buffer = bytearray()
        self._arrived = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.gone = asyncio.Event()
        self.transport: asyncio.Transport | None = None
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._opened.add(self)
        self._task = asyncio.get_running_loop().create_task(self._run())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._buffer[0] == 0x16 and self.transport is not None:  # a TLS greeting: answer as a plain server does
            self.transport.write(head(400, {"connection": "close"}))
            self.transport.close()
        self._arrived.set()

    def eof_received(self) -> bool:
        self.gone.set()
        self._arrived.set()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._opened.discard(self)
        self.gone.set()
        self._arrived.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def _run(self) -> None:
        served = 0
        try:
            while (request := await self._next_request(served)) is not None:
                await self._serve(request, self)
                served += 1
        finally:
            self.close()

    async def _next_request(self, served: int) -> Request | None:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if not await self._more():
                return None
        lines = bytes(self._buffer[:end]).decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        method, target, _ = lines[0].split(" ", 2)
        headers = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])
        }
        length = int(headers.get("content-length", "0"))
        while len(self._buffer) < length:
            if not await self._more():
                return None
        body = bytes(self._buffer[:length])
        del self._buffer[:length]
        parts = urlsplit(target)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        return Request(method, parts.path, query, headers, body, served)

    async def _more(self) -> bool:
        if self.gone.is_set():
            return False
        self._arrived.clear()
        await self._arrived.wait()
        return not self.gone.is_set()

    async def send(self, data: bytes) -> None:
        """Write and wait while the client's window is full. Silently drops once the client is gone."""
        if self.transport is None or self.gone.is_set():
            return
        self.transport.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    async def until(self, deadline: float) -> bool:
        """Wait for an absolute loop time; False at once if the client goes away before."""
        delay = deadline - asyncio.get_running_loop().time()
        if delay > 0 and not self.gone.is_set():
            try:
                async with asyncio.timeout(delay):
                    await self.gone.wait()
            except TimeoutError:
                pass
        return not self.gone.is_set()

    async def reply(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """A whole reply with a Content-Length."""
        extra = {name.replace("_", "-"): value for name, value in headers.items()}
        await self.send(head(status, {"content-type": content_type, "content-length": str(len(body)), **extra}) + body)

    async def reply_json(self, status: int, value: object) -> None:
        """A whole reply with a JSON body."""
        await self.reply(status, json.dumps(value, ensure_ascii=False).encode())

    def close(self) -> None:
        """End in the polite way (FIN)."""
        if self.transport is not None:
            self.transport.close()

    def reset(self) -> None:
        """End in the rude way (RST), as a crashed process or a firewall does."""
        if self.transport is None:
            return
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()


def head(status: int, headers: dict[str, str]) -> bytes:
    """Status line and headers."""
    lines = [
        f"HTTP/1.1 {status} {REASONS.get(status, 'Status')}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
