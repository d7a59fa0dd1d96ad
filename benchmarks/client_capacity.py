"""Chunks parsed per CPU second: our client beside vLLM's own bench client, on one scripted feed.

    python benchmarks/client_capacity.py [--rounds 6] [--streams 64] [--chunks 250] [--write]

A scripted engine (its own process) sends every stream a chunk each 20 ms, as a busy server does. Both clients read all
streams to the end; only their processor time counts. In each round both run at the same time, so that whatever else the
machine does meets both alike; the ratio is taken inside the round.
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
from pathlib import Path
from typing import Any

from client_common import PEER, ROOT, engine_python, machine, median, report, scripted


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


def main() -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--chunks", type=int, default=250)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--own", nargs=3)
    options = parser.parse_args()
    if options.own:
        asyncio.run(feed(options.own[0], int(options.own[1]), int(options.own[2])))
        return
    lines = [f"Client capacity: {options.streams} streams, {options.chunks} chunks each, 20 ms apart ({machine()})"]
    ratios: list[float] = []
    total = options.streams * options.chunks
    sizes = [str(options.streams), str(options.chunks)]
    with tempfile.TemporaryDirectory() as folder, scripted({"reply": {"step_s": 0.02}}, Path(folder)) as url:
        own = Half([sys.executable, __file__, "--own", url, *sizes])
        peer = Half([engine_python(), str(PEER), "feed", url, *sizes])
        try:
            for turn in range(options.rounds):
                own.go()
                peer.go()
                ours, theirs = (total / half.result()["cpu_s"] for half in (own, peer))
                ratios.append(ours / theirs)
                lines.append(
                    f"  round {turn + 1}: specdemo {ours:,.0f}, vLLM's client {theirs:,.0f} chunks per CPU second: "
                    f"{ratios[-1]:.2f}x"
                )
        finally:
            own.end()
            peer.end()
    lines.append(f"  median of the ratios {median(ratios):.2f}x (target at least 1.5x)")
    report("client_capacity", lines, write=options.write)


if __name__ == "__main__":
    main()
