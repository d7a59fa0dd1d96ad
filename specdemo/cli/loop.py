"""Running a command's coroutine so that Ctrl-C and SIGTERM let it clean up, and say so in the exit code."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from specdemo.engines.supervisor import ends_on_signals

STOPPED = 130
"""Exit code of a command that was stopped with Ctrl-C or SIGTERM."""


def run_until_stopped(work: Coroutine[None, None, int], *, stopped: int = STOPPED) -> int:
    """The coroutine's own exit code, or ``stopped`` when it was stopped before it had one."""

    async def watched() -> int:
        with ends_on_signals():
            return await work

    try:
        return asyncio.run(watched())
    except (asyncio.CancelledError, KeyboardInterrupt):
        return stopped
