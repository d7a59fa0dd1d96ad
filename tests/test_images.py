"""The container files, as far as they can be checked without containers: what they copy is there, what they start exists."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from specdemo.settings import load
from tools.image import Instruction, instructions, variables

ROOT = Path(__file__).resolve().parents[1]
FILES = ("Dockerfile", "Dockerfile.cpu")


def steps(name: str) -> list[Instruction]:
    """A Dockerfile's instructions."""
    return list(instructions((ROOT / name).read_text(encoding="utf-8")))


def rest(name: str, word: str) -> list[str]:
    """What follows each of a kind of instruction."""
    return [step.rest for step in steps(name) if step.word == word]


def ignored(path: str) -> bool:
    """Whether .dockerignore keeps a path out of the build: the last pattern that fits decides."""
    out = False
    for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").split():
        pattern = line.removeprefix("!")
        fits = re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path) or path.startswith(pattern + "/")
        top = (
            re.fullmatch(re.escape(pattern).replace(r"\*", "[^/]*"), path.split("/", 1)[0])
            if "/" not in pattern
            else None
        )
        if fits or top:
            out = not line.startswith("!")
    return out


@pytest.mark.parametrize("name", FILES)
def test_everything_that_is_copied_is_there(name: str) -> None:
    """Each source of a COPY exists and is not kept out by .dockerignore; tests, caches and environments are."""
    for copied in rest(name, "COPY"):
        *sources, _ = [word for word in copied.split() if not word.startswith("--")]
        for source in sources:
            assert (ROOT / source).exists(), source
            assert not ignored(source), source
    assert all(ignored(path) for path in (".venv", ".env", "tests", "node_modules", ".git", "tools/soak"))


@pytest.mark.parametrize("name", FILES)
def test_settings_of_an_image_are_settings(name: str, tmp_path: Path) -> None:
    """The image's variables are read without complaint, serve the container's address, and take visitors for strangers."""
    environ: dict[str, str] = {}
    for pairs in rest(name, "ENV"):
        environ |= variables(pairs)
    settings = load(environ=environ, folder=tmp_path).settings
    assert (settings.server.host, settings.server.port, settings.server.public) == ("0.0.0.0", 7860, True)
    assert settings.limits.runs_per_minute == 6
    assert settings.server.drain_s == 20
    assert str(settings.data_dir).startswith(rest(name, "VOLUME")[0])


@pytest.mark.parametrize("name", FILES)
def test_images_run_as_nobody_special_and_tell_their_health(name: str) -> None:
    """The last user is a number above the system's; the check asks the liveness route at the port that is exposed."""
    assert re.fullmatch(r"[1-9]\d{4,}:[1-9]\d{4,}", rest(name, "USER")[-1])
    [check], [port] = rest(name, "HEALTHCHECK"), rest(name, "EXPOSE")
    assert f"127.0.0.1:{port}/healthz" in check
    assert rest(name, "ENTRYPOINT") == ['["/opt/specdemo/.venv/bin/specdemo"]']
    assert rest(name, "CMD") == ['["serve"]']


def test_gpu_image_is_the_engine_that_was_pinned() -> None:
    """The image's vLLM, that of the compose file and that of requirements/engine-gpu.txt are one version."""
    pinned = re.search(r"^vllm==(\S+)", (ROOT / "requirements" / "engine-gpu.txt").read_text(), re.MULTILINE)
    assert pinned is not None
    assert rest("Dockerfile", "FROM") == [f"vllm/vllm-openai:v{pinned[1]}"]
    assert compose("compose.yaml")["x-engine"]["image"] == f"vllm/vllm-openai:v{pinned[1]}"


def test_cpu_image_has_a_supported_python() -> None:
    """Its Python is one that the project supports."""
    version = re.match(r"python:(3\.\d+)-slim", rest("Dockerfile.cpu", "FROM")[0])
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert version is not None
    assert f"Programming Language :: Python :: {version[1]}" in classifiers


def compose(name: str) -> Any:
    """A compose file; ``!override`` says how lists merge and is no value."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.add_constructor("!override", lambda loader, node: loader.construct_sequence(node, deep=True))
    return yaml.load((ROOT / name).read_text(encoding="utf-8"), Loader)


def test_both_engines_of_the_compose_file_get_the_same_flags(tmp_path: Path) -> None:
    """But for speculation; the page is told their addresses in names of settings; no engine has a port outside."""
    services = compose("compose.yaml")["services"]
    standard, speculative = services["standard"]["command"], services["speculative"]["command"]
    assert standard == [word for word in speculative if "spec" not in word]
    assert len(speculative) == len(standard) + 2
    ours = (ROOT / "specdemo" / "engines" / "command.py").read_text(encoding="utf-8")
    assert [word for word in speculative if word.startswith("--") and f'"{word.partition("=")[0]}' not in ours] == []
    settings = load(environ=services["page"]["environment"], folder=tmp_path).settings
    assert settings.standard.base_url == "http://standard:8000"
    assert settings.speculative.base_url == "http://speculative:8000"
    assert "ports" not in services["standard"]
    assert "ports" not in services["speculative"]
    assert services["page"]["build"]["args"] == {"ENGINE": "none"}
    assert all(published.startswith("127.0.0.1:") for published in services["page"]["ports"])
    assert compose("compose.shared.yaml")["services"].keys() <= services.keys()
