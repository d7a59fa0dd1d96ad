"""The Validate tab's handlers: plan with its power, start, stop, and what is to be seen now."""

from __future__ import annotations

import asyncio
from typing import Any

import gradio as gr

from specdemo.bench.estimate import estimate_validation
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.errors import SpecDemoError, StoreError, UsageError
from specdemo.runs.jobs import Job, Jobs
from specdemo.runs.validation_job import ValidationJob, measure_pace
from specdemo.ui import bench_view, plots, validate_view
from specdemo.ui.bench_desk import PaceBook, Seen, View
from specdemo.ui.i18n import Lang, say
from specdemo.ui.results import Results
from specdemo.ui.services import Services
from specdemo.ui.uploads import Uploads
from specdemo.ui.validate_form import ValidateForm


class ValidateDesk:
    """``jobs`` and ``results`` of one page; ``paces`` is shared with the Benchmark tab."""

    def __init__(self, services: Services, jobs: Jobs, results: Results, paces: PaceBook) -> None:
        self._services = services
        self._jobs = jobs
        self._results = results
        self._paces = paces
        self.uploads = Uploads()

    def line(self, form: ValidateForm, visitor: str, lang: Lang) -> str:
        """Size, time and power of the plan, or why it can't run."""
        try:
            plan = self._plan(form, visitor)
        except SpecDemoError as error:
            return bench_view.paragraph(bench_view.told(error, lang), "warn")
        return validate_view.plan(estimate_validation(plan, self._paces.get()), plan, lang)

    async def timed(self, form: ValidateForm, visitor: str, lang: Lang) -> str:
        """The same after two short requests to each engine."""
        try:
            self._services.check_ready()
            engines = self._jobs.shop.engines()
            busy = self._jobs.live
            if busy is not None or engines is None:
                raise UsageError(busy.sentence() if busy else "No engines are connected.")
            self._paces.put(await measure_pace(self._services.registry, engines))
        except SpecDemoError as error:
            return bench_view.paragraph(bench_view.told(error, lang), "error")
        return self.line(form, visitor, lang)

    def start(self, form: ValidateForm, visitor: str) -> None:
        """Begin. Raises SpecDemoError."""
        if self._services.public:
            raise UsageError("This page is open to the public, so nothing long can be started from it.")
        self._services.check_ready()
        job = ValidationJob(
            visitor, self._jobs.shop, self._plan(form, visitor), lengths=form.lengths, anyway=bool(form.anyway)
        )
        self._jobs.start(job)

    def stop(self, visitor: str) -> None:
        """Stop after the round at hand; what was drawn is judged. Raises UsageError for anybody but the starter."""
        self._jobs.stop(visitor)

    def _plan(self, form: ValidateForm, visitor: str) -> ValidationPlan:
        return form.plan(self.uploads.get(visitor) if form.source == "own" else None)

    async def view(self, visitor: str, lang: Lang, seen: Seen, *, said: str = "") -> View:
        """(progress, two plots, result, Start, Stop, menu, mark, timer); unchanged parts are left alone."""
        found = self._jobs.last("validation")
        job = found if isinstance(found, ValidationJob) else None
        busy = self._jobs.live
        if job is not None and not job.live and job.result is not None:
            just = seen.mark.startswith(f"live:{job.name}:")
            if just or (not seen.chosen and not seen.mark):
                seen = Seen(job.name, "", "")
        mine = busy is not None and busy.owner == visitor
        drawn, body, mark = await self._body(job if job is not None and job.live else None, seen, lang)
        return (
            self._top(job, busy, lang, mine=mine, said=said), *drawn, body,
            gr.update(interactive=busy is None),
            gr.update(interactive=mine and busy is job and busy is not None and busy.state != "stopping"),
            self._menu(seen, lang) if mark != seen.mark else gr.skip(),
            mark,
            gr.Timer(active=busy is not None),
        )  # fmt: skip

    def _top(self, job: ValidationJob | None, busy: Job | None, lang: Lang, *, mine: bool, said: str) -> str:
        own = validate_view.progress(job, lang, mine=mine) if job is not None else ""
        return bench_view.standing(job, busy, lang, said=said, own=own)

    async def _body(self, job: ValidationJob | None, seen: Seen, lang: Lang) -> tuple[list[Any], Any, str]:
        same: list[Any] = [gr.skip(), gr.skip()]
        if job is not None:
            told = job.progress
            mark = f"live:{job.name}:{told.rounds if told else 0}"
            if mark == seen.mark:
                return same, gr.skip(), mark
            drawn = validate_view.drawings(told.standard, told.speculative, lang) if told else (None, None)
            return [plots.plot(spec) for spec in drawn], "", mark
        if not seen.chosen:
            mark = f"none:{lang}"
            if mark == seen.mark:
                return same, gr.skip(), mark
            return [plots.plot(None)] * 2, bench_view.paragraph(say(lang, "validate_empty")), mark
        mark = f"kept:{seen.chosen}:{lang}"
        if mark == seen.mark:
            return same, gr.skip(), mark
        try:
            result = await self._results.validation(seen.chosen)
        except StoreError as error:
            return (
                [plots.plot(None)] * 2,
                bench_view.paragraph(bench_view.told(error, lang), "error"),
                f"lost:{seen.chosen}",
            )
        drawn = validate_view.drawings(result.standard, result.speculative, lang)
        body = await asyncio.to_thread(validate_view.result, result, seen.chosen, lang)
        return [plots.plot(spec) for spec in drawn], body, mark

    def _menu(self, seen: Seen, lang: Lang) -> Any:
        kept = self._results.validations()
        chosen = seen.chosen if seen.chosen in {one.name for one in kept} else None
        return gr.update(choices=bench_view.choices(kept, lang), value=chosen)
