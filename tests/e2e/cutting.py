"""A proxy that breaks every run's stream after a few pieces, as bad networks do; all else passes unharmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Cutter:
    """``url`` ends with a slash; ``cuts`` counts the broken streams, ``resumed`` where each came back from."""

    url: str = ""
    cuts: int = 0
    resumed: list[str] = field(default_factory=list)


@asynccontextmanager
async def cutting(target: str, after: int) -> AsyncIterator[Cutter]:
    """``target`` behind the proxy: a stream ends without a goodbye after ``after`` pieces."""
    host, port = target.removeprefix("http://").strip("/").split(":")
    cutter = Cutter()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())  # type: ignore[arg-type]
        with suppress(OSError, asyncio.IncompleteReadError):
            await _one(reader, writer, host, int(port), cutter, after)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    cutter.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    try:
        yield cutter
    finally:
        server.close()
        for task in tasks:
            task.cancel()


async def _one(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int, cutter: Cutter, after: int
) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")[:-2]
    path = first.split(b" ")[1].partition(b"?")
    is_stream = path[0].startswith(b"/runs/") and path[0].endswith(b"/events")
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    if is_stream:
        said = [line for line in kept if line.lower().startswith(b"last-event-id:")]
        cutter.resumed += [line.decode() for line in said] or [path[2].decode()]
    upstream, onward = await asyncio.open_connection(host, port)
    onward.write(b"\r\n".join((first, *kept, b"Connection: close", b"", b"")))
    up = asyncio.create_task(_pump(reader, onward))
    pieces = 0
    try:
        while data := await upstream.read(65536):
            writer.write(data.replace(b"connection: keep-alive", b"connection: close"))
            await writer.drain()
            pieces += 1
            if is_stream and pieces > after:
                cutter.cuts += 1
                writer.transport.abort()
                return
    finally:
        up.cancel()
        onward.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
