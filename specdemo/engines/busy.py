"""How busy other programs keep the cores while our engines idle: what a noise guard asks before each quad."""

from __future__ import annotations

import asyncio

import psutil

_WINDOW_S = 0.2


async def busy_share() -> float | None:
    """Share of all cores in use over the next 0.2 s (0 to 1). Ask while no request of ours is in flight."""
    psutil.cpu_percent()
    await asyncio.sleep(_WINDOW_S)
    return float(psutil.cpu_percent()) / 100.0
