"""Asks a scripted engine through the real client, and sorts what came."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar

from specdemo.core.events import CountersRead, Event, Failed, Finished, Noted, Side, Started, Tokens
from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from tests.fakes.vllm import Server, serving

T = TypeVar("T")
SHORT = Limits(connect_s=5.0, first_token_s=0.4, stall_s=0.2, request_s=5.0, probe_s=5.0)
"""Limits for tests in which a limit is reached."""
HELLO = chat("hello", sampling=Sampling(max_tokens=64))


@dataclass(frozen=True, slots=True)
class Heard:
    """The events of one stream."""

    events: list[Event]

    def of(self, kind: type[T]) -> list[T]:
        """Those of one kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def tokens(self) -> list[Tokens]:
        """All Tokens."""
        return self.of(Tokens)

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(event.text for event in self.tokens)

    @property
    def reasoning(self) -> str:
        """The whole reasoning."""
        return "".join(event.reasoning for event in self.tokens)

    @property
    def ids(self) -> tuple[int, ...]:
        """All ids."""
        return tuple(token for event in self.tokens for token in event.ids)

    @property
    def notes(self) -> dict[str, str]:
        """Notes by kind; "overloaded" is left out, for it depends on how busy the machine is."""
        return {event.kind: event.message for event in self.of(Noted) if event.kind != "overloaded"}

    @property
    def finished(self) -> Finished:
        """The end, which must be a good one."""
        end = self.events[-1]
        assert isinstance(end, Finished), end
        return end

    @property
    def failed(self) -> Failed:
        """The end, which must be a failure."""
        end = self.events[-1]
        assert isinstance(end, Failed), end
        return end


def checked(events: list[Event]) -> Heard:
    """Every stream keeps the order that the contract promises: Started first, exactly one end, at the end."""
    assert isinstance(events[0], Started)
    assert [type(event) for event in events if isinstance(event, Started)] == [Started]
    assert [index for index, event in enumerate(events) if isinstance(event, Finished | Failed)] == [len(events) - 1]
    stamps = [event.at for event in events if isinstance(event, Started | Tokens | CountersRead)]
    assert stamps == sorted(stamps)
    return Heard(events)


async def ask(server: Server | str, prompt: Prompt = HELLO, **options: Any) -> Heard:
    """One stream from a running server. ``options`` go to the client."""
    salt = options.pop("cache_salt", None)
    url = server if isinstance(server, str) else server.base_url
    engine = VllmEngine(Side.STANDARD, url, **{"poll_hz": 0.0, **options})
    try:
        clock = options.get("clock", time.monotonic)
        return checked([event async for event in engine.stream(prompt, zero=clock(), cache_salt=salt)])
    finally:
        await engine.aclose()


async def hear(script: dict[str, Any], prompt: Prompt = HELLO, **options: Any) -> Heard:
    """One stream from a server with this script."""
    async with serving(script) as server:
        return await ask(server, prompt, **options)


async def hear_reply(prompt: Prompt = HELLO, options: dict[str, Any] | None = None, **reply: Any) -> Heard:
    """One stream from a standard server that replies like this."""
    return await hear({"reply": reply}, prompt, **(options or {}))


def words(count: int, text: str = "w") -> list[dict[str, Any]]:
    """``count`` steps of one token each, ids from 10 up."""
    return [{"ids": [10 + index], "text": f"{text}{index} "} for index in range(count)]
