"""TPOT and output throughput as specdemo sees them over what vLLM's own bench client sees. Target 0.99 to 1.01.

    python benchmarks/client_fidelity.py http://127.0.0.1:8101 [URL …] [--tokens 128] [--quads 2] [--write]

Two ways, for each engine and prompt:

- *turns*: one request at a time, in the order ours, theirs, theirs, ours. Each answers for its own request, so the
  machine's noise between requests is in the ratio.
- *one stream*: a relay asks the engine once and hands every byte to both clients as it comes. What differs then is the
  clients alone.

Decode tokens/s = 1 / TPOT = (tokens - 1) / (last token chunk - first token chunk); output tokens/s = tokens / (last
token chunk - request sent). The engines should be idle otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import subprocess
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from client_common import PEER, engine_python, machine, report, run_own

PROMPTS = [
    "List the days of the week, then list them again three times.",
    "def fibonacci(n):\n    ",
    "Once upon a time there was a small town by the sea.",
    "1, 2, 3, 4, 5, 6, 7, 8,",
]


class Seen(NamedTuple):
    """One request in one client's eyes, in tokens/s: while decoding (1 / TPOT), and from request to last token."""

    decode: float
    output: float


class Peer:
    """vLLM's client as a child that answers one prompt after the other."""

    def __init__(self, url: str, model: str) -> None:
        command = [engine_python(), str(PEER), "ask", url, model]
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    async def ask(self, prompt: str, tokens: int) -> Seen:
        """What it sees of one request."""
        found = await asyncio.to_thread(self._ask, {"prompt": prompt, "tokens": tokens})
        return Seen((found["tokens"] - 1) / (found["e2el_s"] - found["ttft_s"]), found["tokens"] / found["e2el_s"])

    def _ask(self, order: dict[str, Any]) -> dict[str, Any]:
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        self.child.stdin.write(json.dumps(order) + "\n")
        self.child.stdin.flush()
        while line := self.child.stdout.readline():
            if line.startswith("{"):
                result: dict[str, Any] = json.loads(line)
                return result
        raise RuntimeError("vLLM's client ended")


async def ours(engine: Any, prompt: str, tokens: int) -> Seen:
    """The same in specdemo's eyes."""
    from specdemo.core.events import Finished, Tokens
    from specdemo.core.prompt import Prompt, Sampling

    asked = Prompt(text=prompt, sampling=Sampling(max_tokens=tokens, ignore_eos=True))
    events = [event async for event in engine.stream(asked, zero=time.monotonic())]
    assert isinstance(events[-1], Finished), events[-1]
    chunks = [event for event in events if isinstance(event, Tokens) and event.ids]
    count = sum(len(event.ids) for event in chunks)
    return Seen((count - 1) / (chunks[-1].at - chunks[0].at), count / chunks[-1].at)  # ``at`` counts from zero


