"""Virtual environments and pip: progress, one sentence when it fails, and a check that nothing is half-installed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tools.bootstrap.machine import Missing, answer
from tools.bootstrap.stage import Screen

TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_SIZE = re.compile(r"\((\d+(?:\.\d+)?)\s*(kB|MB|GB)\)")
_UNITS = {"kB": 1e-3, "MB": 1.0, "GB": 1e3}

# Run by the environment's own Python. A package counts as whole if every file that its record names is there.
_WHOLE = r"""
import importlib.metadata as m, sys
for d in m.distributions():
    files = d.files
    if files is None or any(not d.locate_file(f).exists() for f in files if not str(f).endswith(".pyc")):
        print(d.metadata["Name"] or d._path)
"""


def pip_environment() -> dict[str, str]:
    """The user's own pip settings stay in force; only what would mix environments is taken out."""
    left_out = {
        "PYTHONPATH",
        "PYTHONHOME",
        "VIRTUAL_ENV",
        "PIP_TARGET",
        "PIP_PREFIX",
        "PIP_USER",
        "PIP_REQUIRE_VIRTUALENV",
    }
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    return environment | {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1"}


def make_venv(folder: Path) -> Path:
    """The environment's Python; a broken or foreign environment is made anew, a working one is kept."""
    python = folder / "bin" / "python"
    probe = "import os, pip, sys; print(os.path.realpath(sys.prefix), *sys.version_info[:2])"
    code, output = answer([str(python), "-c", probe])
    if code == 0 and output.split() == [str(folder.resolve()), *map(str, sys.version_info[:2])]:
        return python
    if folder.exists():
        shutil.rmtree(folder)
    code, output = answer([sys.executable, "-m", "venv", str(folder)], 300)
    if code != 0:
        raise Missing(f"The virtual environment {folder} could not be made: {last_line(output)}.")
    return python


def pip_install(python: Path, arguments: Sequence[str], screen: Screen, *, log: Path, total: int | None = None) -> None:
    """``pip install ARGUMENTS``. Raises Missing with one sentence."""
    code, output = _pip(python, ["install", "--progress-bar", "off", *arguments], screen, log, total)
    if code != 0:
        raise Missing(f"{sentence(output)} The whole output is in {log}.")


def install_cpu_engine(python: Path, requirements: Path, screen: Screen, *, log: Path) -> None:
    """The complete list without dependencies; PyTorch's own index only where it is needed for torch."""
    total = sum(1 for line in requirements.read_text().splitlines() if line and not line.startswith("#"))
    # Compiling all 20,000 modules takes longer than compiling, at the first start, the few that are used.
    arguments = ["install", "--progress-bar", "off", "--no-deps", "--no-compile", "-r", str(requirements)]
    code, output = _pip(python, arguments, screen, log, total)
    if code != 0 and _torch_not_found(output):
        screen.line(f"      the CPU build of torch is not on this index; adding {TORCH_CPU_INDEX}")
        code, output = _pip(python, [*arguments, "--extra-index-url", TORCH_CPU_INDEX], screen, log, total)
    if code != 0:
        raise Missing(f"{sentence(output)} The whole output is in {log}.")


def mend(python: Path, screen: Screen, *, log: Path) -> None:
    """Reinstall what an earlier interrupted run left half-installed."""
    _, output = answer([str(python), "-I", "-c", _WHOLE], 120)
    broken = [line for line in output.split() if line != "specdemo"]
    if not broken:
        return
    screen.line(f"      reinstalling what an interrupted run left incomplete: {', '.join(broken)}")
    _, frozen = answer([str(python), "-m", "pip", "freeze", "--all"], 60)
    pins = [line for line in frozen.splitlines() if "==" in line and _plain(line.split("==")[0]) in map(_plain, broken)]
    arguments = ["--force-reinstall", "--no-deps", *(pins or broken)]
    code, output = _pip(python, ["install", "--progress-bar", "off", *arguments], screen, log, len(broken))
    if code != 0 and _torch_not_found(output):
        arguments += ["--extra-index-url", TORCH_CPU_INDEX]
        code, output = _pip(python, ["install", "--progress-bar", "off", *arguments], screen, log, len(broken))
    if code != 0:
        raise Missing(f"{sentence(output)} The whole output is in {log}.")


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _pip(python: Path, arguments: Sequence[str], screen: Screen, log: Path, total: int | None) -> tuple[int, str]:
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    progress = PipProgress(total)
    with log.open("w", encoding="utf-8") as file:
        child = subprocess.Popen(
            [str(python), "-m", "pip", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=pip_environment(),
        )
        with child, _ticking(lambda: screen.passing(progress.state())):
            assert child.stdout is not None  # noqa: S101 - PIPE was asked for
            try:
                for line in child.stdout:
                    file.write(line)
                    lines.append(line)
                    progress.feed(line)
            except BaseException:
                child.terminate()
                raise
    return child.returncode, "".join(lines)


@contextlib.contextmanager
def _ticking(show: Callable[[], None]) -> Iterator[None]:
    """Call ``show`` once a second beside the work: pip says nothing during a large download."""
    over = threading.Event()

    def tick() -> None:
        while not over.wait(1.0):
            show()

    thread = threading.Thread(target=tick, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


class PipProgress:
    """pip's lines → "57 of 149 packages, 830 MB, now torch"."""

    def __init__(self, total: int | None = None) -> None:
        self._total = total
        self._packages = 0
        self._megabytes = 0.0
        self._now = ""

    def feed(self, line: str) -> None:
        """Take one line."""
        text = line.strip()
        if text.startswith("Collecting "):
            self._packages += 1
            self._now = re.split(r"[\s<>=!;\[(~]", text[len("Collecting ") :])[0]
        elif text.startswith(("Downloading ", "Using cached ")) and ".metadata" not in text:
            size = _SIZE.search(text)
            self._megabytes += float(size[1]) * _UNITS[size[2]] if size else 0.0
        elif text.startswith("Installing collected packages"):
            self._now = "unpacking them"

    def state(self) -> str:
        """How far pip is."""
        of = f" of {self._total}" if self._total else ""
        return f"{self._packages}{of} packages, {self._megabytes:.0f} MB, now {self._now or 'starting'}"


def _torch_not_found(output: str) -> bool:
    return bool(re.search(r"(No matching distribution found|Could not find a version).*\btorch\b", output))


def last_line(output: str) -> str:
    """The last line that says something; pip's ERROR lines first."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no output"])[-1].rstrip(".")[:300]


def sentence(output: str) -> str:
    """Why pip failed, and what to do, in one sentence."""
    if re.search(r"No space left on device|Disk quota exceeded", output):
        return "The disk is full: free some space, then run the command again; it goes on where it stopped."
    if re.search(r"error: command '.*(gcc|g\+\+|cc|clang)'|unable to execute '.*(gcc|cc)'|gcc: not found", output):
        return (
            "A package had to be compiled and there is no working C++ compiler: install one "
            "(Debian, Ubuntu: `apt-get install build-essential`), then run the command again."
        )
    offline = (
        r"NewConnectionError|Temporary failure in name resolution|Name or service not known|Network is unreachable"
    )
    if re.search(
        rf"{offline}|ReadTimeoutError|ConnectTimeoutError|ConnectionResetError|ProxyError|SSLError|Max retries", output
    ):
        return (
            "The package index cannot be reached: check the network (or pip's proxy and index settings), then run the "
            f"command again; it goes on where it stopped; pip said: {last_line(output)}."
        )
    if re.search(r"No matching distribution found|Could not find a version", output):
        return (
            f"A pinned package is not on the package index for Python {sys.version_info[0]}.{sys.version_info[1]}: "
            f"{last_line(output)}; use Python 3.11 to 3.13 (`make setup PYTHON=python3.11`) or another index."
        )
    return f"pip failed: {last_line(output)}."
