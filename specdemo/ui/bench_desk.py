"""The Benchmark tab's handlers: plan, estimate, start, pause, stop, resume, and what is to be seen now.

A handler holds nothing of one visitor but the file that they handed in; the job itself lives in ``runs.jobs``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from specdemo.bench.estimate import Paces, estimate, paces_of
from specdemo.bench.plan import BenchPlan
from specdemo.bench.summary import Summary
from specdemo.bench.sweep import Sweep, sweep
from specdemo.errors import SpecDemoError, StoreError, UsageError
from specdemo.runs.bench_job import NO_TUNER, BenchJob, SweepJob
from specdemo.runs.jobs import Job, Jobs
from specdemo.runs.validation_job import measure_pace
from specdemo.ui import bench_view, plots
from specdemo.ui.bench_form import BenchForm
from specdemo.ui.i18n import Lang, say
from specdemo.ui.results import Bench, Results
from specdemo.ui.services import Services
from specdemo.ui.uploads import Uploads

View = tuple[Any, ...]
"""progress, verdict, three plots, tables, Start, Pause, Stop, Resume, menu, second menu, what was seen, timer"""
REDRAW_S = 4.0
REST = 25.0
"""Between two summaries of a running job lie at least REDRAW_S seconds, and this many times as long as one takes."""
_SAME = [gr.skip()] * 3
_HIDDEN = [plots.plot(None)] * 3
_KEEP = (gr.skip(), gr.skip())


@dataclass(frozen=True, slots=True)
class Seen:
    """What a page shows now, as it sent it: chosen result, the one to compare with, mark of the last view."""

    chosen: str = ""
    versus: str = ""
    mark: str = ""


@dataclass(frozen=True, slots=True)
class _Held:
    """A running job's summary, good until then (s, monotonic)."""

    job: str
    summary: Summary
    until: float


