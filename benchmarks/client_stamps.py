"""How wrong arrival stamps are at 128 concurrent streams, 20 ms apart; vLLM's own bench client beside it.

    python benchmarks/client_stamps.py [--rounds 3] [--streams 128] [--chunks 150] [--write]

The scripted engine writes its own clock into each chunk as it sends it (the machine has one monotonic clock), so
stamp minus text is everything between the engine's send and the client's stamp. The run is good when the 99th
percentile is under 5 ms, or when the client says itself that it was overloaded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path

from client_common import machine, own, peer, percentile, report, run_own, scripted


async def stamps(url: str, streams: int, chunks: int) -> None:
    """Our half."""
    from specdemo.core.events import Event, Noted, Side, Tokens
    from specdemo.core.prompt import Prompt, Sampling
    from specdemo.engines.client import VllmEngine

    engine = VllmEngine(Side.STANDARD, url, model="smollm2", poll_hz=0.0)
    assert time.get_clock_info("monotonic").implementation == "clock_gettime(CLOCK_MONOTONIC)"

    async def read() -> list[Event]:
        prompt = Prompt(text="x", sampling=Sampling(max_tokens=chunks, ignore_eos=True))
        return [event async for event in engine.stream(prompt, zero=0.0)]

    heard = await asyncio.gather(*(read() for _ in range(streams)))
    found = [event for events in heard for event in events]
    await engine.aclose()
    errors = [(event.at - float(event.text)) * 1000 for event in found if isinstance(event, Tokens) and event.text]
    flagged = sum(any(isinstance(event, Noted) and event.kind == "overloaded" for event in one) for one in heard)
    print(json.dumps({"errors_ms": errors, "flagged": flagged}))


def main() -> None:
    """Run the rounds and print percentiles and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--streams", type=int, default=128)
    parser.add_argument("--chunks", type=int, default=150)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--own", nargs=3)
    options = parser.parse_args()
    if options.own:
        run_own(stamps(options.own[0], int(options.own[1]), int(options.own[2])))
        return
    lines = [f"Arrival stamps: {options.streams} streams, {options.chunks} chunks each, 20 ms apart ({machine()})"]
    script = {"reply": {"step_s": 0.02, "stamp": True}}
    good = True
    with tempfile.TemporaryDirectory() as folder, scripted(script, Path(folder)) as url:
        for turn in range(options.rounds):
            mine = own(__file__, url, options.streams, options.chunks)
            other = peer("stamps", url, options.streams, options.chunks)
            ours, theirs = (percentile(found["errors_ms"], 0.99) for found in (mine, other))
            good = good and (ours < 5 or mine["flagged"] > 0)
            lines.append(
                f"  round {turn + 1}: specdemo p50 {percentile(mine['errors_ms'], 0.5):.2f} ms, p99 {ours:.2f} ms, "
                f"flagged as overloaded: {mine['flagged']} of {options.streams} streams; vLLM's client p50 "
                f"{percentile(other['errors_ms'], 0.5):.2f} ms, p99 {theirs:.2f} ms; p99 ratio {ours / theirs:.2f}"
            )
    lines.append(f"  every round under 5 ms at p99 or flagged: {'yes' if good else 'NO'}")
    report("client_stamps", lines, write=options.write)


if __name__ == "__main__":
    main()
