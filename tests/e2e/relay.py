"""What the proxies of these tests share: a server that hands each connection on, one request each."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress

Handle = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def relay(handle: Handle, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A port of its own whose connections ``handle`` answers; all are cut at the end."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        with suppress(OSError, asyncio.IncompleteReadError):
            await handle(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()


@asynccontextmanager
async def asked(
    reader: asyncio.StreamReader, target: str, head: Iterable[bytes]
) -> AsyncIterator[AsyncIterator[bytes]]:
    """Pieces of ``target``'s answer to ``head`` and whatever body follows in ``reader``.

    The answer is made to end its connection, so that every request comes through the proxy with a head of its own.
    """
    host, port = target.removeprefix("http://").strip("/").split(":")
    upstream, onward = await asyncio.open_connection(host, int(port))
    onward.write(b"\r\n".join((*head, b"Connection: close", b"", b"")))

    async def pump() -> None:
        while data := await reader.read(65536):
            onward.write(data)
            await onward.drain()

    async def pieces() -> AsyncIterator[bytes]:
        while data := await upstream.read(65536):
            yield data.replace(b"connection: keep-alive", b"connection: close")

    up = asyncio.create_task(pump())
    try:
        yield pieces()
    finally:
        up.cancel()
        onward.close()
