"""Waiting for engines: what is shown meanwhile, and how it ends."""

from __future__ import annotations

import asyncio
import io
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from rich.console import Console

from specdemo.cli import progress
from specdemo.cli.progress import status_line, wait_until_ready
from specdemo.compose import Deployment
from specdemo.core.engine import EngineState, EngineStatus
from specdemo.core.events import SIDES, Side
from specdemo.errors import EngineUnavailable

STD, SPEC = SIDES
LOADING = EngineStatus(STD, EngineState.LOADING, True, "loading the weights", 12.4, 0.5, 30.0)


@dataclass
class Loading:
    """Both ManagedPair and its control: goes through the given looks, one each time it is asked."""

    looks: list[EngineStatus]
    error: Exception | None = None
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        if len(self.looks) == 1:
            self.over.set()
        return look, replace(look, side=SPEC)

    async def wait_ready(self, _timeout_s: float) -> None:
        await self.over.wait()
        if self.error is not None:
            raise self.error


async def waited(loading: Loading, *, terminal: bool) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=300)
    both: Any = loading
    await wait_until_ready(Deployment("managed", "", {}, both, both), console, 5.0)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


async def test_a_line_for_every_new_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a terminal a line is written when the stage changes, not for every passing second."""
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)
    looks = [LOADING, replace(LOADING, seconds=13.4), replace(LOADING, stage="warming up"), replace(LOADING, stage="x")]
    lines = (await waited(Loading(looks), terminal=False)).splitlines()

    assert [line.count("loading the weights") for line in lines[:2]] == [2, 0]
    assert "warming up" in lines[1]


async def test_a_moving_line_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a terminal one line moves, and is gone when both are ready."""
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)

    assert "loading the weights" in await waited(Loading([LOADING, LOADING]), terminal=True)


async def test_what_stopped_them_is_raised() -> None:
    """The failure of an engine ends the wait with its own sentence."""
    with pytest.raises(EngineUnavailable, match="out of memory"):
        await waited(Loading([LOADING], EngineUnavailable("out of memory")), terminal=False)


async def test_nothing_to_wait_for() -> None:
    """Attached engines and recorded runs are not waited for."""
    console = Console(file=io.StringIO())
    await wait_until_ready(Deployment("replay", "no engines"), console, 5.0)

    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "status,line",
    [
        (LOADING, "standard: loading (loading the weights) 12 s 50 % about 30 s left"),
        (EngineStatus(SPEC, EngineState.READY, True, "done"), "speculative: ready"),
        (EngineStatus(Side.STANDARD, EngineState.DEAD, True, "gone"), "standard: dead (gone)"),
    ],
)
def test_status_line(status: EngineStatus, line: str) -> None:
    """One engine in one line: state, stage, seconds, percent, and what is left."""
    assert status_line(status) == line
