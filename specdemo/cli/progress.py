"""Waiting for engines: one moving line in a terminal, a line for every new stage elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from rich.console import Console

from specdemo.compose import Deployment
from specdemo.core.engine import EngineState, EngineStatus

_EVERY_S = 0.25


async def wait_until_ready(deployment: Deployment, console: Console, timeout_s: float) -> None:
    """Show how both engines come up until they are ready. Raises what stopped them."""
    if deployment.managed is None or deployment.control is None:
        return
    ready = asyncio.ensure_future(deployment.wait_ready(timeout_s))
    try:
        if console.is_terminal:
            with console.status("starting engines") as line:
                await _show(ready, deployment.control.statuses, line.update)
        else:
            await _show(ready, deployment.control.statuses, _only_new(console))
        await ready
    finally:
        ready.cancel()


async def _show(
    ready: asyncio.Future[None], look: Callable[[], Sequence[EngineStatus]], say: Callable[[str], None]
) -> None:
    while not ready.done():
        say("   ".join(status_line(status) for status in look()))
        await asyncio.wait([ready], timeout=_EVERY_S)


def _only_new(console: Console) -> Callable[[str], None]:
    last = ""

    def say(line: str) -> None:
        nonlocal last
        # Seconds move all the time; a log wants a line only when something else does.
        words = " ".join(word for word in line.split() if not word.rstrip("s").replace(".", "").isdigit())
        if words != last:
            last = words
            console.print(line, markup=False)

    return say


def status_line(status: EngineStatus) -> str:
    """One engine in one line: state, stage, seconds, and how far it is."""
    parts = [f"{status.side}: {status.state}"]
    if status.stage and status.state is not EngineState.READY:
        parts.append(f"({status.stage})")
    if status.state in (EngineState.LOADING, EngineState.WAITING):
        parts.append(f"{status.seconds:.0f} s")
        if status.fraction is not None:
            parts.append(f"{100 * status.fraction:.0f} %")
        if status.eta_s is not None:
            parts.append(f"about {status.eta_s:.0f} s left")
    return " ".join(parts)
