"""A small application that runs two fake engines: for tests that end it in all ways an application can end.

    python -m tests.fakes.supervising FOLDER HOW

Prints one JSON line with the engines' pids once both are ready, then: ``wait`` waits for a signal, ``raise`` fails,
``forget`` leaves the interpreter without closing anything.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from specdemo.core.events import SIDES
from specdemo.engines.supervisor import ends_on_signals
from tests.fakes.supervised import FakeEngines, supervisor


async def main(folder: Path, how: str) -> None:
    with ends_on_signals():
        control = supervisor(folder, FakeEngines())
        if how == "forget":
            await control.start_all()
            await control.wait_ready(60)
            print(json.dumps([control.status(side).pid for side in SIDES]), flush=True)
            sys.exit(0)
        async with control:
            await control.start_all()
            await control.wait_ready(60)
            print(json.dumps([control.status(side).pid for side in SIDES]), flush=True)
            if how == "raise":
                raise ValueError("as asked")
            await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
