"""Chunks parsed per CPU second: our client beside vLLM's own bench client, on one scripted feed.

    python benchmarks/client_capacity.py [--rounds 6] [--streams 64] [--chunks 250] [--write]

A scripted engine (its own process) sends every stream a chunk each 20 ms, as a busy server does: one token a chunk,
in the form of vLLM's plain completions with ``return_token_ids``. Both clients read all streams to the end, each on the
event loop that it has in use: ``specdemo bench`` runs on uvloop, ``vllm bench serve`` on asyncio's own. Only the
processor time of the client's process counts, kernel time included; the ratio is taken inside the round. Three ways,
each told by itself:

- *at once*: both clients read at the same time, so that whatever else the machine does meets both alike;
- *alone*: one after the other, as a benchmark client is used, the order turned each round;
- *saturated*: one after the other, from an engine that sends as fast as the client reads (an HTTP chunk a token all the
  same), so that the client itself is the limit; a read then brings many chunks.

vLLM's client parses the JSON and keeps the text and a time a chunk. Ours checks every field, gives an event with stamp,
token ids, text and the text of each token, holds limits and deadlines, and watches its own lateness meanwhile.

The bare reader shows what no client on asyncio's own loop can beat: a protocol that takes bytes and decodes nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from client_common import PEER, ROOT, engine_python, machine, median, report, run_own, scripted


async def feed(url: str, streams: int, chunks: int) -> None:
    """Our half: the client as the app uses it, from the network to events; a round for each line on stdin."""
    from specdemo.core.events import Side, Tokens
    from specdemo.core.prompt import Prompt, Sampling
    from specdemo.engines.client import VllmEngine

    engine = VllmEngine(Side.STANDARD, url, model="smollm2", poll_hz=0.0)

    async def read(count: int) -> int:
        prompt = Prompt(text="x", sampling=Sampling(max_tokens=count, ignore_eos=True))
        return sum([isinstance(event, Tokens) async for event in engine.stream(prompt, zero=0.0)])

    await read(5)
    print(json.dumps({"ready": True}), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        start = time.process_time()
        seen = await asyncio.gather(*(read(chunks) for _ in range(streams)))
        print(json.dumps({"cpu_s": time.process_time() - start}), flush=True)
        assert seen == [chunks] * streams
    await engine.aclose()


class Bare(asyncio.BufferedProtocol):
    """Asks, and reads until the last HTTP chunk; ``done`` gets nothing but the end."""

    def __init__(self, message: bytes, done: asyncio.Future[None]) -> None:
        self._message = message
        self._done = done
        self._buffer = bytearray(32 * 1024)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._message)

    def get_buffer(self, _sizehint: int) -> bytearray:
        """Where the bytes go."""
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        """They are not looked at but for the end."""
        if self._buffer[nbytes - 5 : nbytes] == b"0\r\n\r\n":
            self._done.set_result(None)
            self._transport.abort()


async def bare(url: str, streams: int, chunks: int) -> None:
    """Processor time of reading alone; a round for each line on stdin."""
    loop, place = asyncio.get_running_loop(), urlsplit(url)
    assert place.hostname is not None
    assert place.port is not None
    asked = {"model": "smollm2", "prompt": "x", "max_tokens": chunks, "stream": True, "return_token_ids": True}
    body = json.dumps({**asked, "stream_options": {"include_usage": True}}).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nhost: {place.netloc}\r\ncontent-length: {len(body)}\r\n\r\n"
    print(json.dumps({"ready": True}), flush=True)
    while await asyncio.to_thread(sys.stdin.readline):
        start = time.process_time()
        ends: list[asyncio.Future[None]] = [loop.create_future() for _ in range(streams)]
        for end in ends:
            await loop.create_connection(partial(Bare, head.encode() + body, end), place.hostname, place.port)
        await asyncio.gather(*ends)
        print(json.dumps({"cpu_s": time.process_time() - start}), flush=True)


class Half:
    """One client as a child that runs a round when told to."""

    def __init__(self, command: list[str]) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )
        self.result()

    def go(self) -> None:
        """Start a round."""
        assert self._child.stdin is not None
        self._child.stdin.write("go\n")
        self._child.stdin.flush()

    def result(self) -> dict[str, Any]:
        """Wait for what it says next."""
        assert self._child.stdout is not None
        while line := self._child.stdout.readline():
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise RuntimeError("a client ended early")

    def end(self) -> None:
        """No more rounds."""
        self._child.kill()
        self._child.wait()


def _round(half: Half) -> float:
    """CPU seconds of one round."""
    half.go()
    found: float = half.result()["cpu_s"]
    return found


def main() -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--chunks", type=int, default=250)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--own", nargs=3)
    parser.add_argument("--bare", nargs=3)
    options = parser.parse_args()
    if role := options.own or options.bare:
        place, sizes = role[0], (int(role[1]), int(role[2]))
        if options.own:
            run_own(feed(place, *sizes))
        else:
            asyncio.run(bare(place, *sizes))
        return
    lines = [
        f"Client capacity: {options.streams} streams, {options.chunks} chunks each, 20 ms apart ({machine()})",
        "  one token a chunk as vLLM sends it; specdemo on uvloop, vLLM's client on asyncio; CPU time, kernel included",
    ]
    total = options.streams * options.chunks
    sizes = [str(options.streams), str(options.chunks)]
    found: dict[str, list[float]] = {"at once": [], "alone": [], "saturated": []}
    with (
        tempfile.TemporaryDirectory() as paced,
        tempfile.TemporaryDirectory() as full,
        scripted({"reply": {"step_s": 0.02}}, Path(paced)) as url,
        scripted({"reply": {"step_s": 0.0, "wire": {"flood": True}}}, Path(full)) as flood,
    ):
        halves = [
            [
                Half([sys.executable, __file__, "--own", one, *sizes]),
                Half([engine_python(), str(PEER), "feed", one, *sizes]),
            ]
            for one in (url, flood)
        ]
        reader = Half([sys.executable, __file__, "--bare", url, *sizes])
        try:
            for turn in range(options.rounds):
                for half in halves[0]:
                    half.go()
                spent = {"at once": [half.result()["cpu_s"] for half in halves[0]]}
                for way, pair in zip(("alone", "saturated"), halves, strict=True):
                    order = (0, 1) if turn % 2 == 0 else (1, 0)
                    costs = {index: _round(pair[index]) for index in order}
                    spent[way] = [costs[0], costs[1]]
                for way, (ours, theirs) in spent.items():
                    found[way].append(theirs / ours)
                    lines.append(
                        f"  round {turn + 1}, {way}: specdemo {total / ours:,.0f}, vLLM's client "
                        f"{total / theirs:,.0f} chunks per CPU second: {theirs / ours:.2f}x"
                    )
            floor = total / median([_round(reader) for _ in range(3)])
        finally:
            for half in [*halves[0], *halves[1], reader]:
                half.end()
    for way, ratios in found.items():
        lines.append(f"  {way}: median of the ratios {median(ratios):.2f}x (target at least 1.5x)")
    lines.append(f"  a bare reader that decodes nothing, alone on the paced feed: {floor:,.0f} chunks per CPU second")
    report("client_capacity", lines, write=options.write)


if __name__ == "__main__":
    main()
