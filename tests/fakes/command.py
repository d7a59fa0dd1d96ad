"""The command line as a child process, as a user runs it: in a folder of its own, without this machine's settings."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one command left: exit code, stdout and stderr."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """stdout as the one strict JSON document that it must be."""

        def refuse(name: str) -> None:
            raise AssertionError(f"{name} is no JSON")

        return json.loads(self.out, parse_constant=refuse)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The child's variables: this process's own without SPECDEMO_*, data and cache inside ``folder``."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SPECDEMO_")}
    return kept | {
        "PYTHONPATH": str(ROOT),
        "SPECDEMO_DATA_DIR": str(folder / "data"),
        "SPECDEMO_CACHE_DIR": str(folder / "cache"),
        "COLUMNS": "120",
        **more,
    }


async def specdemo(folder: Path, *words: str, stdin: bytes = b"", **variables: str) -> Outcome:
    """Run one command to its end."""
    async with started(folder, *words, **variables) as child:
        out, err = await child.communicate(stdin)
    return Outcome(child.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def started(folder: Path, *words: str, **variables: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A command that runs; killed afterwards if it still does."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "specdemo",
        *words,
        cwd=folder,
        env=environment(folder, **variables),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


def engines(standard: Any, speculative: Any) -> tuple[str, ...]:
    """The flags that attach two scripted servers."""
    return ("--standard-url", standard.base_url, "--speculative-url", speculative.base_url)
