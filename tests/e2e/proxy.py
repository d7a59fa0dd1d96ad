"""A small reverse proxy that shows another server under a sub-path and strips it, as nginx does with a slash at the end."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.e2e.relay import asked, relay


@asynccontextmanager
async def proxied(target: str, prefix: str, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """``target`` under ``prefix`` on a port of its own; yields the address without the prefix.

    With ``tls`` the proxy speaks https and says so. One request a connection: the request line loses the prefix, everything else passes in both directions as it comes.
    """
    scheme = "https" if tls else "http"

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        request, *lines = head.split(b"\r\n")[:-2]
        method, path, version = request.split(b" ")
        if not path.startswith(prefix.encode() + b"/"):
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        kept = [line for line in lines if not line.lower().startswith((b"connection:", b"host:"))]
        host = next((line for line in lines if line.lower().startswith(b"host:")), b"Host: x")
        shown = (host, b"X-Forwarded-" + host, b"X-Forwarded-Proto: " + scheme.encode())
        first = b" ".join((method, path[len(prefix) :], version))
        async with asked(reader, target, (first, *kept, *shown)) as answer:
            async for data in answer:
                writer.write(data)
                await writer.drain()

    async with relay(one, tls=tls) as port:
        yield f"{scheme}://127.0.0.1:{port}"
