"""The same warm-up for both sides: an engine's first requests compile and allocate, and belong in no number."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace

from specdemo.core.events import Event, Failed, Side, Tokens
from specdemo.core.prompt import Message, Prompt, Sampling
from specdemo.errors import EngineError
from specdemo.runs.ports import Clock, Engine
from specdemo.runs.streams import closing

REQUESTS = 2
TOKENS = 16
LIMIT_S = 120.0
"""Longest time that one warm-up request may take; what is slower than that is not warmed by waiting."""
SENTENCE = f"Warm-up, left out of every number: {REQUESTS} requests of up to {TOKENS} tokens."

# A text of its own: warming up with the run's prompt would fill the caches of methods that learn from earlier output.
_TEXT = "Count from one to twenty, then say which of these numbers are even: one two three four one two three four."


class Warmth:
    """Which engines are warm. One per deployment, so that only the first run on a fresh engine waits.

    An engine process is known by its counters' epoch, so a restarted engine is cold again.
    """

    def __init__(self) -> None:
        self._warm: set[tuple[int, float | None, bool, bool]] = set()

    async def ensure(
        self, engines: Iterable[Engine], prompt: Prompt, *, clock: Clock, together: bool, always: bool
    ) -> frozenset[Side]:
        """Warm up what is cold (``always``: everything) and return the sides of the engines that were warmed.

        ``together`` warms the engines at the same time. Failures are left to the run itself to report.
        """
        distinct = list({id(engine): engine for engine in engines}.values())
        keys = [await _key(engine, prompt) for engine in distinct]
        cold = [(engine, key) for engine, key in zip(distinct, keys, strict=True) if always or key not in self._warm]
        if not cold:
            return frozenset()
        if together:
            results = await asyncio.gather(*(_warm(engine, prompt, clock) for engine, _ in cold))
        else:
            results = [await _warm(engine, prompt, clock) for engine, _ in cold]
        for (_, key), warmed in zip(cold, results, strict=True):
            if warmed:
                self._warm.add(key)
        return frozenset(engine.side for engine, _ in cold)


async def _key(engine: Engine, prompt: Prompt) -> tuple[int, float | None, bool, bool]:
    try:
        counters = await engine.counters()
    except EngineError:
        counters = None
    return (id(engine), counters.epoch if counters else None, prompt.is_chat, prompt.logprobs is not None)


async def _warm(engine: Engine, prompt: Prompt, clock: Clock) -> bool:
    """Whether all warm-up requests came through."""
    sampling = Sampling(max_tokens=min(TOKENS, prompt.sampling.max_tokens), ignore_eos=True)
    trial = Prompt(
        messages=(Message("user", _TEXT),) if prompt.is_chat else (),
        text=None if prompt.is_chat else _TEXT,
        sampling=replace(sampling, temperature=prompt.sampling.temperature, seed=prompt.sampling.seed),
        logprobs=prompt.logprobs,
    )
    for _ in range(REQUESTS):
        try:
            async with asyncio.timeout(LIMIT_S):
                if not await _one(engine.stream(trial, zero=clock(), cache_salt=secrets.token_hex(16))):
                    return False
        except TimeoutError:
            return False
    return True


async def _one(stream: AsyncIterator[Event]) -> bool:
    """Read one warm-up request; a server that ignores the token limit is cut off."""
    count = 0
    async with closing(stream) as events:
        async for event in events:
            if isinstance(event, Failed):
                return False
            if isinstance(event, Tokens):
                count += len(event.ids) or 1
                if count > 2 * TOKENS:
                    return True
    return True
