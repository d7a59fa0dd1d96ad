"""An httpx transport for direct connections that stamps bytes when they arrive.

Two reasons for not using the default one. The clock is read in ``link.py``, before any queue or task switch.
And a chunk costs a third of the processor time (benchmarks/client_capacity.py), which is what keeps stamps exact
with many streams at once. Everything else of httpx stays: requests, responses, errors, mock transports in tests.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx

from specdemo.engines.limits import Limits
from specdemo.engines.link import Clock, Link
from specdemo.engines.wire.http1 import Framing, Head, HeadReader, framing

BODY = "specdemo.body"
"""Response extension that holds the :class:`Body`."""


STALE_S = 2.0
"""How soon a connection that was closed long ago shows it: a round trip, and as much again lost."""


class StaleConnection(httpx.RemoteProtocolError):
    """A kept connection had been closed by the server before it could take the request: safe to try once more."""


class Body(httpx.AsyncByteStream):
    """A reply's body: ``read`` gives bytes and sets ``at``, the stamp of their arrival."""

    def __init__(
        self, link: Link, frame: Framing, first: tuple[float, bytes], give_back: Callable[[Link], None] | None
    ) -> None:
        self._link: Link | None = link
        self._frame = frame
        self._first: tuple[float, bytes] | None = first if first[1] else None
        self._give_back = give_back
        self.at = first[0]

    def take(self) -> bytes | None:
        """Body bytes that are there already, b"" if none are, None at the end. Raises httpx errors if it was cut."""
        while (link := self._link) is not None:
            frame = self._frame
            if (piece := self._first) is not None:
                self._first = None
            elif frame.done:
                self._release()
                return None
            elif frame.error is not None:
                raise frame.error
            elif (piece := link.take()) is None:
                if not link.over:
                    return b""
                if not frame.ended():
                    raise httpx.RemoteProtocolError("the connection was closed in the middle of the reply")
                self._release()
                return None
            if data := frame.decode(piece[1]):
                self.at = piece[0]
                return data
        return None

    def watch(self, deadline: Callable[[], float]) -> None:
        """See :meth:`Link.watch`."""
        if self._link is not None:
            self._link.watch(deadline)

    def arrival(self) -> asyncio.Future[None]:
        """After ``take`` gave b"": resolves when to try again; fails with TimeoutError at the deadline."""
        link = self._link
        if link is None:
            raise httpx.StreamClosed
        return link.arrival()

    async def read(self) -> bytes | None:
        """The next body bytes, None at the end. Raises TimeoutError at the deadline, or httpx errors if cut."""
        while (data := self.take()) == b"":
            await self.arrival()
        return data

    def _release(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            link.watch(None)
        if link is not None and self._give_back is not None and link.quiet:
            self._give_back(link)
        elif link is not None:
            link.drop()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (data := await self.read()) is not None:
            yield data

    async def aclose(self) -> None:
        """Close; a connection whose reply is complete is kept for the next request."""
        if self._link is not None and self._frame.done and self._first is None:
            self._release()
        elif self._link is not None:
            self._link.drop()
            self._link = None


@dataclass(frozen=True, slots=True)
class _Origin:
    scheme: str
    host: str
    port: int


class DirectTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 over asyncio, without proxies. Keeps a few idle connections for ``limits.idle_s``."""

    def __init__(self, clock: Clock, limits: Limits, context: ssl.SSLContext | None = None) -> None:
        self._clock = clock
        self._limits = limits
        self._context = context
        self._idle: dict[_Origin, list[Link]] = {}
        self._open: set[Link] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request whose body is in memory; the reply's body is read later."""
        url = request.url
        origin = _Origin(url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80))
        message = _message(request) + await request.aread()
        link = self._take(origin) or await self._connect(origin)
        reused, link.used = link.used, True
        sent = asyncio.get_running_loop().time()
        try:
            head, first = await self._exchange(link, message, request)
            give_back = (lambda kept: self._keep(origin, kept)) if head.keep_alive else None
            body = Body(link, framing(head), first, give_back)
        except httpx.TransportError as error:
            link.drop()
            # Nothing of the reply has come on a connection that had been idle: the server had closed it before. Later
            # it may have died of this very request.
            late = asyncio.get_running_loop().time() - sent > STALE_S
            if reused and not late and not isinstance(error, httpx.TimeoutException):
                # What closed this one (a restart, a firewall) closed the others too: the retry gets a new one.
                for other in self._idle.pop(origin, []):
                    self._forget(other)
                raise StaleConnection("a kept connection was closed by the server", request=request) from error
            raise
        except BaseException:
            link.drop()
            raise
        return httpx.Response(head.status, headers=list(head.headers), stream=body, extensions={BODY: body})

    async def _exchange(self, link: Link, message: bytes, request: httpx.Request) -> tuple[Head, tuple[float, bytes]]:
        wait = request.extensions.get("timeout", {}).get("read")
        deadline = None if wait is None else asyncio.get_running_loop().time() + wait
        link.watch(None if deadline is None else lambda: deadline)
        if link.transport is None or link.ended:
            raise httpx.WriteError("the connection is closed", request=request)
        link.transport.write(message)
        reader = HeadReader()
        while True:
            try:
                piece = await link.read()
            except TimeoutError:
                raise httpx.ReadTimeout("no answer in time", request=request) from None
            if piece is None:
                reader.end()
                raise httpx.RemoteProtocolError("the connection was closed without an answer", request=request)
            if (head := reader.decode(piece[1])) is not None:
                return head, (piece[0], reader.rest)

    async def _connect(self, origin: _Origin) -> Link:
        loop = asyncio.get_running_loop()
        secure = origin.scheme == "https"
        # Happy eyeballs (RFC 8305): an address family that does not answer must not delay the other. Loops that are
        # not asyncio's own lack the option; they try one address after the other.
        options: dict[str, Any] = {"happy_eyeballs_delay": 0.25} if isinstance(loop, asyncio.BaseEventLoop) else {}
        if secure:
            options |= {"ssl": self._context or ssl.create_default_context(), "server_hostname": origin.host}
        try:
            async with asyncio.timeout(self._limits.connect_s):
                link = await self._first_open(_addresses(origin.host), origin.port, options)
        except TimeoutError:
            raise httpx.ConnectTimeout("no connection in time") from None
        except OSError as error:
            raise httpx.ConnectError(str(error)) from error
        self._open.add(link)
        return link

    async def _first_open(self, hosts: tuple[str, ...], port: int, options: dict[str, Any]) -> Link:
        """The first address that takes the connection; raises what the last one raised."""
        loop = asyncio.get_running_loop()
        for host in hosts[:-1]:
            try:
                return (await loop.create_connection(self._link, host, port, **options))[1]
            except ConnectionError:
                continue
        return (await loop.create_connection(self._link, hosts[-1], port, **options))[1]

    def _link(self) -> Link:
        # A connection holds the context it was opened in, and with it the visitor's request: none is kept when over.
        return Link(self._clock, self._lost)

    def _lost(self, link: Link) -> None:
        self._open.discard(link)
        for kept in self._idle.values():
            if link in kept:
                kept.remove(link)

    def _take(self, origin: _Origin) -> Link | None:
        kept = self._idle.get(origin, [])
        now = asyncio.get_running_loop().time()
        while kept:
            link = kept.pop()
            if link.quiet and now - link.idle_since < self._limits.idle_s:
                return link
            self._forget(link)
        return None

    def _keep(self, origin: _Origin, link: Link) -> None:
        kept = self._idle.setdefault(origin, [])
        link.idle_since = asyncio.get_running_loop().time()
        kept.append(link)
        while len(kept) > 4:
            self._forget(kept.pop(0))

    def _forget(self, link: Link) -> None:
        self._open.discard(link)
        link.drop()

    async def aclose(self) -> None:
        """Close all connections, also those in use."""
        for link in list(self._open):
            self._forget(link)
        self._idle.clear()


def _addresses(host: str) -> tuple[str, ...]:
    """localhost is both loopback addresses (RFC 6761), whatever the hosts file says; refusals cost nothing (B21)."""
    return ("127.0.0.1", "::1") if host.lower().rstrip(".") == "localhost" else (host,)


def _message(request: httpx.Request) -> bytes:
    """Request line and headers."""
    lines = [request.method.encode("ascii") + b" " + request.url.raw_path + b" HTTP/1.1"]
    for name, value in request.headers.raw:
        if any(byte in value for byte in b"\r\n\0"):
            raise httpx.LocalProtocolError(f"header {name.decode('latin-1')} contains a line break", request=request)
        lines.append(name + b": " + value)
    return b"\r\n".join(lines) + b"\r\n\r\n"
