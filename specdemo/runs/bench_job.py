"""A benchmark or a sweep as a job: the same files, runner and numbers as on the command line."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Ending
from specdemo.bench.sample import Sample
from specdemo.bench.summary import Summary, summarise
from specdemo.core.events import Side
from specdemo.errors import SpecDemoError, UsageError
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.benchmark import BenchAround, Benchmark, Progress
from specdemo.runs.jobs import Job, Kind, Workshop
from specdemo.runs.kept import BENCHMARKS, new_name
from specdemo.runs.ports import Engine

NO_TUNER = "A sweep restarts the engines, so it needs engines that specdemo starts, not attached ones."


@dataclass(frozen=True, slots=True)
class Point:
    """One setting of a sweep: a speculation preset (None: the one that is set) and a draft length (None: its own)."""

    method: str | None
    k: int | None

    @property
    def name(self) -> str:
        """For the file; a method of other signs, or a long one, gets a number that tells it from its like."""
        method = self.method or "set"
        plain = "".join(c if c.isalnum() or c == "_" else "-" for c in method)[:40]
        if plain != method:
            plain = f"{plain}-{zlib.crc32(method.encode('utf-8', 'replace')):08x}"
        return plain if self.k is None else f"{plain}-k{self.k}"


@dataclass
class _Session:
    """A benchmark file and the runner that fills it."""

    path: Path
    record: BenchRecord
    runner: Benchmark | None = None
    progress: Progress | None = None

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All requests so far."""
        return self.runner.samples if self.runner is not None else self.record.samples


