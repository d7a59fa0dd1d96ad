"""The k and method sweep of ``specdemo bench``: engines of our own, restarted for each setting, one file a point."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
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
from specdemo.cli.output import print_json, stderr, stdout
from specdemo.compose import Deployment, folders
from specdemo.errors import UsageError
from specdemo.runs.bench_store import BenchFile
from specdemo.settings import Loaded


@dataclass(frozen=True, slots=True)
class Point:
    """One setting: a speculation preset (None: the one that is set) and a draft length (None: its own)."""

    method: str | None
    k: int | None

    @property
    def name(self) -> str:
        """For the file."""
        plain = "".join(c if c.isalnum() else "-" for c in self.method or "set")[:40]
        return plain if self.k is None else f"{plain}-k{self.k}"


def points(loaded: Loaded, lengths: Sequence[int], methods: Sequence[str]) -> tuple[Point, ...]:
    """Every method with every length. Raises UsageError for attached engines or impossible lengths."""
    settings = loaded.settings
    if settings.standard.base_url is not None or settings.speculative.base_url is not None:
        raise UsageError("A sweep restarts the engines, so it needs engines that specdemo starts, not attached ones.")
    if any(not 1 <= k <= 32 for k in lengths):
        raise UsageError("Draft lengths are whole numbers from 1 to 32.")
    return tuple(Point(method, k) for method in methods or (None,) for k in lengths or (None,))


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
    stamp = datetime.fromtimestamp(time.time(), UTC).strftime("%Y%m%d-%H%M%S")
    folder = out or folders(loaded.settings).data / "benchmarks" / f"sweep-{stamp}"
    console = stderr()
    records: list[BenchRecord] = []
    stopped = lost = False
    for number, point in enumerate(steps, 1):
        console.print(f"point {number} of {len(steps)}: {point.name}", markup=False)
        changed = _with(loaded, point)

        def make(deployment: Deployment, point: Point = point, changed: Loaded = changed) -> BenchFile:
            return new_file(changed, plan, folder / f"{point.name}.jsonl", None, deployment.around.hardware)

        record, ending, _ = await run_session(changed, make, wait=wait, reuse=False)
        records.append(record)
        lost = lost or ending.state == "engine_lost"
        if ending.state == "stopped":
            stopped = True
            break
    found = sweep(records)
    report, language = written
    made = sweep_document(found, language=language)
    console.print(f"Samples: {folder}", markup=False)
    if report is not None:
        write(report, html.render(made))
        console.print(f"Report: {report}", markup=False)
    if as_json:
        print_json({"schema": 1, "kind": "sweep", "folder": str(folder), "sweep": jsonable(found)})
    else:
        stdout().print(shown(made))
    if stopped:
        return STOPPED
    return 3 if lost else 0


def _with(loaded: Loaded, point: Point) -> Loaded:
    changes = {"speculation": point.method, "k": point.k}
    engine = loaded.settings.engine.model_copy(update={name: v for name, v in changes.items() if v is not None})
    return replace(loaded, settings=loaded.settings.model_copy(update={"engine": engine}))
