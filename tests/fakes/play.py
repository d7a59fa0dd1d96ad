"""Plays payloads on a connection at absolute deadlines, with the scripted faults."""

from __future__ import annotations

import asyncio
import base64
import json
import zlib
from collections.abc import Callable
from typing import Any

from tests.fakes.http11 import Connection, head
from tests.fakes.replies import Item
from tests.fakes.script import Fault, Reply, Step, Wire

ENGINE_DEAD = {"error": {"message": "EngineCore encountered an issue. See stack trace (above) for the root cause.",
                         "type": "InternalServerError", "param": None, "code": 500}}  # fmt: skip


def event(payload: Any, wire: Wire) -> bytes:
    """One server-sent event; text is taken as it is."""
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=wire.ascii, separators=(",", ":"))
    return f"data:{' ' if wire.space else ''}{text}{wire.newline}{wire.newline}".encode()


class Player:
    """One streamed reply on one connection. ``dead`` is set when the script says that the engine dies."""

    def __init__(self, connection: Connection, reply: Reply, on_step: Callable[[Step], None]) -> None:
        self._connection = connection
        self._reply = reply
        self._wire = reply.wire
        self._on_step = on_step
        self._loop = asyncio.get_running_loop()
        self._start = self._loop.time()
        self._held: list[bytes] = []
        self._gzip = zlib.compressobj(wbits=31) if self._wire.gzip else None
        self.dead = False
        self.completed = False

    async def play(self, items: list[Item], scale: float = 1.0) -> None:
        """Send everything; returns when done, or when the client went away."""
        await self._head()
        if self._wire.flood:
            await self._flood(items)
            return
        fault, sent = self._reply.fault, 0
        if fault is not None and fault.after == 0 and await self._fault(fault):
            return
        for item in items:
            if not await self._wait(self._start + item.at * scale):
                return
            if item.step is not None:
                self._on_step(item.step)
            if self._reply.stamp and item.step is not None:
                choice = item.payload["choices"][0]
                choice.get("delta", choice)["content" if "delta" in choice else "text"] = f"{self._loop.time():.6f} "
            await self._emit(event(item.payload, self._wire))
            if item.step is not None:
                sent += 1
                if fault is not None and fault.after == sent and await self._fault(fault):
                    return
        await self._finish()

    async def play_raw(self, raw: list[Any]) -> None:
        """Exact bytes: entries are text, or {"at", "data" | "b64"}."""
        await self._head()
        for item in raw:
            entry = {"data": item} if isinstance(item, str) else item
            if not await self._wait(self._start + entry.get("at", 0.0)):
                return
            data = base64.b64decode(entry["b64"]) if "b64" in entry else entry["data"].encode()
            await self._write(data * entry.get("repeat", 1))
        if (fault := self._reply.fault) is not None and await self._fault(fault):
            return
        await self._end()

    async def _head(self) -> None:
        headers = {"content-type": self._wire.content_type, "cache-control": "no-cache", **self._reply.headers}
        if self._wire.framing == "chunked":
            headers["transfer-encoding"] = "chunked"
        else:
            headers["connection"] = "close"
        if self._gzip is not None:
            headers["content-encoding"] = "gzip"
        await self._connection.send(head(self._reply.status, headers))
        if self._wire.bom:
            await self._write("\ufeff".encode())
        if self._wire.prelude:
            await self._write(self._wire.prelude.encode())

    async def _wait(self, deadline: float) -> bool:
        every = self._wire.comment_every_s
        while every and (pause := self._loop.time() + every) < deadline:
            if not await self._connection.until(pause):
                return False
            await self._write(f": keep-alive{self._wire.newline}{self._wire.newline}".encode())
        return await self._connection.until(deadline)

    async def _emit(self, data: bytes) -> None:
        if self._wire.buffer_events:
            self._held.append(data)
            if len(self._held) < self._wire.buffer_events:
                return
            data = self._take_held()
        await self._write(data)

    def _take_held(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        return data

    async def _write(self, data: bytes) -> None:
        if not data:
            return
        if self._gzip is not None:
            data = self._gzip.compress(data) + self._gzip.flush(zlib.Z_SYNC_FLUSH)
        size = self._wire.split or len(data)
        for start in range(0, len(data), size):
            await self._send(data[start : start + size])
            if self._wire.split:
                await asyncio.sleep(0)

    async def _send(self, data: bytes) -> None:
        if self._wire.framing == "chunked":
            data = f"{len(data):x}\r\n".encode() + data + b"\r\n"
        await self._connection.send(data)

    async def _flood(self, items: list[Item]) -> None:
        """As fast as the client reads, yet framed as a real server frames it: one HTTP chunk an event."""
        batch = bytearray()
        for item in items:
            data = event(item.payload, self._wire)
            batch += f"{len(data):x}\r\n".encode() + data + b"\r\n"
            if len(batch) > 60_000:
                await self._connection.send(bytes(batch))
                batch.clear()
        await self._connection.send(bytes(batch))
        await self._finish()

    async def _finish(self) -> None:
        if self._held:
            await self._write(self._take_held())
        for _ in range(self._wire.done):
            await self._write(event("[DONE]", self._wire))
        await self._end()

    async def _end(self) -> None:
        if self._gzip is not None:
            await self._send(self._gzip.flush())
        if self._wire.framing == "chunked":
            await self._connection.send(b"0\r\n\r\n")
        else:
            self._connection.close()
        self.completed = True

    async def _fault(self, fault: Fault) -> bool:
        """True when the reply ends here."""
        if fault.kind == "inject":
            await self._write(event(fault.body, self._wire))
            return False
        if fault.kind == "raw":
            await self._write(str(fault.body).encode())
            return False
        if fault.kind == "silence":
            await self._connection.gone.wait()
        elif fault.kind == "alive":
            await self._wait(self._start + 1e9)
        elif fault.kind == "reset":
            self._connection.reset()
        elif fault.kind == "half":
            await self._write(b'data: {"id":"cmpl-0","choices":[{"ind')
            self._connection.close()
        elif fault.kind == "close":
            self._connection.close()
        elif fault.kind == "end":  # a proper end of the HTTP body, without finish reason and [DONE]
            await self._end()
        elif fault.kind in ("error", "die"):
            await self._write(event(fault.body if fault.body is not None else ENGINE_DEAD, self._wire))
            self.dead = fault.kind == "die"
            await self._finish()
        else:
            raise ValueError(f"unknown fault {fault.kind}")
        return True
