"""The page and its two scripted engines, each a process of its own: engines can be killed, and memory be read."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

ROOT = Path(__file__).resolve().parents[2]
SIDES = ("standard", "speculative")
REPLIES: dict[str, dict[str, Any]] = {
    "standard": {"reply": {"first_s": 0.02, "step_s": 0.025}},
    "speculative": {"k": 4, "reply": {"first_s": 0.02, "step_s": 0.03, "bursts": [1, 3, 5, 2]}},
}


@dataclass
class Engine:
    """One scripted engine on a port that stays the same when it is killed and started again."""

    side: str
    port: int
    script: Path
    process: asyncio.subprocess.Process | None = None
    down: list[tuple[float, float]] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start it and wait until it listens."""
        self.script.write_text(json.dumps(REPLIES[self.side]), encoding="utf-8")
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.fakes.vllm", "--script", str(self.script), "--port", str(self.port),
            cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        if self.process.stdout is not None:
            await asyncio.wait_for(self.process.stdout.readline(), 60)

    async def stop(self, number: int = signal.SIGTERM) -> None:
        """End it; with SIGKILL nobody is told."""
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)
            await self.process.wait()

    async def kill(self, away_s: float) -> None:
        """Die without a word and come back after ``away_s``; the time is noted."""
        now = asyncio.get_running_loop().time
        begun = now()
        self.down.append((begun, float("inf")))
        await self.stop(signal.SIGKILL)
        await asyncio.sleep(away_s)
        await self.start()
        self.down[-1] = (begun, now())

    def was_down(self, since: float, until: float) -> bool:
        """Whether it was away at some time in between, or within the second before."""
        return any(begun < until and ended > since - 1 for begun, ended in self.down)


@dataclass
class World:
    """A running page over two engines."""

    url: str
    process: asyncio.subprocess.Process
    engines: dict[str, Engine]

    def memory(self) -> int:
        """Memory of the page's process (bytes, resident)."""
        found: int = psutil.Process(self.process.pid).memory_info().rss
        return found

    def cpu_s(self) -> float:
        """Processor time that the page has used (s)."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    async def answering(self, marker: str, client: httpx.AsyncClient) -> list[str]:
        """The engines that are still answering a prompt with ``marker`` in it."""
        found = []
        for engine in self.engines.values():
            with contextlib.suppress(httpx.HTTPError):
                prompts = (await client.get(f"{engine.url}/_open")).json()
                found += [engine.side] if any(marker in prompt for prompt in prompts) else []
        return found

    async def ended(self, marker: str, client: httpx.AsyncClient) -> float | None:
        """When the last engine ceased to answer a prompt with ``marker`` in it (s, monotonic); None if none tells."""
        found: list[float] = []
        for engine in self.engines.values():
            with contextlib.suppress(httpx.HTTPError):
                times = (await client.get(f"{engine.url}/_ended")).json()
                found += [at for prompt, at in times.items() if marker in prompt]
        return max(found, default=None)


@asynccontextmanager
async def world(folder: Path, *, together: int) -> AsyncIterator[World]:
    """Start everything, and end it afterwards. ``together`` races share the engines."""
    engines = {side: Engine(side, _free_port(), folder / f"{side}.json") for side in SIDES}
    log = folder / "page.log"
    try:
        await asyncio.gather(*(engine.start() for engine in engines.values()))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECDEMO_")}
        variables = {
            "SPECDEMO_DATA_DIR": str(folder / "data"),
            "SPECDEMO_CACHE_DIR": str(folder / "cache"),
            "SPECDEMO_LIMITS__RACES_AT_ONCE": str(together),
            "SPECDEMO_LIMITS__WAITING_RUNS": "200",
            "SPECDEMO_LIMITS__STALL_S": "10",
            "PYTHONPATH": str(ROOT),
        }
        urls = [f"--{side}-url={engines[side].url}" for side in SIDES]
        with log.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "specdemo", "serve", "--port", "0", *urls,
                cwd=folder, env=kept | variables, stderr=errors, stdout=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
        try:
            yield World(await _address(log), process, engines)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
                await process.wait()
    finally:
        for engine in engines.values():
            await engine.stop()


async def _address(log: Path) -> str:
    async with asyncio.timeout(120):
        while True:
            found = re.search(rb"specdemo: (http://\S+)", await asyncio.to_thread(log.read_bytes))
            if found is not None:
                return found[1].decode() + "/"
            await asyncio.sleep(0.1)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
