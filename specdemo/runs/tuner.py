"""The speculative engine with one configuration after another, for a sweep; afterwards as it was before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from specdemo.core.choice import NONE, Picked
from specdemo.core.engine import EngineState, EngineStatus
from specdemo.core.sentences import sentence
from specdemo.errors import EngineUnavailable, UsageError
from specdemo.runs.ports import EngineControl, MethodControl

LOOK_S = 0.25
_OVER = (EngineState.FAILED, EngineState.DEAD, EngineState.STOPPED)


class MethodTuner:
    """Fulfils ``runs.jobs.Tuner`` over the page's own method switch. ``limit_s`` is the longest wait for an engine."""

    def __init__(
        self,
        method: MethodControl,
        control: EngineControl,
        *,
        limit_s: float = 900.0,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._method = method
        self._control = control
        self._limit_s = limit_s
        self._sleep = sleep
        self._before: Picked | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """What can work here; empty until the engines were prepared."""
        found = self._method.switching()
        return tuple(c.name for c in found.choices if c.reason is None and c.name != NONE) if found else ()

    async def speculate(self, method: str | None, k: int | None) -> None:
        """Restart with this choice and wait until it is ready; two None bring back what ran at first."""
        found = self._method.switching()
        if found is None:
            raise EngineUnavailable("The engines are still being prepared; try again when they are ready.")
        current = found.current
        if method is None and k is None:
            wanted, self._before = self._before, None
            if wanted is None:
                return
        else:
            self._before = self._before or current
            wanted = Picked(method or self._before.name, k=k)
        if wanted.name == NONE and method is None and k is not None:
            raise UsageError(
                "The engine runs without speculation, so there is no draft length to change; name a method."
            )
        if (wanted.name, wanted.k) != (current.name, current.k) or self._status().state is not EngineState.READY:
            await self._method.switch(wanted.name, wanted.k)
        await self._ready()

    async def _ready(self) -> None:
        waited = 0.0
        while (status := self._status()).state is not EngineState.READY:
            if status.state in _OVER:
                raise EngineUnavailable(f"The speculative engine did not start: {status.error or status.state.value}.")
            if waited >= self._limit_s:
                raise EngineUnavailable(sentence("engine_not_ready", side="speculative", seconds=f"{self._limit_s:g}"))
            await self._sleep(LOOK_S)
            waited += LOOK_S

    def _status(self) -> EngineStatus:
        return self._control.statuses()[1]
