"""What this machine has. Every probe is a plain function; none of them changes anything."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

Which = Callable[[str], "str | None"]
GB = 1_000_000_000
OLDEST_NODE = 20
CHROMIUM_NAMES = ("chromium", "google-chrome", "google-chrome-stable", "chromium-browser", "chrome")


class Missing(Exception):
    """Something must be installed first; the text is one sentence saying what and how."""


def answer(argv: Sequence[str], timeout_s: float = 20) -> tuple[int, str]:
    """Exit code and output of a short program; 127 if there is no such program, 124 if it hangs."""
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, ""
    except OSError:
        return 127, ""
    return done.returncode, done.stdout + done.stderr


def check_venv(python: str = sys.executable) -> None:
    """Debian splits venv and ensurepip off; without them a virtual environment has no pip."""
    code, _ = answer([python, "-c", "import venv, ensurepip"])
    if code != 0:
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Missing(
            f"This Python cannot make virtual environments: install the package python{version}-venv "
            f"(Debian, Ubuntu: `apt-get install python{version}-venv`), then run the command again."
        )


def check_disk(folder: Path, needed: int, what: str) -> None:
    """``needed`` bytes free on the file system of ``folder``."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise Missing(
            f"{what} needs {needed / GB:.1f} GB of free disk, and {folder} has {free / GB:.1f} GB: free some, "
            "then run the command again."
        )


def has_gpu(run: Callable[[Sequence[str]], tuple[int, str]] = answer) -> bool:
    """An NVIDIA GPU with a working driver."""
    code, output = run(["nvidia-smi", "-L"])
    return code == 0 and "GPU " in output


def engine_kind(wanted: str, *, gpu: bool, system: str | None = None, machine: str | None = None) -> tuple[str, str]:
    """("cpu" | "gpu" | "none", why) for ``ENGINE=auto|cpu|gpu|none``. Raises Missing where ``wanted`` is impossible."""
    system, machine = system or platform.system(), machine or platform.machine()
    if wanted == "none":
        return "none", "ENGINE=none: attached engines and replay only"
    if wanted not in {"auto", "cpu", "gpu"}:
        raise Missing(f"ENGINE={wanted} is not known: use ENGINE=auto, cpu, gpu or none.")
    if system != "Linux" or machine not in {"x86_64", "aarch64"}:
        if wanted == "auto":
            return (
                "none",
                f"vLLM is installed on 64-bit Linux only, not on {system} {machine}: attach engines, or replay",
            )
        raise Missing(f"ENGINE={wanted} needs 64-bit Linux, and this is {system} {machine}: use ENGINE=none.")
    if wanted == "gpu" or (wanted == "auto" and gpu):
        return "gpu", "NVIDIA GPU found" if gpu else "ENGINE=gpu"
    return "cpu", "no NVIDIA GPU" if wanted == "auto" else "ENGINE=cpu"


def compiler(which: Which = shutil.which) -> str | None:
    """The C++ compiler that torch looks for: CXX, else g++ (and no other)."""
    return which(os.environ.get("CXX") or "g++")


def python_headers(include: str | None = None) -> bool:
    """Python.h, which the kernels that torch compiles include; Debian puts it into a package of its own."""
    return (Path(include or sysconfig.get_paths()["include"]) / "Python.h").is_file()


def node(which: Which = shutil.which, run: Callable[[Sequence[str]], tuple[int, str]] = answer) -> str:
    """Path of Node 20 or newer, which runs the JavaScript tests."""
    path = which("node")
    if path is None:
        raise Missing(
            f"The JavaScript tests need Node {OLDEST_NODE} or newer, and there is none: install nodejs "
            "(Debian, Ubuntu: `apt-get install nodejs npm`), then run the command again."
        )
    _, text = run([path, "--version"])
    major = text.strip().lstrip("v").split(".")[0]
    if not major.isdigit() or int(major) < OLDEST_NODE:
        raise Missing(
            f"The JavaScript tests need Node {OLDEST_NODE} or newer, and {path} is {text.strip() or 'broken'}."
        )
    if which("npm") is None:
        raise Missing("npm is missing beside Node: install it (Debian, Ubuntu: `apt-get install npm`).")
    return path


def postgresql(folder: Path = Path("/usr/lib/postgresql")) -> str | None:
    """The program that makes a PostgreSQL server's data folder, in Debian's place for it or on the PATH."""
    found = sorted(folder.glob("*/bin/initdb"))
    return str(found[-1]) if found else shutil.which("initdb")


def chromium(
    environment: dict[str, str] | os._Environ[str] = os.environ,
    which: Which = shutil.which,
    playwright_folder: Path | None = None,
) -> str | None:
    """The Chromium for the page tests: SPECDEMO_TEST_CHROMIUM, an installed one, or Playwright's newest; else None."""
    named = environment.get("SPECDEMO_TEST_CHROMIUM")
    if named:
        if not os.access(named, os.X_OK):
            raise Missing(f"SPECDEMO_TEST_CHROMIUM names {named}, which cannot be run: correct or unset it.")
        return named
    for name in CHROMIUM_NAMES:
        found = which(name)
        if found:
            return found
    default = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "ms-playwright"
    folder = playwright_folder or Path(environment.get("PLAYWRIGHT_BROWSERS_PATH") or default)
    downloaded = sorted(folder.glob("chromium-*/chrome-linux*/chrome"), key=lambda path: path.stat().st_mtime)
    return str(downloaded[-1]) if downloaded else None
