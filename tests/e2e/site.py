"""The whole page over two scripted engines, in a thread with its own loop, so that tests may drive a browser beside it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Self

from specdemo.core.events import Side
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from specdemo.runs.jobs import Jobs, Workshop
from specdemo.runs.registry import Bounds, Registry
from specdemo.store.database import Database, parse
from specdemo.store.keeper import Keeper
from specdemo.store.runs import RunStore
from specdemo.ui.quota import Quota
from specdemo.ui.recordings import Recording
from specdemo.ui.server import build_app, listen, serve
from specdemo.ui.services import Services
from tests.e2e.cutting import Cutter, cutting
from tests.e2e.proxy import proxied
from tests.fakes.vllm import Server, serving
from tests.unit.ui.pair import Control

STANDARD: dict[str, Any] = {"reply": {"tokens": 60, "step_s": 0.004}}
SPECULATIVE: dict[str, Any] = {"k": 4, "reply": {"tokens": 60, "step_s": 0.006, "bursts": [1, 3, 5, 2]}}
SLOW: dict[str, Any] = {"reply": {"tokens": 2000, "step_s": 0.05}}
SLOW_SPECULATIVE: dict[str, Any] = {"k": 4, **SLOW}


class Site:
    """A running page. ``url`` ends with a slash; ``engines`` are the scripted servers behind it."""

    def __init__(self, **options: Any) -> None:
        self._options = options
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._stop: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._main, name="site", daemon=True)
        self.url = ""
        self.engines: dict[Side, Server] = {}
        self.control = Control()
        self.services: Services
        self.jobs: Jobs
        self.cutter: Cutter

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(60), "the page did not start"
        if self._failure is not None:
            raise self._failure
        return self

    def __exit__(self, *_: object) -> None:
        assert self._stop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(20)
        assert not self._thread.is_alive(), "the page did not stop"

    def call(self, work: Coroutine[Any, Any, Any], timeout: float = 60) -> Any:
        """Run a coroutine in the page's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def use(self, standard: dict[str, Any] | None = None, speculative: dict[str, Any] | None = None) -> None:
        """Change what the engines say from the next request on, and stop what still runs."""

        async def change() -> None:
            if self.services.jobs is not None:
                await self.services.jobs.aclose()
            await self.services.registry.aclose()
            self.engines[Side.STANDARD].use(standard or STANDARD)
            self.engines[Side.SPECULATIVE].use(speculative or SPECULATIVE)

        self.call(change())

    def revive(self, speculative: dict[str, Any] | None = None) -> None:
        """A dead speculative engine answers again, at the same address."""

        async def again() -> None:
            engine = self.engines[Side.SPECULATIVE]
            engine.use(speculative or SPECULATIVE)
            engine.dead = False
            await engine.start(port=engine.port)

        self.call(again())

    def wait_idle(self) -> None:
        """Wait until neither engine generates; fails if one goes on."""

        async def idle() -> None:
            async with asyncio.timeout(2):
                for engine in self.engines.values():
                    await engine.idle.wait()

        self.call(idle())

    def wait_busy(self) -> None:
        """Wait until both engines generate."""

        async def busy() -> None:
            async with asyncio.timeout(60):
                while any(engine.idle.is_set() for engine in self.engines.values()):
                    await asyncio.sleep(0.01)

        self.call(busy())

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except BaseException as error:
            self._failure = error
            self._ready.set()
        finally:
            # Gradio's queue leaves its own tasks behind, as it may at the end of a process.
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.close()

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        async with AsyncExitStack() as stack:
            self.engines = {
                Side.STANDARD: await stack.enter_async_context(serving(STANDARD)),
                Side.SPECULATIVE: await stack.enter_async_context(serving(SPECULATIVE)),
            }
            limits = Limits(**self._options.get("limits", {}))
            clients = {side: VllmEngine(side, one.base_url, limits=limits) for side, one in self.engines.items()}
            for client in clients.values():
                stack.push_async_callback(client.aclose)
            most = self._options.get("max_tokens", 4096)
            bounds = Bounds(max_tokens=most, prompt_chars=32_000, races_at_once=self._options.get("races_at_once", 1))
            keeper = None
            if "store" in self._options:
                keeper = Keeper(RunStore(Database(parse(self._options["store"]))), keep=self._options.get("keep", True))
                stack.push_async_callback(keeper.aclose)
            registry = Registry(lambda: clients, bounds=bounds)
            stack.push_async_callback(registry.aclose)
            recordings: dict[str, Recording] = self._options.get("recordings", {})
            self.services = Services(
                registry=registry, mode=self._options.get("mode", "managed"), control=self.control, recordings=recordings,
                public=self._options.get("public", False), max_tokens=most, keeper=keeper,
                together=self._options.get("together", True), quota=self._options.get("quota", Quota()),
            )  # fmt: skip
            if "data" in self._options:
                shop = Workshop(engines=lambda: clients, folder=self._options["data"], hardware="scripted engines")
                self.jobs = Jobs(registry, shop)
                stack.push_async_callback(self.jobs.aclose)
                self.services = replace(self.services, jobs=self.jobs)
            root = self._options.get("root_path", "")
            app = build_app(self.services, root_path=root, auth=self._options.get("auth"))
            bound = listen("127.0.0.1", 0)
            self.url = f"http://127.0.0.1:{bound.getsockname()[1]}/"
            if "cutting" in self._options:
                self.cutter = await stack.enter_async_context(cutting(self.url, self._options["cutting"]))
                self.url = self.cutter.url
            if root:
                front = await stack.enter_async_context(proxied(self.url, root, tls=self._options.get("tls")))
                self.url = f"{front}{root}/"
            serving_page = asyncio.create_task(serve(app, bound, stop=self._stop))
            await _answers(bound.getsockname()[1])
            self._ready.set()
            await serving_page


async def _answers(port: int) -> None:
    """Wait until the page's server takes requests."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    await reader.read()
    writer.close()
