"""Shared by the client benchmarks: processes, rounds, percentiles, and where results go."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PEER = ROOT / "benchmarks" / "client_peer.py"
RESULTS = ROOT / "benchmarks" / "results"


def engine_python() -> str:
    """The interpreter that has vLLM."""
    return os.environ.get("SPECDEMO_ENGINE_PYTHON") or str(ROOT / ".venv-engine" / "bin" / "python")


@contextmanager
def scripted(script: dict[str, Any], folder: Path) -> Iterator[str]:
    """A scripted engine in a process of its own; its address."""
    file = folder / "script.json"
    file.write_text(json.dumps(script), encoding="utf-8")
    command = [sys.executable, "-m", "tests.fakes.vllm", "--script", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["urls"][0]
        finally:
            server.terminate()


def peer(*arguments: object) -> dict[str, Any]:
    """Run vLLM's client in the engine environment; its result."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    command = [engine_python(), str(PEER), *map(str, arguments)]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def own(file: str, *arguments: object) -> dict[str, Any]:
    """Run our half of a benchmark in a fresh process of the app's environment; its result."""
    command = [sys.executable, file, "--own", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def percentile(values: list[float], share: float) -> float:
    """The smallest value that is not below ``share`` of all."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * len(ordered) * 1000) // 1000) - 1))]


def median(values: list[float]) -> float:
    """The middle one."""
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def report(name: str, lines: list[str], *, write: bool) -> None:
    """Print, and keep beside the other results when asked to."""
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if write:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.txt").write_text(text, encoding="utf-8")


def machine() -> str:
    """A line about where it ran, with how busy it was before."""
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} cores, load {load:.1f} before, Python {sys.version.split()[0]}"


def run_own(work: Any) -> None:
    """Run our half on the event loop that specdemo's commands use."""
    from specdemo.cli.loop import fast_loop

    with asyncio.Runner(loop_factory=fast_loop()) as runner:
        runner.run(work)
