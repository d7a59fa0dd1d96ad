"""The k and method sweep of ``specdemo bench``: engines of our own, restarted for each setting, one file a point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from specdemo.bench.jsonable import jsonable
from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchRecord
from specdemo.bench.report import html
from specdemo.bench.report.sweep_page import sweep_document
from specdemo.bench.sweep import sweep
from specdemo.cli.bench_common import new_file, run_session, write
from specdemo.cli.document import shown
from specdemo.cli.loop import STOPPED
from specdemo.cli.output import calm, print_json, stderr, stdout
from specdemo.cli.together import check_new
from specdemo.compose import Deployment, folders
from specdemo.errors import EngineUnavailable, SpecDemoError, StoreError, UsageError
from specdemo.runs.bench_job import NO_TUNER, Point
from specdemo.runs.bench_store import BenchFile
from specdemo.runs.kept import benchmarks_folder, new_name
from specdemo.settings import Loaded


def points(loaded: Loaded, lengths: Sequence[int] | None, methods: Sequence[str]) -> tuple[Point, ...]:
    """Every method with every length, each once. Raises UsageError for attached engines or impossible lengths."""
    settings = loaded.settings
    if settings.standard.base_url is not None or settings.speculative.base_url is not None:
        raise UsageError(NO_TUNER)
    if lengths is not None and (not lengths or any(not 1 <= k <= 32 for k in lengths)):
        raise UsageError("Draft lengths are whole numbers from 1 to 32.")
    found = (Point(method, k) for method in methods or (None,) for k in lengths or (None,))
    return tuple(dict.fromkeys(found))


def check_folder(folder: Path | None, steps: Sequence[Point]) -> None:
    """Whether a sweep's files can be made in this folder. Raises StoreError."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise StoreError(f"{folder} is no folder; a sweep keeps one file a point in it.")
    for point in steps:
        check_new(folder / f"{point.name}.jsonl")


async def run_sweep(
    loaded: Loaded,
    plan: BenchPlan,
    steps: Sequence[Point],
    out: Path | None,
    written: tuple[Path | None, str],
    *,
    wait: bool,
    as_json: bool,
) -> int:
    """A benchmark a point, then the comparison. A point whose engines fail is left out and named."""
    folder = out or benchmarks_folder(folders(loaded.settings).data) / f"sweep-{new_name(time.time())}"
    console = stderr()
    records: list[BenchRecord] = []
    failed: list[str] = []
    stopped = lost = False
    for number, point in enumerate(steps, 1):
        console.print(f"point {number} of {len(steps)}: {point.name}", markup=False)
        changed = _with(loaded, point)

        def make(deployment: Deployment, point: Point = point, changed: Loaded = changed) -> BenchFile:
            return new_file(changed, plan, folder / f"{point.name}.jsonl", None, deployment.around.hardware)

        try:
            record, ending, _ = await run_session(changed, make, wait=wait, reuse=False)
        except SpecDemoError as error:
            failed.append(f"{point.name}: {error}")
            console.print(calm(f"left out: {failed[-1]}"), markup=False)
            continue
        records.append(record)
        lost = lost or ending.state == "engine_lost"
        if ending.state == "stopped":
            stopped = True
            break
    if not records and failed:
        raise EngineUnavailable(f"No setting could be measured: {failed[0]}")
    found = sweep(records)
    report, language = written
    made = sweep_document(found, language=language)
    console.print(f"Samples: {folder}", markup=False)
    if report is not None:
        write(report, html.render(made))
        console.print(f"Report: {report}", markup=False)
    if as_json:
        print_json({"schema": 1, "kind": "sweep", "folder": str(folder), "sweep": jsonable(found), "left_out": failed})
    else:
        stdout().print(shown(made))
    if stopped:
        return STOPPED
    return 3 if lost or failed else 0


def _with(loaded: Loaded, point: Point) -> Loaded:
    changes = {"speculation": point.method, "k": point.k}
    engine = loaded.settings.engine.model_copy(update={name: v for name, v in changes.items() if v is not None})
    return replace(loaded, settings=loaded.settings.model_copy(update={"engine": engine}))
