"""Chunks parsed per CPU second: our client beside vLLM's own bench client, on one scripted feed.

    python benchmarks/client_capacity.py [--rounds 5] [--streams 64] [--chunks 200] [--write]

A scripted engine (its own process) sends every stream a chunk each 20 ms, as a busy server does. Both clients read all
streams to the end; only their processor time counts. Rounds alternate; the ratio is taken inside each round.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from client_common import machine, median, own, peer, report, scripted


async def feed(url: str, streams: int, chunks: int) -> None:
    """Our half: the client as the app uses it, from the network to events."""
    from specdemo.core.events import Side, Tokens
    from specdemo.core.prompt import Prompt, Sampling
    from specdemo.engines.client import VllmEngine

    engine = VllmEngine(Side.STANDARD, url, model="smollm2", poll_hz=0.0)

    async def read(count: int) -> int:
        prompt = Prompt(text="x", sampling=Sampling(max_tokens=count, ignore_eos=True))
        return sum([isinstance(event, Tokens) async for event in engine.stream(prompt, zero=0.0)])

    await read(5)
    start = time.process_time()
    seen = await asyncio.gather(*(read(chunks) for _ in range(streams)))
    cpu = time.process_time() - start
    assert seen == [chunks] * streams
    await engine.aclose()
    print(json.dumps({"cpu_s": cpu, "chunks": streams * chunks}))


def main() -> None:
    """Run the rounds and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--chunks", type=int, default=200)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--own", nargs=3)
    options = parser.parse_args()
    if options.own:
        asyncio.run(feed(options.own[0], int(options.own[1]), int(options.own[2])))
        return
    lines = [f"Client capacity: {options.streams} streams, {options.chunks} chunks each, 20 ms apart ({machine()})"]
    ratios, ours, theirs = [], [], []
    script = {"reply": {"step_s": 0.02}}
    with tempfile.TemporaryDirectory() as folder, scripted(script, Path(folder)) as url:
        for turn in range(options.rounds):
            halves = {}
            for who in ("own", "peer") if turn % 2 == 0 else ("peer", "own"):
                run = own if who == "own" else peer
                first = [__file__] if who == "own" else ["feed"]
                found = run(*first, url, options.streams, options.chunks)
                halves[who] = found["chunks"] / found["cpu_s"]
            ratios.append(halves["own"] / halves["peer"])
            ours.append(halves["own"])
            theirs.append(halves["peer"])
            lines.append(
                f"  round {turn + 1}: specdemo {halves['own']:,.0f}, vLLM's client {halves['peer']:,.0f} chunks "
                f"per CPU second: {ratios[-1]:.2f}x"
            )
    lines.append(
        f"  median: specdemo {median(ours):,.0f}, vLLM's client {median(theirs):,.0f}: {median(ratios):.2f}x "
        "(target at least 1.5x)"
    )
    report("client_capacity", lines, write=options.write)


if __name__ == "__main__":
    main()