@asynccontextmanager
async def relay(engine: str) -> AsyncIterator[str]:
    """A server that asks ``engine`` once for each two requests and gives both the same bytes at the same time."""
    import httpx

    waiting: list[asyncio.StreamWriter] = []
    place = urlsplit(engine)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readuntil(b"\r\n\r\n"):
            length = next((int(x[15:]) for x in head.lower().split(b"\r\n") if x.startswith(b"content-length:")), 0)
            body = await reader.readexactly(length)
            if head.startswith(b"GET"):  # what the server is: asked before, not part of the measurement
                async with httpx.AsyncClient() as http:
                    found = await http.get(engine + head.split(b" ")[1].decode())
                line = f"HTTP/1.1 {found.status_code} X\r\nContent-Type: {found.headers['content-type']}\r\n"
                writer.write(f"{line}Content-Length: {len(found.content)}\r\n\r\n".encode() + found.content)
                continue
            waiting.append(writer)
            if len(waiting) == 2:
                both = [waiting.pop(), waiting.pop()]
                upstream, asking = await asyncio.open_connection(place.hostname, place.port)
                line = b"POST /v1/completions HTTP/1.1\r\nHost: engine\r\nContent-Type: application/json\r\n"
                asking.write(line + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % length + body)
                while data := await upstream.read(65536):
                    for one in both:
                        one.write(data)
                asking.close()
                for one in both:
                    one.close()

    async def quiet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            await serve(reader, writer)

    server = await asyncio.start_server(quiet, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def mean(values: Iterable[float]) -> float:
    """Geometric."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def told(label: str, ratios: list[float]) -> str:
    """The mean with its error."""
    logs = [math.log(value) for value in ratios]
    centre = sum(logs) / len(logs)
    error = math.sqrt(sum((value - centre) ** 2 for value in logs) / max(1, len(logs) - 1) / len(logs))
    return (
        f"    {label} tokens/s: geometric mean {math.exp(centre):.4f} of {len(logs)} ratios "
        f"(standard error {100 * error:.2f} %; target 0.99 to 1.01)"
    )


async def compare(url: str, tokens: int, quads: int) -> list[str]:
    """One engine, both ways: a line a prompt and the geometric means."""
    from specdemo.core.events import Side
    from specdemo.engines.client import VllmEngine

    engine = VllmEngine(Side.STANDARD, url, poll_hz=0.0)
    facts = await engine.facts()
    child = Peer(url, facts.model)
    lines = [f"  {'speculative' if facts.speculating else 'standard'} engine, vLLM {facts.version}:"]
    turns: list[Seen] = []
    try:
        for _ in range(2):
            await ours(engine, PROMPTS[0], 16)
            await child.ask(PROMPTS[0], 16)
        for prompt in PROMPTS:
            mine, theirs = [], []
            for _ in range(quads):
                mine.append(await ours(engine, prompt, tokens))
                theirs += [await child.ask(prompt, tokens), await child.ask(prompt, tokens)]
                mine.append(await ours(engine, prompt, tokens))
            rates = [mean(one.decode for one in side) for side in (mine, theirs)]
            whole = [mean(one.output for one in side) for side in (mine, theirs)]
            turns.append(Seen(rates[0] / rates[1], whole[0] / whole[1]))
            lines.append(
                f"    turns, {prompt[:40]!r}: specdemo {rates[0]:.2f}, vLLM's client {rates[1]:.2f} decode tokens/s: "
                f"{turns[-1].decode:.4f}; {whole[0]:.2f} and {whole[1]:.2f} output tokens/s: {turns[-1].output:.4f}"
            )
        lines.append(told("turns, decode", [one.decode for one in turns]))
        lines.append(told("turns, output", [one.output for one in turns]))
        lines.append(told("one stream, decode", await shared(url, facts.model, tokens, quads)))
    finally:
        child.child.kill()
        await engine.aclose()
    return lines


async def shared(url: str, model: str, tokens: int, quads: int) -> list[float]:
    """Both clients on the same streams, each in its own process; a ratio a stream.

    Only of decoding: the relay holds the first request until the second has come.
    """
    from specdemo.core.events import Side
    from specdemo.engines.client import VllmEngine

    ratios = []
    async with relay(url) as address:
        engine, child = VllmEngine(Side.STANDARD, address, model=model, poll_hz=0.0), Peer(address, model)
        try:
            await asyncio.gather(ours(engine, PROMPTS[0], 16), child.ask(PROMPTS[0], 16))
            for prompt in PROMPTS * quads:
                mine, theirs = await asyncio.gather(ours(engine, prompt, tokens), child.ask(prompt, tokens))
                ratios.append(mine.decode / theirs.decode)
        finally:
            child.child.kill()
            await engine.aclose()
    return ratios


async def main() -> None:
    """All engines, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--quads", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    order = "turns of ours, theirs, theirs, ours, then as many streams for both"
    lines = [f"Fidelity: {len(PROMPTS)} prompts, {options.tokens} tokens, {options.quads} {order} ({machine()})"]
    for url in options.urls:
        lines += await compare(url, options.tokens, options.quads)
    report("client_fidelity", lines, write=options.write)


if __name__ == "__main__":
    run_own(main())