class PaceBook:
    """The pace of the engines as they are configured now; forgotten when that changes."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._known: dict[Any, Paces] = {}

    def get(self) -> Paces | None:
        """What was measured on these engines."""
        return self._known.get(self._key())

    def put(self, paces: Paces) -> None:
        """Remember it."""
        self._known[self._key()] = paces

    def _key(self) -> Any:
        control = self._services.control
        return tuple((s.model, s.method, s.k, s.base_url) for s in control.statuses()) if control else ()


class BenchDesk:
    """``jobs`` and ``results`` of one page; ``paces`` is shared with the Validate tab."""

    def __init__(self, services: Services, jobs: Jobs, results: Results, paces: PaceBook) -> None:
        self._services = services
        self._jobs = jobs
        self._results = results
        self._paces = paces
        self.uploads = Uploads()
        self._summary: _Held | None = None

    @property
    def sweeps(self) -> bool:
        """Whether this page may restart the speculative engine for a sweep."""
        return self._jobs.shop.tuner is not None and self._services.controllable

    def methods(self) -> tuple[str, ...]:
        """Methods that a sweep can run here; empty unless the engines are our own."""
        tuner = self._jobs.shop.tuner
        return tuner.methods if tuner is not None and self.sweeps else ()

    # ------------------------------------------------------------------ before a start

    async def line(self, form: BenchForm, visitor: str, lang: Lang) -> str:
        """How large the plan is and how long it will take, or why it can't run."""
        try:
            plan, points = self._plan(form, visitor), form.points()
            found = await asyncio.to_thread(estimate, plan, self._paces.get())
        except SpecDemoError as error:
            return bench_view.paragraph(bench_view.told(error, lang), "warn")
        line = bench_view.plan_line(found, lang)
        if points:
            line += bench_view.paragraph(say(lang, "bench_plan_points", n=len(points)))
        return line

    async def timed(self, form: BenchForm, visitor: str, lang: Lang) -> str:
        """The same after two short requests to each engine."""
        try:
            await self.measure()
        except SpecDemoError as error:
            return bench_view.paragraph(bench_view.told(error, lang), "error")
        return await self.line(form, visitor, lang)

    async def measure(self) -> None:
        """Find the pace of both engines. Raises SpecDemoError."""
        self._services.check_ready()
        engines = self._jobs.shop.engines()
        if self._jobs.live is not None or engines is None:
            raise UsageError(self._jobs.live.sentence() if self._jobs.live else "No engines are connected.")
        self._paces.put(await measure_pace(self._services.registry, engines))

    def _plan(self, form: BenchForm, visitor: str) -> BenchPlan:
        dataset = self.uploads.get(visitor) if form.source == "own" else None
        return form.plan(dataset, most_tokens=self._services.max_tokens)

    # ------------------------------------------------------------------ control

    async def start(self, form: BenchForm, visitor: str) -> None:
        """Begin a benchmark or a sweep. Raises SpecDemoError."""
        self._allowed()
        plan, points = self._plan(form, visitor), form.points()
        await asyncio.to_thread(
            estimate, plan, None
        )  # lays the plan out: what is too large is told before anything runs
        dataset = self.uploads.get(visitor).name if form.source == "own" else None
        shop, quiet = self._jobs.shop, bool(form.wait_quiet)
        job: Job
        if points:
            if not self.sweeps:
                raise UsageError(NO_TUNER)
            if plan.null:
                raise UsageError("A null test never asks the speculative engine, so it can't be swept; choose one.")
            job = SweepJob(visitor, shop, plan, points, wait_quiet=quiet)
        else:
            job = BenchJob(visitor, shop, plan, dataset=dataset, wait_quiet=quiet)
        self._jobs.start(job)

    def go_on(self, name: str, visitor: str) -> None:
        """Resume a kept, unfinished benchmark. Raises SpecDemoError."""
        self._allowed()
        self._jobs.start(BenchJob.resumed(visitor, self._jobs.shop, self._results.path(name)))

    def pause(self, visitor: str) -> None:
        """Pause, or go on after a pause. Raises UsageError for anybody but the starter."""
        job = self._jobs.live
        if job is not None and job.state == "paused":
            self._jobs.resume(visitor)
        else:
            self._jobs.pause(visitor)

    def stop(self, visitor: str) -> None:
        """Stop; what was measured is kept. Raises UsageError for anybody but the starter."""
        self._jobs.stop(visitor)

    def _allowed(self) -> None:
        if self._services.public:
            raise UsageError("This page is open to the public, so nothing long can be started from it.")
        self._services.check_ready()

    # ------------------------------------------------------------------ what is to be seen

    async def view(self, visitor: str, lang: Lang, seen: Seen, *, said: str = "") -> View:
        """Everything as it is now; parts that have not changed since ``seen`` are left alone. ``said`` is an error."""
        job = self._jobs.last("bench", "sweep")
        busy = self._jobs.live
        live = job is not None and job.live
        if job is not None and not live and seen.mark.startswith(f"live:{job.name}:"):
            seen = Seen(job.name, "", "")  # it has just ended: its result is what is wanted now
            self._learn(job)
        elif job is not None and not live and not seen.chosen and not seen.mark and _has_result(job):
            seen = Seen(job.name, "", "")
        mine = busy is not None and busy.owner == visitor
        top = self._top(job, busy, lang, mine=mine, said=said)
        drawn, body, mark, unfinished = await self._body(job if live else None, seen, lang)
        return (
            top, body[0], *drawn, body[1],
            gr.update(interactive=busy is None),
            gr.update(
                interactive=mine and busy is not None and busy.state in ("running", "paused"),
                value=say(lang, "bench_go_on" if busy is not None and busy.state == "paused" else "bench_pause"),
            ),
            gr.update(interactive=mine and busy is not None and busy.state != "stopping"),
            gr.update(visible=unfinished and busy is None),
            *self._menus(seen, lang, changed=mark != seen.mark),
            mark,
            gr.Timer(active=busy is not None),
        )  # fmt: skip

    def _top(self, job: Job | None, busy: Job | None, lang: Lang, *, mine: bool, said: str) -> str:
        own = bench_view.progress(job, lang, mine=mine) if job is not None else ""
        return bench_view.standing(job, busy, lang, said=said, own=own)

    def _learn(self, job: Job) -> None:
        # At an open rate requests overlap, and a null test has one engine only: neither is a pace.
        if not isinstance(job, BenchJob) or job.plan.null or job.plan.rate:
            return
        found = paces_of(job.samples)
        if found is not None:
            self._paces.put(found)

    async def _body(self, job: Job | None, seen: Seen, lang: Lang) -> tuple[Sequence[Any], tuple[Any, Any], str, bool]:
        """(plots, what stands above and below them, mark, whether it can be resumed)."""
        if job is not None:
            return await self._running(job, seen, lang)
        if not seen.chosen:
            mark = f"none:{lang}"
            if mark == seen.mark:
                return _SAME, _KEEP, mark, False
            return _HIDDEN, (bench_view.paragraph(say(lang, "bench_empty")), ""), mark, False
        try:
            return await self._chosen(seen, lang)
        except StoreError as error:
            return (
                _HIDDEN,
                (bench_view.paragraph(bench_view.told(error, lang), "error"), ""),
                f"lost:{seen.chosen}",
                False,
            )

    async def _running(self, job: Job, seen: Seen, lang: Lang) -> tuple[Sequence[Any], tuple[Any, Any], str, bool]:
        if isinstance(job, SweepJob):
            mark = f"live:{job.name}:{len(job.records)}"
            if mark == seen.mark:
                return _SAME, _KEEP, mark, False
            found = await asyncio.to_thread(sweep, list(job.records))
            return [plots.plot(spec) for spec in bench_view.swept_drawings(found, lang)], ("", ""), mark, False
        assert isinstance(job, BenchJob)  # noqa: S101 - the two kinds that ``last`` was asked for
        summary = await self._summarised(job)
        mark = f"live:{job.name}:{summary.done}"
        if mark == seen.mark:
            return _SAME, _KEEP, mark, False
        drawn = [plots.plot(spec) for spec in bench_view.drawings(summary, lang)]
        return drawn, (bench_view.so_far(summary, lang), ""), mark, False

    async def _summarised(self, job: BenchJob) -> Summary:
        """One summary for all who look, made beside the loop that stamps arrivals, and seldom: it costs time there."""
        held = self._summary
        if held is None or held.job != job.name or time.monotonic() >= held.until:
            began = time.monotonic()
            found = await asyncio.to_thread(job.summary)
            ended = time.monotonic()
            held = self._summary = _Held(job.name, found, ended + max(REDRAW_S, REST * (ended - began)))
        return held.summary

    async def _chosen(self, seen: Seen, lang: Lang) -> tuple[Sequence[Any], tuple[Any, Any], str, bool]:
        found = await self._results.bench(seen.chosen)
        unfinished = isinstance(found, Bench) and not found.record.finished
        done = found.summary.done if isinstance(found, Bench) else len(found.points)
        checked = found.validation.started_at if isinstance(found, Bench) and found.validation else 0
        mark = f"kept:{seen.chosen}:{seen.versus}:{done}:{checked:.0f}:{lang}"
        if mark == seen.mark:
            return _SAME, _KEEP, mark, unfinished
        if isinstance(found, Sweep):
            drawn = bench_view.swept_drawings(found, lang)
            body = await asyncio.to_thread(bench_view.swept, found, seen.chosen, lang)
            return [plots.plot(spec) for spec in drawn], body, mark, False
        other = await self._results.bench(seen.versus) if seen.versus else None
        drawn = bench_view.drawings(found.summary, lang)
        if isinstance(other, Bench):
            body = await asyncio.to_thread(
                bench_view.compared, found.record, other.record, (seen.chosen, seen.versus), lang
            )
        else:
            body = await asyncio.to_thread(
                bench_view.result, found.record, found.summary, seen.chosen, lang, found.validation
            )
        return [plots.plot(spec) for spec in drawn], body, mark, unfinished

    def _menus(self, seen: Seen, lang: Lang, *, changed: bool) -> tuple[Any, Any]:
        if not changed:
            return gr.skip(), gr.skip()
        kept = self._results.benchmarks()
        names = {one.name for one in kept}
        listed = bench_view.choices(kept, lang)
        others = [(say(lang, "bench_nothing"), ""), *bench_view.choices([k for k in kept if not k.is_sweep], lang)]
        return (
            gr.update(choices=listed, value=seen.chosen if seen.chosen in names else None),
            gr.update(choices=others, value=seen.versus if seen.versus in names else ""),
        )


def _has_result(job: Job) -> bool:
    if isinstance(job, BenchJob):
        return bool(job.samples)
    return isinstance(job, SweepJob) and bool(job.records)
