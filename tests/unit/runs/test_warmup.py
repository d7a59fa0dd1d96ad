"""The warm-up: short even on servers that ignore limits, and never the cause of a failure."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from specdemo.core.events import SIDES
from specdemo.core.prompt import chat
from specdemo.errors import EngineError
from specdemo.runs import warmup
from specdemo.runs.warmup import Warmth
from tests.fakes.engines import FakeEngine, pair

STD, SPEC = SIDES


async def warm(engines: dict[object, FakeEngine], warmth: Warmth | None = None) -> frozenset[object]:
    one = engines[STD]
    return await (warmth or Warmth()).ensure([one], chat("x"), clock=one.clock, together=False, always=False)


async def test_server_that_ignores_the_limit_is_cut_off() -> None:
    """A server that sends thousands of tokens for sixteen is cut off, and counts as warm."""
    engines = pair()
    engines[STD].bursts = [(token,) for token in range(5000)]
    clock = engines[STD].clock
    before = clock.now

    assert await warm(engines) == {STD}
    assert engines[STD].open_streams == 0
    assert (clock.now - before) / clock.step < 200


@pytest.mark.parametrize("failure", [("rejected", "no"), ("stalled", "silent")])
async def test_failed_warm_up_is_tried_again(failure: tuple[str, str]) -> None:
    """An engine that failed its warm-up is not called warm: the next run tries again."""
    engines, warmth = pair(), Warmth()
    engines[STD].failure = failure
    await warm(engines, warmth)
    asked = len(engines[STD].prompts)
    engines[STD].failure = None

    assert await warm(engines, warmth) == {STD}
    assert await warm(engines, warmth) == frozenset()
    assert asked == 1


async def test_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent engine holds the warm-up no longer than its limit."""
    engines = pair()
    engines[STD].hold = asyncio.Event()
    monkeypatch.setattr(warmup, "LIMIT_S", 0.02)
    await warm(engines)

    assert (engines[STD].open_streams, len(engines[STD].prompts)) == (0, 1)


async def test_engine_without_counters_is_warmed_once() -> None:
    """Where /metrics fails the engine object itself is what is remembered."""
    engines, warmth = pair(), Warmth()

    async def refused() -> None:
        raise EngineError("no metrics")

    engines[STD].counters = refused  # type: ignore[method-assign, assignment]

    assert await warm(engines, warmth) == {STD}
    assert await warm(engines, warmth) == frozenset()


async def test_one_engine_for_both_sides_is_warmed_once() -> None:
    """A control's only engine is warmed as one."""
    engines = pair()
    one = engines[STD]
    await Warmth().ensure([one, one], chat("x"), clock=one.clock, together=True, always=True)

    assert len(one.prompts) == warmup.REQUESTS
    assert replace(one.prompts[0]) == one.prompts[1]
