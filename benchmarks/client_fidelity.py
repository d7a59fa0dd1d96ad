"""Decode tokens/s seen by specdemo over those seen by vLLM's own bench client, on one engine. Target 0.99 to 1.01.

    python benchmarks/client_fidelity.py http://127.0.0.1:8101 [URL …] [--tokens 128] [--quads 2] [--write]

For each engine and prompt the clients take turns (ours, theirs, theirs, ours), one request at a time. Both
compute decode tokens/s = (tokens - 1) / (last token chunk - first token chunk). The engines should be idle otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import os
import subprocess
import time
from typing import Any

from client_common import PEER, engine_python, machine, report, run_own

PROMPTS = [
    "List the days of the week, then list them again three times.",
    "def fibonacci(n):\n    ",
    "Once upon a time there was a small town by the sea.",
    "1, 2, 3, 4, 5, 6, 7, 8,",
]


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

    async def ask(self, prompt: str, tokens: int) -> float:
        """Decode tokens/s as it sees them."""
        found = await asyncio.to_thread(self._ask, {"prompt": prompt, "tokens": tokens})
        return (found["tokens"] - 1) / (found["e2el_s"] - found["ttft_s"])

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


async def ours(engine: Any, prompt: str, tokens: int) -> float:
    """Decode tokens/s as specdemo sees them."""
    from specdemo.core.events import Finished, Tokens
    from specdemo.core.prompt import Prompt, Sampling

    asked = Prompt(text=prompt, sampling=Sampling(max_tokens=tokens, ignore_eos=True))
    events = [event async for event in engine.stream(asked, zero=time.monotonic())]
    assert isinstance(events[-1], Finished), events[-1]
    chunks = [event for event in events if isinstance(event, Tokens) and event.ids]
    return (sum(len(event.ids) for event in chunks) - 1) / (chunks[-1].at - chunks[0].at)


async def compare(url: str, tokens: int, quads: int) -> list[str]:
    """One engine: a line a prompt and the geometric mean."""
    from specdemo.core.events import Side
    from specdemo.engines.client import VllmEngine

    engine = VllmEngine(Side.STANDARD, url, poll_hz=0.0)
    facts = await engine.facts()
    child = Peer(url, facts.model)
    lines, logs = [f"  {'speculative' if facts.speculating else 'standard'} engine, vLLM {facts.version}:"], []
    try:
        for _ in range(2):
            await ours(engine, PROMPTS[0], 16)
            await child.ask(PROMPTS[0], 16)
        for prompt in PROMPTS:
            pairs = []
            for _ in range(quads):
                first, second = await ours(engine, prompt, tokens), await child.ask(prompt, tokens)
                third, fourth = await child.ask(prompt, tokens), await ours(engine, prompt, tokens)
                pairs.append((math.sqrt(first * fourth), math.sqrt(second * third)))
            mine, theirs = (math.exp(sum(math.log(pair[side]) for pair in pairs) / quads) for side in (0, 1))
            logs.append(math.log(mine / theirs))
            lines.append(
                f"    {prompt[:40]!r}: specdemo {mine:.2f}, vLLM's client {theirs:.2f} tokens/s: {mine / theirs:.4f}"
            )
        mean = sum(logs) / len(logs)
        spread = math.sqrt(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1) / len(logs))
        lines.append(
            f"    geometric mean {math.exp(mean):.4f} (standard error {100 * spread:.2f} %; target 0.99 to 1.01)"
        )
    finally:
        child.child.kill()
        await engine.aclose()
    return lines


async def main() -> None:
    """All engines, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("urls", nargs="+")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--quads", type=int, default=2)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    order = "quads of ours, theirs, theirs, ours"
    lines = [f"Fidelity: {len(PROMPTS)} prompts, {options.tokens} tokens, {options.quads} {order} ({machine()})"]
    for url in options.urls:
        lines += await compare(url, options.tokens, options.quads)
    report("client_fidelity", lines, write=options.write)


if __name__ == "__main__":
    run_own(main())
