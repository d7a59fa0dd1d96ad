"""What bench, gate and validate share: prompts, budgets, files, and a benchmark session with progress on stderr."""

from __future__ import annotations

import asyncio
import re
import secrets
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from specdemo import __version__
from specdemo.bench.datasets import Dataset, read_path
from specdemo.bench.plan import BenchPlan
from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.record import BenchHeader, BenchRecord, Ending
from specdemo.bench.workloads import choose
from specdemo.cli.output import calm, stderr
from specdemo.cli.progress import wait_until_ready
from specdemo.compose import Deployment, folders, open_deployment
from specdemo.engines.busy import busy_share
from specdemo.errors import EngineUnavailable, PromptError, StoreError, UsageError
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.benchmark import BenchAround, Benchmark, Progress
from specdemo.runs.kept import benchmarks_folder, new_name
from specdemo.settings import Loaded

_BUDGET = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h)?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, None: 1.0}
_EVERY_S = 5.0
_RANGE = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")
MOST_NUMBERS = 1024


def seconds(text: str | None) -> float | None:
    """``90``, ``90s``, ``5m`` or ``1.5h`` in seconds. Raises UsageError."""
    if text is None:
        return None
    found = _BUDGET.fullmatch(text.strip().lower())
    if found is None or float(found[1]) <= 0:
        raise UsageError(f"A time budget is written as 90s, 5m or 1h, not {text!r}.")
    return float(found[1]) * _SECONDS[found[2]]


def whole_numbers(text: str) -> tuple[int, ...]:
    """``1,2,4`` or ``1-4,8`` as numbers. Raises UsageError."""
    found: list[int] = []
    for part in filter(None, text.replace(" ", "").split(",")):
        ends = _RANGE.fullmatch(part)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (0, -1)
        if last < first or last - first >= MOST_NUMBERS:
            raise UsageError(
                f"Whole numbers with commas between are needed, such as 1,2,4,8 or 1-8, not {text[:80]!r}."
            )
        found += range(first, last + 1)
    return tuple(found)


def gather_prompts(
    workloads: Sequence[str],
    dataset: Path | None,
    *,
    languages: Sequence[str],
    limit: int | None,
    accept_refused: bool,
    console: Console,
) -> tuple[BenchPrompt, ...]:
    """The shipped prompts that are named, or those of a file. Raises PromptError or UsageError."""
    if dataset is None:
        return choose(workloads, languages=languages, limit=limit)
    if workloads:
        raise UsageError("Give --workload or --dataset, not both.")
    if languages:
        raise UsageError("--language chooses among the shipped prompts; leave it out with --dataset.")
    found = read_path(dataset)
    tell(found, console)
    if found.refused and not accept_refused:
        raise PromptError(f"{found.sentence(3)}. To run without these lines, add --accept-refused.")
    if not found.prompts:
        raise PromptError(f"{found.name} holds no usable prompt: {found.sentence(3)}.")
    return found.prompts[:limit] if limit else found.prompts


def tell(dataset: Dataset, console: Console) -> None:
    """The preview of a file: counts, shapes, notes."""
    shapes = ", ".join(f"{count} {shape}" for shape, count in dataset.shapes)
    console.print(calm(f"{dataset.name} ({dataset.form}): {dataset.sentence(10)}"), markup=False)
    if shapes:
        console.print(f"shapes: {shapes}", markup=False)
    for note in dataset.notes:
        console.print(calm(f"note: {note}"), markup=False)


def new_file(
    loaded: Loaded, plan: BenchPlan, out: Path | None, dataset: Path | None, hardware: str | None
) -> BenchFile:
    """A new benchmark file: at ``out``, else in the data folder under a name of its own."""
    now = time.time()
    name = new_name(now)
    path = out or benchmarks_folder(folders(loaded.settings).data) / f"{name}.jsonl"
    header = BenchHeader(name, now, plan, __version__, hardware, dataset.name if dataset else None)
    return BenchFile.create(path, header)


async def run_session(
    loaded: Loaded, make: Callable[[Deployment], BenchFile], *, wait: bool = True, reuse: bool = True
) -> tuple[BenchRecord, Ending, Path]:
    """One session on the engines that the settings ask for; Ctrl-C stops it and keeps what was measured.

    ``wait`` waits before a quad while other programs use the cores; ``reuse`` may take a running specdemo's engines.
    """
    console = stderr()
    async with open_deployment(loaded.settings, reuse=reuse) as deployment:
        await wait_until_ready(deployment, console, loaded.settings.engine.ready_timeout_s)
        if deployment.engines is None or deployment.control is None:
            raise EngineUnavailable(deployment.reason)
        control = deployment.control
        file = make(deployment)
        statuses = control.statuses()
        around = BenchAround(
            busy=busy_share if wait and all(is_local(status.base_url) for status in statuses) else None,
            on_progress=_teller(console),
            commands=(statuses[0].command, statuses[1].command),
            memory=lambda: (control.statuses()[0].memory_bytes, control.statuses()[1].memory_bytes),
        )
        try:
            runner = Benchmark(load(file.path), file, deployment.engines, around)
            ending = await _to_its_end(runner)
        finally:
            file.close()
    return load(file.path), ending, file.path


async def _to_its_end(runner: Benchmark) -> Ending:
    work = asyncio.ensure_future(runner.run())
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        runner.stop()
        return await work


def is_local(base_url: str | None) -> bool:
    """Whether an engine runs on this machine, as far as its address tells; True while it has none."""
    return base_url is None or any(name in base_url for name in ("127.0.0.1", "localhost", "[::1]"))


def _teller(console: Console) -> Callable[[Progress], None]:
    """One moving line in a terminal; elsewhere a line every five seconds and at every change of state."""
    last, before = -_EVERY_S, ""

    def say(progress: Progress) -> None:
        nonlocal last, before
        changed = progress.state != before
        if not changed and progress.elapsed_s - last < (_EVERY_S if not console.is_terminal else 0.2):
            return
        last, before = progress.elapsed_s, progress.state
        left = "" if progress.left_s is None else f", about {clock(progress.left_s)} left"
        failed = f", {progress.failed} failed" if progress.failed else ""
        line = (
            f"{progress.state}: {progress.done} of {progress.planned} requests, concurrency {progress.level}, "
            f"{clock(progress.elapsed_s)}{left}{failed}"
        )
        if console.is_terminal and progress.state != "ended":
            sys.stderr.write(f"\r\x1b[K{line}")
            sys.stderr.flush()
        else:
            console.print(f"\r\x1b[K{line}" if console.is_terminal else line, markup=False)

    return say


def clock(value: float) -> str:
    """Seconds as 45 s, 3 min 20 s or 1 h 5 min."""
    whole = round(value)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def write(path: Path, text: str) -> None:
    """Write a file as a whole: one that was there stays as it was until the new one is complete. Raises StoreError."""
    made: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and not path.is_file():  # a pipe or a terminal can't be replaced
            path.write_text(text, encoding="utf-8", newline="")
            return
        target = path.resolve()
        made = target.with_name(f".{secrets.token_hex(6)}.part")
        made.write_text(text, encoding="utf-8", newline="")
        made.replace(target)
    except OSError as error:
        if made is not None:
            made.unlink(missing_ok=True)
        raise StoreError(f"{path} can't be written: {error.strerror or error}.") from None
