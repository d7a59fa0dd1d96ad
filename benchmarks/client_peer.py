"""vLLM's own bench client (aiohttp), to be compared with ours. Runs in the engine environment, never in the app's.

    python benchmarks/client_peer.py feed URL STREAMS CHUNKS      a round for each line on stdin → {"cpu_s"}
    python benchmarks/client_peer.py stamps URL STREAMS CHUNKS    → {"errors_ms": […]}
    python benchmarks/client_peer.py ask URL MODEL    prompts on stdin, a line each → {"tokens", "ttft_s", "e2el_s"}

It calls ``async_request_openai_completions`` of ``vllm.benchmarks``, the function that ``vllm bench serve`` uses.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time

import aiohttp
from vllm.benchmarks.lib.endpoint_request_func import (
    RequestFuncInput,
    RequestFuncOutput,
    async_request_openai_completions,
)

logging.disable(logging.WARNING)


def session() -> aiohttp.ClientSession:
    """As ``vllm bench serve`` makes it, for any number of streams."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), trust_env=True)


async def ask(http: aiohttp.ClientSession, url: str, model: str, prompt: object, tokens: int) -> RequestFuncOutput:
    """One request; raises on failure."""
    found = await async_request_openai_completions(
        RequestFuncInput(
            prompt=prompt,
            api_url=f"{url}/v1/completions",
            prompt_len=1,
            output_len=tokens,
            model=model,
            ignore_eos=True,
            extra_body={"temperature": 0.0, "return_token_ids": True},
        ),
        http,
    )
    if not found.success:
        raise RuntimeError(found.error)
    return found


async def feed(url: str, streams: int, chunks: int) -> None:
    """Processor time for many streams at once: one round for each line on stdin."""
    async with session() as http:
        await ask(http, url, "smollm2", "warm up", 5)
        print(json.dumps({"ready": True}), flush=True)
        while await asyncio.to_thread(sys.stdin.readline):
            start = time.process_time()
            await asyncio.gather(*(ask(http, url, "smollm2", "x", chunks) for _ in range(streams)))
            print(json.dumps({"cpu_s": time.process_time() - start}), flush=True)


async def stamps(url: str, streams: int, chunks: int) -> None:
    """Arrival stamps against the times that the server wrote into the text."""
    async with session() as http:
        found = await asyncio.gather(*(ask(http, url, "smollm2", "x", chunks) for _ in range(streams)))
    errors = []
    for one in found:
        at = one.start_time + one.ttft
        sent = [float(word) for word in one.generated_text.split()]
        arrived = [at]
        for gap in one.itl:
            arrived.append(arrived[-1] + gap)
        errors += [(seen - was) * 1000 for seen, was in zip(arrived, sent, strict=True)]
    print(json.dumps({"errors_ms": errors}))


async def answer(url: str, model: str) -> None:
    """One prompt after the other, as they are given."""
    async with session() as http:
        while line := await asyncio.to_thread(sys.stdin.readline):
            order = json.loads(line)
            found = await ask(http, url, model, order["prompt"], order["tokens"])
            print(
                json.dumps({"tokens": found.output_tokens, "ttft_s": found.ttft, "e2el_s": found.latency}), flush=True
            )


if __name__ == "__main__":
    role, address, *rest = sys.argv[1:]
    if role == "ask":
        asyncio.run(answer(address, rest[0]))
    else:
        asyncio.run({"feed": feed, "stamps": stamps}[role](address, int(rest[0]), int(rest[1])))
