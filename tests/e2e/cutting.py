"""A proxy that breaks every run's stream after a few pieces, as bad networks do; all else passes unharmed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.e2e.relay import asked, relay


@dataclass
class Cutter:
    """``url`` ends with a slash; ``cuts`` counts the broken streams, ``resumed`` where each came back from."""

    url: str = ""
    cuts: int = 0
    resumed: list[str] = field(default_factory=list)


@asynccontextmanager
async def cutting(target: str, after: int) -> AsyncIterator[Cutter]:
    """``target`` behind the proxy: a stream ends without a goodbye after ``after`` pieces."""
    cutter = Cutter()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        first, *lines = head.split(b"\r\n")[:-2]
        path = first.split(b" ")[1].partition(b"?")
        is_stream = path[0].startswith(b"/runs/") and path[0].endswith(b"/events")
        kept = [line for line in lines if not line.lower().startswith(b"connection:")]
        if is_stream:
            said = [line for line in kept if line.lower().startswith(b"last-event-id:")]
            cutter.resumed += [line.decode() for line in said] or [path[2].decode()]
        pieces = 0
        async with asked(reader, target, (first, *kept)) as answer:
            async for data in answer:
                writer.write(data)
                await writer.drain()
                pieces += 1
                if is_stream and pieces > after:
                    cutter.cuts += 1
                    writer.transport.abort()
                    return

    async with relay(one) as port:
        cutter.url = f"http://127.0.0.1:{port}/"
        yield cutter
