"""One visitor as the browser is one: a cookie, a session, a Gradio event, a stream of frames, and ways to leave."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import httpx

_RUN = re.compile(r'\\"run\\": \\"([\w-]{10,})\\"')

_REFUSED = re.compile(r'data-kind=\\"error\\"[^>]*>([^<]*)<')


@dataclass(frozen=True, slots=True)
class Seen:
    """One run as its visitor saw it. Times are of the event loop (s)."""

    run: str
    how: str
    begun: float
    ended: float
    states: tuple[str, ...] = ()
    words: int = 0


class Visitor:
    """A visitor of the page at ``url``."""

    def __init__(self, url: str, name: str) -> None:
        self.name = name
        limits = httpx.Limits(max_connections=20, max_keepalive_connections=4)
        self._http = httpx.AsyncClient(base_url=url, timeout=httpx.Timeout(30, read=60), limits=limits)
        self._session = ""
        self._functions: dict[str, dict[str, Any]] = {}
        self._count = 0
        self._beat: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Load the page, as a new tab does; the one before is gone."""
        await self.close()
        await self._http.get("")
        config = (await self._http.get("config")).json()
        self._functions = {found["api_name"]: found for found in config["dependencies"]}
        self._session = secrets.token_hex(6)
        self._beat = asyncio.create_task(self._hold(self._session))

    async def close(self) -> None:
        """Close the tab."""
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait([self._beat])
            self._beat = None

    async def aclose(self) -> None:
        """Go away for good."""
        await self.close()
        await self._http.aclose()

    async def _hold(self, session: str) -> None:
        """The connection by which the page knows that a tab is there."""
        with contextlib.suppress(httpx.HTTPError):
            async with self._http.stream("GET", f"gradio_api/heartbeat/{session}", timeout=None) as beats:
                async for _ in beats.aiter_raw():
                    pass

    @property
    def http(self) -> httpx.AsyncClient:
        """The visitor's cookies and connections."""
        return self._http

    def marker(self) -> str:
        """A new prompt that nobody else sends."""
        self._count += 1
        return f"{self.name}-{self._count:04d}"

    @contextlib.asynccontextmanager
    async def running(self, prompt: str, *, tokens: int = 40) -> AsyncIterator[Run]:
        """Press Run; leaving the block drops every connection of this tab, whatever the run is doing."""
        values = [prompt, "", "race", tokens, 0, 1, 0, 0, None, 0, 0, 1, False, False, False]
        run = Run(self, self._functions["run"], values)
        try:
            yield run
        finally:
            await run.drop()

    async def join(self, name: str, data: list[Any]) -> str:
        """Send one event; returns its id."""
        found = self._functions[name]
        data = [*data, *[False] * (len(found["inputs"]) - len(data))][: len(found["inputs"])]
        body = {"data": data, "fn_index": found["id"], "session_hash": self._session, "event_data": None}
        reply = await self._http.post("gradio_api/queue/join", json=body)
        reply.raise_for_status()
        return str(reply.json()["event_id"])

    def messages(self) -> contextlib.AbstractAsyncContextManager[httpx.Response]:
        """The session's stream of messages."""
        return self._http.stream("GET", "gradio_api/queue/data", params={"session_hash": self._session})

    async def cancel(self, event: str, function: int) -> None:
        """Stop, as the button does."""
        body = {"session_hash": self._session, "fn_index": function, "event_id": event}
        await self._http.post("gradio_api/cancel", json=body)

    async def frames(self, run: str, after: int = -1) -> AsyncIterator[dict[str, Any]]:
        """The frames of a run from one on."""
        async with self._http.stream("GET", f"runs/{run}/events", params={"after": after}) as stream:
            stream.raise_for_status()
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    async def result(self, run: str) -> dict[str, Any] | None:
        """The run's document; None when the page does not know the run."""
        reply = await self._http.get(f"runs/{run}/result")
        return reply.json() if reply.status_code == 200 else None


class Run:
    """One press of Run: its event, and the task that reads the session's messages."""

    def __init__(self, visitor: Visitor, function: dict[str, Any], values: list[Any]) -> None:
        self._visitor = visitor
        self._function = function
        self._values = values
        self.id: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.over = asyncio.Event()
        self._event = ""
        self._said = "it did not say why"
        self._task = asyncio.create_task(self._read())

    async def stop(self) -> None:
        """Press Stop, and wait for the page's word that the run has ended."""
        await self._visitor.cancel(self._event, int(self._function["id"]))
        await self.over.wait()

    async def drop(self) -> None:
        """Close the tab."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if not self.id.done():
            self.id.cancel()

    async def _read(self) -> None:
        try:
            self._event = await self._visitor.join("run", self._values)
            async with self._visitor.messages() as stream:
                async for line in stream.aiter_lines():
                    found = _RUN.search(line)
                    if found and not self.id.done():
                        self.id.set_result(found[1])
                    if refused := _REFUSED.search(line):
                        self._said = refused[1]
                    if '"process_completed"' in line:
                        break
        except httpx.HTTPError as error:
            if not self.id.done():
                self.id.set_exception(error)
        finally:
            self.over.set()
            if not self.id.done():
                self.id.set_exception(RuntimeError(f"the page did not begin this run: {self._said}"))
