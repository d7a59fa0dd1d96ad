"""A sweep's way to change the speculative engine, and back."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from specdemo.core.choice import Choice, Picked, Switching
from specdemo.core.engine import EngineState, EngineStatus
from specdemo.core.events import Side
from specdemo.errors import EngineUnavailable, UsageError
from specdemo.runs.tuner import MethodTuner


@dataclass
class Engine:
    """A switch and a panel over one imagined engine; it is ready after ``slow`` looks, or ends in ``ends``."""

    current: Picked = field(default_factory=lambda: Picked("ngram", "ngram", 4))
    slow: int = 2
    ends: EngineState = EngineState.READY
    known: bool = True
    asked: list[tuple[str, int | None]] = field(default_factory=list)
    looks: int = 0

    def switching(self) -> Switching | None:
        choices = (Choice("ngram"), Choice("draft_model", reason="no draft is known"), Choice("none"))
        return Switching(self.current, None, choices) if self.known else None

    async def switch(self, name: str, k: int | None) -> None:
        self.asked.append((name, k))
        self.current, self.looks = Picked(name, name, k), self.slow

    async def restore(self) -> None:
        raise AssertionError("a sweep goes back by name")

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        self.looks -= 1
        state = EngineState.LOADING if self.looks > 0 else self.ends
        return EngineStatus(Side.STANDARD, EngineState.READY, True), EngineStatus(
            Side.SPECULATIVE, state, True, error="out of memory" if state is EngineState.FAILED else None
        )  # fmt: skip

    async def start(self, side: Side) -> None: ...

    async def stop(self, side: Side) -> None: ...

    async def restart(self, side: Side) -> None: ...


async def _at_once(seconds: float) -> None:
    return None


def tuner(engine: Engine, **more: float) -> MethodTuner:
    return MethodTuner(engine, engine, sleep=_at_once, **more)


async def test_settings_one_after_another_and_back() -> None:
    """Each restarts the engine, the one that runs already does not, and the end is as the beginning."""
    engine = Engine()
    changes = tuner(engine)
    for k in (2, 4, 8):
        await changes.speculate(None, k)
    await changes.speculate("ngram", 8)
    await changes.speculate(None, None)
    assert engine.asked == [("ngram", 2), ("ngram", 4), ("ngram", 8), ("ngram", 4)]
    await changes.speculate(None, None)
    assert len(engine.asked) == 4


async def test_methods_that_can_work_here() -> None:
    """What has a reason against it, or drafts nothing, is not offered."""
    assert tuner(Engine()).methods == ("ngram",)
    assert tuner(Engine(known=False)).methods == ()


@pytest.mark.parametrize(
    "engine, sentence",
    [
        (Engine(ends=EngineState.FAILED), "did not start: out of memory"),
        (Engine(slow=1000), "was not ready after 5 s"),
        (Engine(known=False), "still being prepared"),
    ],
)
async def test_what_goes_wrong_is_one_sentence(engine: Engine, sentence: str) -> None:
    """An engine that fails, is too slow or is not there yet."""
    with pytest.raises(EngineUnavailable, match=sentence):
        await tuner(engine, limit_s=5).speculate("ngram", 2)


async def test_no_draft_length_without_drafts() -> None:
    """Engines that do not speculate have no k to sweep; a method must be named."""
    with pytest.raises(UsageError, match="name a method"):
        await tuner(Engine(current=Picked("none"))).speculate(None, 2)
