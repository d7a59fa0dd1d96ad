"""Flags that every command has, and what they turn into."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from specdemo.cli.flags import with_settings
from specdemo.errors import ConfigError
from specdemo.settings import Loaded


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A working folder without settings, and logging as it was."""
    monkeypatch.chdir(tmp_path)
    root = logging.getLogger()
    before = (root.handlers[:], root.level)
    yield
    root.handlers[:] = before[0]
    root.setLevel(before[1])


def loaded_by(*words: str, settings_flags: object = None) -> tuple[Loaded, str, int]:
    kept: list[Loaded] = []

    def command(loaded: Loaded, name: str = "x", port: Annotated[int, typer.Option("--own")] = 1) -> int:
        kept.append(loaded)
        return port if name == "x" else 9

    if settings_flags is not None:
        command.settings_flags = settings_flags  # type: ignore[attr-defined]
    app = typer.Typer()
    app.command()(with_settings(command))
    result = CliRunner().invoke(app, list(words), standalone_mode=True)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return kept[0], result.output, result.exit_code


def test_own_and_shared_flags() -> None:
    """A command gets its own flags and the settings that the shared ones make; its number is the exit code."""
    loaded, _, code = loaded_by("--own", "7", "--profile", "cpu", "--k", "3", "--set", "server.port=1234")

    assert (loaded.settings.engine.profile, loaded.settings.engine.k, loaded.settings.server.port) == ("cpu", 3, 1234)
    assert loaded.origins["engine.k"] == "command line"
    assert code == 7


@pytest.mark.parametrize(
    "words,standard,engine",
    [
        (["--model", "m"], None, "m"),
        (["--model", "m", "--standard-url", "http://a", "--speculative-url", "http://b"], "m", "embedded"),
        (["--model", "m", "--engines", "attached"], "m", "embedded"),
        (["--model", "m", "--engines", "managed", "--standard-url", "http://a"], None, "m"),
    ],
)
def test_model_means_what_the_engines_are(words: list[str], standard: str | None, engine: str) -> None:
    """--model is what attached engines are asked for, else what our own engines load."""
    settings = loaded_by(*words)[0].settings

    assert (settings.standard.model, settings.speculative.model, settings.engine.model) == (standard, standard, engine)


def test_further_settings_of_a_command() -> None:
    """A command may have flags of its own for settings; one that is not given sets nothing."""

    def further(
        host: Annotated[str | None, typer.Option("--host")] = None, root: str | None = None
    ) -> dict[str, object]:
        return {"server.host": host, "server.root_path": root}

    loaded = loaded_by("--host", "1.2.3.4", settings_flags=further)[0]

    assert loaded.settings.server.host == "1.2.3.4"
    assert "server.root_path" not in loaded.origins


def test_unknown_setting() -> None:
    """--set with a name that does not exist is an error with the nearest right one."""
    with pytest.raises(ConfigError, match=r"engine\.modle.*engine\.model"):
        loaded_by("--set", "engine.modle=x")


def test_config_file(tmp_path: Path) -> None:
    """--config names the TOML file."""
    (tmp_path / "other.toml").write_text("[server]\nport = 4\n")

    assert loaded_by("--config", "other.toml")[0].settings.server.port == 4
