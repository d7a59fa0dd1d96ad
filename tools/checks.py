"""``python -m tools.checks test|check|format``: every step of a kind, in order, each with its seconds.

All steps run even when one fails, so that one look shows everything; the exit code is 1 if any failed.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sys.executable
BIOME = str(ROOT / "node_modules" / ".bin" / "biome")
DCLINT = str(ROOT / "node_modules" / ".bin" / "dclint")
HADOLINT = str(Path(PYTHON).parent / "hadolint")
SCRIPTS = ("assets", "tests/js", "benchmarks")
COVERED = ("specdemo/core", "specdemo/engines/wire")
"""Folders whose every line and branch must be exercised by unit tests: what decides numbers and verdicts."""


LEFT_TO_THE_COLLECTOR = ("-W", "ignore::pytest.PytestUnraisableExceptionWarning")
"""Clients of the browser tests (the browser's driver, Gradio's own client) leave sockets for Python to close. Found
after the last test, such a socket would fail a run in which every test passed."""

TESTS_FAILED = 1
"""pytest's exit code when tests ran and some failed; others mean that it could not run them."""


@dataclass(frozen=True)
class Step:
    """A command. ``skip`` says why it is not run; ``judge`` reads (exit code, stdout, stderr) into a result.

    ``twice``: pytest's failures are tried once more, and the result says so. Only for tests with real processes and a
    real browser, which a busy machine can starve.
    """

    name: str
    argv: Sequence[str]
    skip: str | None = None
    judge: Callable[[int, str, str], str] | None = None
    twice: bool = False


def pytest(*arguments: str) -> list[str]:
    """pytest of this environment."""
    return [PYTHON, "-m", "pytest", "-q", *arguments]


def engine_python() -> Path:
    """The engine environment that ``make setup`` makes, or the one that is set."""
    return Path(os.environ.get("SPECDEMO_ENGINE_PYTHON") or ROOT / ".venv-engine" / "bin" / "python")


def javascript_tests() -> list[str]:
    """All test modules: Node 20 does not expand patterns by itself."""
    return sorted(str(path.relative_to(ROOT)) for path in (ROOT / "tests" / "js").rglob("*.test.mjs"))


def test_steps() -> list[Step]:
    """What ``make test`` runs."""
    chromium = ("--timeout=300", "--durations=8", "tests/e2e")
    no_engine = None if engine_python().is_file() else "there is no engine environment (ENGINE=none)"
    return [
        Step("Python: unit and integration", pytest("--durations=8", "tests"), twice=True),
        Step("JavaScript", ["node", "--test", *javascript_tests()]),
        Step(
            "real engines",
            pytest("-m", "engine", *LEFT_TO_THE_COLLECTOR, "--timeout=900", "--durations=12", "tests/engine"),
            skip=no_engine,
            twice=True,
        ),
        Step("page in Chromium", pytest("-m", "e2e", *LEFT_TO_THE_COLLECTOR, *chromium), twice=True),
    ]


def check_steps() -> list[Step]:
    """What ``make check`` runs."""
    coverage = [f"--cov={folder}" for folder in COVERED]
    return [
        Step("ruff", [PYTHON, "-m", "ruff", "check", "."]),
        Step("ruff format", [PYTHON, "-m", "ruff", "format", "--check", "."]),
        Step("mypy: the package", [PYTHON, "-m", "mypy"]),
        Step(
            "mypy: tools and app",
            [
                PYTHON,
                "-m",
                "mypy",
                "-m",
                "app",
                "-m",
                "tools.checks",
                "-m",
                "tools.record_runs",
                "-m",
                "tools.image",
                "-m",
                "tools.pictures",
                "-p",
                "tools.bootstrap",
                "-p",
                "tools.soak",
            ],
        ),
        Step("biome: JavaScript, CSS", [BIOME, "ci", "--colors=off", "--error-on-warnings", *SCRIPTS]),
        Step("hadolint: Dockerfiles", [HADOLINT, "--no-color", "Dockerfile", "Dockerfile.cpu"]),
        Step("dclint: compose files", [DCLINT, "--max-warnings", "0", "compose.yaml", "compose.shared.yaml"]),
        Step(
            "coverage of core and wire: every line and branch",
            [
                *pytest("--no-header", *coverage, "--cov-branch", "--cov-report=term-missing", "--cov-fail-under=100"),
                *("tests/unit/core", "tests/unit/engines"),
            ],
        ),
        Step("audit of dependencies", audit(), judge=audited),
    ]