class BenchJob(Job):
    """One benchmark. ``path`` is an unfinished file to go on with, else a new one is written."""

    kind: ClassVar[Kind] = "bench"

    def __init__(
        self, owner: str, shop: Workshop, plan: BenchPlan, *, dataset: str | None = None, wait_quiet: bool = True
    ) -> None:
        now = shop.wall()
        super().__init__(new_name(now), owner)
        self._shop = shop
        self._quiet = wait_quiet
        header = BenchHeader(self.name, now, plan, shop.version, shop.hardware, dataset)
        self._session = _Session(shop.folder / BENCHMARKS / f"{self.name}.jsonl", BenchRecord(header))
        self._fresh = True
        self.ending: Ending | None = None

    @classmethod
    def resumed(cls, owner: str, shop: Workshop, path: Path, *, wait_quiet: bool = True) -> BenchJob:
        """Go on with a kept, unfinished benchmark. Raises StoreError, or UsageError for one that is complete."""
        record = load(path)
        if record.finished:
            raise UsageError("This benchmark is complete; there is nothing left to measure.")
        job = cls(owner, shop, record.header.plan, wait_quiet=wait_quiet)
        job.name = path.stem
        job._session = _Session(path, record)
        job._fresh = False
        return job

    @property
    def plan(self) -> BenchPlan:
        """What is measured."""
        return self._session.record.header.plan

    @property
    def path(self) -> Path:
        """The file that keeps it."""
        return self._session.path

    @property
    def progress(self) -> Progress | None:
        """How far it is, None before the first report."""
        return self._session.progress

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All requests so far."""
        return self._session.samples

    @property
    def left_s(self) -> float | None:
        """As the runner tells, but not beyond the time budget."""
        progress, budget = self.progress, self.plan.budget_s
        if progress is None or progress.left_s is None:
            return None
        return progress.left_s if budget is None else min(progress.left_s, max(0.0, budget - progress.elapsed_s))

    def summary(self) -> Summary:
        """Results so far (identity of split prompts is judged at the end only)."""
        return summarise(self.plan, self.samples, planned=self.progress.planned if self.progress else 0)

    def end(self) -> None:
        if self._session.runner is not None:
            self._session.runner.stop()

    def hold(self) -> None:
        if self._session.runner is not None:
            self._session.runner.pause()

    def go_on(self) -> None:
        if self._session.runner is not None:
            self._session.runner.resume()

    async def work(self, engines: Mapping[Side, Engine]) -> None:
        header = self._session.record.header
        file = BenchFile.create(self.path, header) if self._fresh else BenchFile.reopen(self.path)
        self.ending = await _run(self._session, file, engines, self._shop, quiet=self._quiet)


@dataclass
class _Failed:
    """A point of a sweep that has no result, and why."""

    point: Point
    reason: str


class SweepJob(Job):
    """A benchmark a point, with the speculative engine restarted before each; engines are put back at the end."""

    kind: ClassVar[Kind] = "sweep"

    def __init__(
        self, owner: str, shop: Workshop, plan: BenchPlan, points: Sequence[Point], *, wait_quiet: bool = True
    ) -> None:
        self._now = shop.wall()
        super().__init__(f"sweep-{new_name(self._now)}", owner)
        if shop.tuner is None:
            raise UsageError(NO_TUNER)
        self._tuner = shop.tuner
        self._shop = shop
        self._quiet = wait_quiet
        self.plan = plan
        self.points = tuple(dict.fromkeys(points))
        self.path = shop.folder / BENCHMARKS / self.name
        self.at = 0
        self.failed: list[_Failed] = []
        self.records: list[BenchRecord] = []
        self._session: _Session | None = None
        self._halt = asyncio.Event()
        self._spent: list[float] = []

    @property
    def progress(self) -> Progress | None:
        """Of the point at hand; None while its engine is loading."""
        return self._session.progress if self._session is not None else None

    @property
    def point(self) -> Point | None:
        """The setting at hand."""
        return self.points[self.at] if self.at < len(self.points) else None

    @property
    def left_s(self) -> float | None:
        """From the points that are done; None during the first."""
        if not self._spent:
            return None
        return sum(self._spent) / len(self._spent) * (len(self.points) - self.at)

    def end(self) -> None:
        self._halt.set()
        if self._session is not None and self._session.runner is not None:
            self._session.runner.stop()

    def hold(self) -> None:
        if self._session is not None and self._session.runner is not None:
            self._session.runner.pause()

    def go_on(self) -> None:
        if self._session is not None and self._session.runner is not None:
            self._session.runner.resume()

    async def work(self, engines: Mapping[Side, Engine]) -> None:
        try:
            for number, point in enumerate(self.points):
                self.at = number
                began = self._shop.clock()
                try:
                    await self._point(point, engines)
                except SpecDemoError as error:
                    self.failed.append(_Failed(point, str(error)))
                if self._halt.is_set():
                    break
                self._spent.append(self._shop.clock() - began)
            else:
                self.at = len(self.points)
        finally:
            self._session = None
            await self._put_back()
        if not self.records and self.failed and not self._halt.is_set():
            raise UsageError(f"No setting could be measured: {self.failed[0].point.name}: {self.failed[0].reason}")

    async def _point(self, point: Point, engines: Mapping[Side, Engine]) -> None:
        await self._tune(point)
        if self._halt.is_set():
            return
        header = BenchHeader(
            f"{self.name}/{point.name}", self._shop.wall(), self.plan, self._shop.version, self._shop.hardware
        )
        session = _Session(self.path / f"{point.name}.jsonl", BenchRecord(header))
        file = BenchFile.create(session.path, header)
        self._session = session
        ending = await _run(session, file, engines, self._shop, quiet=self._quiet)
        record = load(session.path)
        if record.samples:
            self.records.append(record)
        if ending.state == "engine_lost":
            self.failed.append(_Failed(point, ending.reason))

    async def _tune(self, point: Point) -> None:
        """Until the engine is ready, or a stop comes."""
        tuning = asyncio.ensure_future(self._tuner.speculate(point.method, point.k))
        halted = asyncio.ensure_future(self._halt.wait())
        try:
            await asyncio.wait({tuning, halted}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            halted.cancel()
            if not tuning.done():
                tuning.cancel()
                await asyncio.wait({tuning})
        if not tuning.cancelled():
            tuning.result()

    async def _put_back(self) -> None:
        try:
            await asyncio.shield(asyncio.ensure_future(self._tuner.speculate(None, None)))
        except SpecDemoError as error:
            self.error = f"The sweep is over, but the speculative engine did not come back: {error}"


async def _run(
    session: _Session, file: BenchFile, engines: Mapping[Side, Engine], shop: Workshop, *, quiet: bool
) -> Ending:
    def tell(progress: Progress) -> None:
        session.progress = progress

    around = BenchAround(
        clock=shop.clock,
        wall=shop.wall,
        busy=shop.busy if quiet else None,
        on_progress=tell,
        commands=shop.commands(),
        memory=shop.memory,
    )
    try:
        session.runner = Benchmark(session.record, file, engines, around)
        return await session.runner.run()
    finally:
        file.close()
