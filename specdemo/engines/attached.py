"""Two engines that somebody else runs: asked how they are, never started or stopped. Fulfils ``EngineControl``."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass

from specdemo.core.engine import EngineState, EngineStatus
from specdemo.core.events import SIDES, Side
from specdemo.core.sentences import sentence
from specdemo.engines.probe import Probe
from specdemo.engines.wire.fields import excerpt
from specdemo.errors import UsageError


@dataclass(frozen=True, slots=True)
class Target:
    """One attached engine: ``shown_url`` is free of keys, ``model`` None accepts the first one that it lists."""

    side: Side
    shown_url: str
    probe: Probe
    model: str | None = None


class AttachedControl:
    """Looks at both engines every ``interval_s`` while it is open; ``statuses`` returns the last look."""

    def __init__(
        self,
        standard: Target,
        speculative: Target,
        *,
        interval_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._targets = {Side.STANDARD: standard, Side.SPECULATIVE: speculative}
        self._interval_s, self._clock = interval_s, clock
        self._since = dict.fromkeys(SIDES, clock())
        self._last = {
            side: EngineStatus(side, EngineState.LOADING, managed=False, stage="first look", base_url=target.shown_url)
            for side, target in self._targets.items()
        }
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start looking; the first look is over when this returns."""
        await self.look()
        self._task = asyncio.create_task(self._keep_looking(), name="attached engines")

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        for target in self._targets.values():
            await target.probe.aclose()

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        """Standard first. Never blocks."""
        return self._timed(Side.STANDARD), self._timed(Side.SPECULATIVE)

    async def start(self, side: Side) -> None:
        raise UsageError(f"The {side.value} engine is attached by its URL: start it where it runs.")

    async def stop(self, side: Side) -> None:
        raise UsageError(f"The {side.value} engine is attached by its URL: stop it where it runs.")

    async def restart(self, side: Side) -> None:
        raise UsageError(f"The {side.value} engine is attached by its URL: restart it where it runs.")

    async def look(self) -> None:
        """One look at both, at the same time."""
        await asyncio.gather(*(self._look(side) for side in SIDES))

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self.look()

    async def _look(self, side: Side) -> None:
        target, before = self._targets[side], self._last[side]
        health = await target.probe.health()
        models = await target.probe.models() if health != "silent" else None
        version = (before.version or await target.probe.version()) if models else before.version
        state, error = _judge(target, health, models, was_ready=before.state in (EngineState.READY, EngineState.DEAD))
        if state is not before.state:
            self._since[side] = self._clock()
        self._last[side] = EngineStatus(
            side,
            state,
            managed=False,
            error=error,
            base_url=target.shown_url,
            model=target.model or (models[0] if models else before.model),
            version=version,
        )

    def _timed(self, side: Side) -> EngineStatus:
        last = self._last[side]
        return EngineStatus(
            side,
            last.state,
            managed=False,
            stage=last.stage,
            seconds=max(0.0, self._clock() - self._since[side]),
            error=last.error,
            base_url=last.base_url,
            model=last.model,
            version=last.version,
        )


def _judge(
    target: Target, health: str, models: tuple[str, ...] | None, *, was_ready: bool
) -> tuple[EngineState, str | None]:
    """Servers other than vLLM may have no /health: a list of models is enough unless /health says 5xx."""
    down = EngineState.DEAD if was_ready else EngineState.FAILED
    if health == "silent":
        return down, sentence("attached_silent", where=target.shown_url)
    if health == "dead":  # vLLM still lists its models then
        return down, sentence("attached_gone", where=target.shown_url)
    if models is None:
        return down, sentence("attached_no_list", where=target.shown_url)
    if target.model is not None and target.model not in models:
        known = ", ".join(excerpt(model, 80) for model in models[:5]) or "none"
        return down, sentence("attached_model", wanted=target.model, known=known)
    return EngineState.READY, None