def audit() -> list[str]:
    """Known vulnerabilities of what is installed. Needs a vulnerability service on the network."""
    quiet = ["--progress-spinner", "off", "--timeout", "10", "--format", "json"]
    return [PYTHON, "-m", "pip_audit", "--local", "--skip-editable", *quiet]


def audited(code: int, stdout: str, stderr: str) -> str:
    """Passed only if packages were looked up: with the service out of reach, pip-audit skips them all and says 0."""
    try:
        packages = json.loads(stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = (stderr.strip().splitlines() or ["no answer"])[-1][:200]
        return f"skipped: no vulnerability service could be reached ({last})"
    seen = [package for package in packages if "vulns" in package]
    found = [package for package in seen if package["vulns"]]
    for package in found:
        names = ", ".join(vulnerability["id"] for vulnerability in package["vulns"])
        print(f"{package['name']} {package['version']}: {names}")
    if found:
        return "failed"
    if len(seen) < len(packages) / 2:
        return f"skipped: the vulnerability service knows {len(seen)} of {len(packages)} packages here"
    return "passed" if code == 0 else "failed"


def format_steps() -> list[Step]:
    """What ``make format`` runs."""
    return [
        Step("ruff", [PYTHON, "-m", "ruff", "check", "--fix", "--quiet", "."]),
        Step("ruff format", [PYTHON, "-m", "ruff", "format", "."]),
        Step("biome", [BIOME, "check", "--write", *SCRIPTS]),
    ]


def run_step(step: Step) -> str:
    """The result: passed, failed, or skipped with the reason."""
    if step.skip:
        return f"skipped: {step.skip}"
    if step.judge is None:
        done = subprocess.run(step.argv, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
        if done.returncode == TESTS_FAILED and step.twice:
            print("\n-- once more, only what failed", flush=True)
            again = [*step.argv, "--last-failed", "--last-failed-no-failures", "none"]
            done = subprocess.run(again, cwd=ROOT, stdin=subprocess.DEVNULL, check=False)
            return "passed, some at the second try" if done.returncode == 0 else "failed"
        return "passed" if done.returncode == 0 else "failed"
    captured = subprocess.run(
        step.argv, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
    )
    return step.judge(captured.returncode, captured.stdout, captured.stderr)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps of a kind and print a table."""
    parser = argparse.ArgumentParser(prog="python -m tools.checks", description=__doc__)
    parser.add_argument("kind", choices=("test", "check", "format"))
    kind = parser.parse_args(arguments).kind
    steps = {"test": test_steps, "check": check_steps, "format": format_steps}[kind]()
    width = min(100, shutil.get_terminal_size().columns)
    results: list[tuple[str, str, float]] = []
    for step in steps:
        print(f"\n== {step.name} {'=' * max(3, width - len(step.name) - 4)}", flush=True)
        zero = time.monotonic()
        result = run_step(step)
        results.append((step.name, result, time.monotonic() - zero))
        print(f"-- {step.name}: {result}, {results[-1][2]:.0f} s", flush=True)
    print(f"\n== {kind} {'=' * max(3, width - len(kind) - 4)}")
    for name, result, seconds in results:
        print(f"  {seconds:5.0f} s  {name}: {result}")
    return 1 if any(result == "failed" for _, result, _ in results) else 0


if __name__ == "__main__":
    sys.exit(main())
