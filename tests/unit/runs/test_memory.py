"""Memory over many runs."""

from __future__ import annotations

import gc
import tracemalloc

from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan
from specdemo.runs.registry import Bounds, Registry
from tests.fakes.engines import pair


async def test_memory_does_not_grow_with_the_number_of_runs() -> None:
    """After 1,000 runs the process holds no more than 5 % above what it held after 100."""
    engines = pair()
    runs = Registry(lambda: engines, bounds=Bounds(kept_runs=64))
    tracemalloc.start()
    try:
        held = []
        for count in (100, 900):
            for _ in range(count):
                await runs.finished(runs.start(RunPlan(chat("hello"), warmup=False)))
                for engine in engines.values():  # the fakes remember every request, which is theirs to forget
                    engine.prompts.clear()
                    engine.salts.clear()
                    engine.journal.clear()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()

    assert held[1] <= 1.05 * held[0]
    assert len(runs) <= 64
