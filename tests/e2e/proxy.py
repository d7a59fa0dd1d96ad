"""A small reverse proxy that shows another server under a sub-path and strips it, as nginx does with a slash at the end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


@asynccontextmanager
async def proxied(target: str, prefix: str, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """``target`` under ``prefix`` on a port of its own; yields the address without the prefix.

    With ``tls`` the proxy speaks https and says so. One request a connection: the request line loses the prefix, everything else passes in both directions as it comes.
    """
    host, port = target.removeprefix("http://").strip("/").split(":")
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        try:
            await _one(reader, writer, host, int(port), prefix, b"https" if tls else b"http")
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tasks:
            task.cancel()


async def _one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, prefix: str, scheme: bytes
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    method, path, version = head.split(b"\r\n", 1)[0].split(b" ")
    if not path.startswith(prefix.encode() + b"/"):
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    lines = head.split(b"\r\n")[1:-2]
    kept = [line for line in lines if not line.lower().startswith((b"connection:", b"host:"))]
    host_line = next((line for line in lines if line.lower().startswith(b"host:")), b"Host: x")
    shown = b"X-Forwarded-" + host_line
    first = b" ".join((method, path[len(prefix) :], version))
    upstream, onward = await asyncio.open_connection(host, port)
    onward.write(
        b"\r\n".join((first, *kept, host_line, shown, b"X-Forwarded-Proto: " + scheme, b"Connection: close", b"", b""))
    )
    up = asyncio.create_task(_pump(reader, onward))
    try:
        while data := await upstream.read(65536):
            # Each answer ends its connection, so that every request passes through here and loses its prefix.
            writer.write(data.replace(b"connection: keep-alive", b"connection: close"))
            await writer.drain()
    finally:
        up.cancel()
        onward.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
