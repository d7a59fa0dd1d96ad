"""The engines of a running serve: found while it lives, believed in nothing else."""

from __future__ import annotations

import asyncio
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from specdemo.compose.running import NAME, find_running, keep_announced, open_running, running_statuses
from specdemo.core.codec import encode
from specdemo.core.engine import EngineSpec, EngineState
from specdemo.core.events import SIDES, Side
from specdemo.engines.safety import REPAIR_SETTING
from specdemo.engines.speculation import parse_speculation
from specdemo.settings import load
from tests.fakes.vllm import serving

STD, SPEC = SIDES
SPECS = (
    EngineSpec(STD, "m", "smollm2", "cpu", dtype="float32"),
    EngineSpec(SPEC, "m", "smollm2", "cpu", dtype="float32", speculation=parse_speculation("ngram")),
)


class Pair:
    """What keep_announced sees of a ManagedPair."""

    def __init__(self, *addresses: str | None) -> None:
        self.addresses = addresses
        self.specs = SPECS

    def base_url(self, side: Side) -> str | None:
        return self.addresses[SIDES.index(side)]

    def repaired(self, side: Side) -> bool:
        return side is SPEC


def told(**changes: Any) -> dict[str, Any]:
    return {
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "addresses": ["http://127.0.0.1:1", "http://127.0.0.1:2"],
        "specs": [encode(spec) for spec in SPECS],
        "repaired": [False, True],
        **changes,
    }


async def until(there: Path, wanted: bool) -> None:
    async with asyncio.timeout(20):
        while there.exists() != wanted:
            await asyncio.sleep(0.01)


async def test_announced_while_ready(tmp_path: Path) -> None:
    """Engines are told of while both are ready, with their specs, for this user only, and forgotten afterwards."""
    pair = Pair("http://127.0.0.1:1", None)
    async with keep_announced(pair, tmp_path):  # type: ignore[arg-type]
        await asyncio.sleep(0)
        assert find_running(tmp_path) is None
        pair.addresses = ("http://127.0.0.1:1", "http://127.0.0.1:2")
        await until(tmp_path / NAME, True)
        found = find_running(tmp_path)
        assert found is not None
        assert (found.pid, found.specs, found.repaired) == (os.getpid(), SPECS, (False, True))
        assert (tmp_path / NAME).stat().st_mode & 0o077 == 0
        pair.addresses = (None, None)
        await until(tmp_path / NAME, False)
        pair.addresses = ("http://127.0.0.1:1", "http://127.0.0.1:3")
        await until(tmp_path / NAME, True)

    assert not (tmp_path / NAME).exists()


async def test_another_serves_file_stays(tmp_path: Path) -> None:
    """A serve that ends does not remove what another one has told meanwhile."""
    async with keep_announced(Pair("http://127.0.0.1:1", "http://127.0.0.1:2"), tmp_path):  # type: ignore[arg-type]
        await until(tmp_path / NAME, True)
        (tmp_path / NAME).write_text(json.dumps(told(pid=1)))

    assert (tmp_path / NAME).exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": 2**22 + 1},
        {"pid": "x"},
        {"started": 1.0},
        {"addresses": ["http://evil.example", "http://127.0.0.1:2"]},
        {"addresses": ["http://127.0.0.1:1"]},
        {"specs": []},
        {"specs": [{}, {}]},
        {"repaired": None},
    ],
)
def test_what_is_not_believed(tmp_path: Path, changes: dict[str, Any]) -> None:
    """A dead process, another process with its number, addresses elsewhere, and damaged files count as nothing."""
    (tmp_path / NAME).write_text(json.dumps(told()))
    assert find_running(tmp_path) is not None
    (tmp_path / NAME).write_text(json.dumps(told(**changes)))
    assert find_running(tmp_path) is None
    (tmp_path / NAME).write_text("{")
    assert find_running(tmp_path) is None


async def test_reused_engines_know_their_specs(tmp_path: Path) -> None:
    """Another command asks them as if attached, but knows method, k, number format and repair from the file."""
    settings = load({}, environ={}, folder=tmp_path).settings
    async with serving() as left, serving({"k": 4}) as right:
        (tmp_path / NAME).write_text(json.dumps(told(addresses=[left.base_url, right.base_url])))
        running = find_running(tmp_path)
        assert running is not None
        async with open_running(replace(running), settings) as (engines, control):
            facts = await engines[SPEC].facts()
            plain = await engines[STD].facts()
            states = [status.state for status in control.statuses()]
        assert [status.state for status in await running_statuses(tmp_path, settings)] == states

    assert states == [EngineState.READY, EngineState.READY]
    assert (facts.method, facts.k, facts.dtype, facts.managed) == ("ngram", 4, "float32", True)
    assert dict(facts.settings)[REPAIR_SETTING] == "on"
    assert REPAIR_SETTING not in dict(plain.settings)
    assert await running_statuses(tmp_path / "none", settings) == ()
