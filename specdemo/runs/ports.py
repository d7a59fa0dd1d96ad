"""What the use cases need from the outside world, as Protocols. ``engines`` fulfils them without knowing them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

from specdemo.core.choice import Switching
from specdemo.core.engine import EngineFacts, EngineStatus
from specdemo.core.events import Event, ScoredToken, Side, SpecCounters, TopToken
from specdemo.core.prompt import Prompt

__all__ = ["Clock", "Engine", "EngineControl", "MethodControl", "ScoredToken"]

Clock = Callable[[], float]
"""Monotonic seconds; only differences mean anything."""


class Engine(Protocol):
    """One side, ready to be asked."""

    @property
    def side(self) -> Side: ...

    @property
    def model(self) -> str: ...

    def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        """One request as events, ``at`` relative to ``zero`` of the injected clock.

        Ends with exactly one Finished or Failed; never raises an EngineError. Closing the iterator
        (``aclose``) or cancelling closes the HTTP stream, and the engine aborts the request.
        """
        ...

    async def facts(self) -> EngineFacts:
        """What the engine says of itself. Raises EngineError if nobody answers."""
        ...

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        """Prompt token ids by the engine's own ``/tokenize``; None if it has no such route."""
        ...

    async def counters(self) -> SpecCounters | None:
        """One reading of /metrics; None if there is none."""
        ...

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        """Best next tokens after ``token_ids``, best first, with the ``wanted`` ids included where the engine can."""
        ...

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        """Teacher-force ``output_ids`` after ``prompt_ids`` (``prompt_logprobs``): one entry per output position."""
        ...


class EngineControl(Protocol):
    """The panel's view of both engines; ``start``/``stop``/``restart`` exist for managed ones only."""

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        """Standard first. Never blocks."""
        ...

    async def start(self, side: Side) -> None: ...

    async def stop(self, side: Side) -> None: ...

    async def restart(self, side: Side) -> None: ...


class MethodControl(Protocol):
    """Changes what the speculative engine of a managed pair speculates with; the standard engine stays up."""

    def switching(self) -> Switching | None:
        """What can be chosen and what runs; None until the engines were prepared. Never blocks."""
        ...

    async def switch(self, name: str, k: int | None) -> None:
        """Restart the speculative engine with another configuration; returns when it has begun to load.

        Raises UsageError or ConfigError for what cannot be chosen, with the running engine left as it is.
        """
        ...

    async def restore(self) -> None:
        """Go back to the last configuration that was ready. Raises UsageError when there is none."""
        ...
