"""Which engines there are, and why; what must not be sent to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from specdemo.compose import deployment, folders, open_deployment
from specdemo.compose.deployment import GET_ENGINES
from specdemo.core.engine import EngineState
from specdemo.core.events import SIDES
from specdemo.core.prompt import Sampling, chat
from specdemo.engines.environment import EngineEnvironment
from specdemo.engines.safety import REPAIR_SETTING
from specdemo.errors import ConfigError, EngineUnavailable, SetupError
from specdemo.settings import Settings, load
from tests.fakes.engines import facts

STD, SPEC = SIDES


def settings(folder: Path, **flags: Any) -> Settings:
    names = {name.replace("__", "."): value for name, value in flags.items()}
    return load({"data_dir": str(folder), "cache_dir": str(folder), **names}, environ={}, folder=folder).settings


@pytest.fixture
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without an engine environment."""
    monkeypatch.setattr(deployment, "find_engine_python", lambda _setting: None)


async def test_replay_without_engines(tmp_path: Path, no_environment: None) -> None:
    """With no settings and no engine environment only recorded runs play, and the reason says how to get engines."""
    async with open_deployment(settings(tmp_path)) as found:
        assert (found.mode, found.engines, found.control) == ("replay", None, None)
    for words in ("make setup", "SPECDEMO_ENGINE__PYTHON", "--standard-url"):
        assert words in found.reason


async def test_a_wrong_interpreter_is_replay_with_its_sentence(tmp_path: Path) -> None:
    """C24: an engine Python that does not exist never stops the page; the sentence tells what is wrong."""
    async with open_deployment(settings(tmp_path, engine__python=str(tmp_path / "none"))) as found:
        assert found.mode == "replay"
        assert "no executable file" in found.reason


async def test_python_without_vllm(tmp_path: Path) -> None:
    """A Python that has no vLLM is replay too, and says what is missing."""
    async with open_deployment(settings(tmp_path, engine__python=sys.executable)) as found:
        assert found.mode == "replay"
        assert "has no vLLM" in found.reason


async def test_managed_that_was_asked_for_but_cannot_be(tmp_path: Path, no_environment: None) -> None:
    """Engines of our own that were asked for and cannot be are an error, not a silent replay."""
    with pytest.raises(ConfigError, match="No engine environment"):
        async with open_deployment(settings(tmp_path, mode="managed")):
            pass
    assert "recorded runs" in GET_ENGINES


@pytest.mark.parametrize("given,missing", [("standard", "speculative"), ("speculative", "standard")])
async def test_one_address_is_not_enough(tmp_path: Path, given: str, missing: str) -> None:
    """One address alone names the flag and the variable of the other."""
    with pytest.raises(ConfigError, match=rf"--{missing}-url.*SPECDEMO_{missing.upper()}__BASE_URL"):
        async with open_deployment(settings(tmp_path, **{f"{given}__base_url": "http://127.0.0.1:1"})):
            pass


async def test_attached(tmp_path: Path) -> None:
    """Two addresses are attached engines, whatever else is installed; nobody answering is a state, not an error."""
    urls = {"standard__base_url": "http://127.0.0.1:1/v1/", "speculative__base_url": "http://u:p@127.0.0.1:2"}
    async with open_deployment(settings(tmp_path, **urls)) as found:
        assert found.mode == "attached"
        assert found.engines is not None
        assert found.control is not None
        statuses = found.control.statuses()
        await found.wait_ready(0.0)

    assert [status.base_url for status in statuses] == ["http://127.0.0.1:1", "http://127.0.0.1:2"]
    assert all("Nobody answers" in (status.error or "") for status in statuses)


async def test_unreadable_certificate(tmp_path: Path) -> None:
    """A private authority that cannot be read is a sentence with its path."""
    urls = {"standard__base_url": "https://127.0.0.1:1", "speculative__base_url": "https://127.0.0.1:2"}
    with pytest.raises(ConfigError, match=r"none\.pem"):
        async with open_deployment(settings(tmp_path, **urls, standard__ca_file=str(tmp_path / "none.pem"))):
            pass


async def test_replay_asked_for(tmp_path: Path) -> None:
    """Replay can be asked for although engines could be had."""
    async with open_deployment(settings(tmp_path, mode="replay")) as found:
        assert (found.mode, found.engines) == ("replay", None)


def broken(_python: Path) -> EngineEnvironment:
    return EngineEnvironment(Path("/x/python"), problem="The engine environment has no torch.")


async def test_failed_preparation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stops the preparation is the state of both engines, is raised to who waits, and can be tried again."""
    monkeypatch.setattr(deployment, "find_engine_python", lambda _setting: Path("/x/python"))
    monkeypatch.setattr(deployment, "inspect", broken)
    async with open_deployment(settings(tmp_path, mode="managed"), autostart=False) as found:
        assert found.managed is not None
        assert found.engines is not None
        assert {status.state for status in found.managed.statuses()} == {EngineState.STOPPED}
        with pytest.raises(EngineUnavailable, match="not started"):
            await found.wait_ready(1.0)
        for _ in range(2):
            await found.managed.start(STD)
            with pytest.raises(SetupError, match="no torch"):
                await found.wait_ready(5.0)
        assert {status.error for status in found.managed.statuses()} == {"The engine environment has no torch."}
        with pytest.raises(EngineUnavailable, match="no torch"):
            await found.engines[SPEC].facts()
        events = [event async for event in found.engines[STD].stream(chat("x"), zero=0.0)]

    assert [event.kind for event in events] == ["unavailable"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "sampling,settings_pair,refused",
    [
        (Sampling(temperature=0.8), (), True),
        (Sampling(temperature=0.8), ((REPAIR_SETTING, "on"),), False),
        (Sampling(), (), False),
        (Sampling(min_p=0.05, temperature=0.8), ((REPAIR_SETTING, "on"),), False),
    ],
)
def test_refusals(sampling: Sampling, settings_pair: tuple[tuple[str, str], ...], refused: bool) -> None:
    """A CPU engine without the repair is spared what would kill it; A06: what is merely rejected is sent."""
    both = (facts(STD, device="cpu"), facts(SPEC, device="cpu", version="0.32.0+cpu", settings=settings_pair))

    assert (deployment._refuse(chat("x", sampling=sampling), both) is not None) == refused
    assert deployment._refuse(chat("x", sampling=sampling), (None, None)) is None


def test_folders(tmp_path: Path) -> None:
    """Folders come from the settings, else from the system, and carry the project's name."""
    assert folders(settings(tmp_path)).data == tmp_path
    usual = folders(load({}, environ={}, folder=tmp_path).settings)
    assert usual.data.name == usual.cache.name == "specdemo"
