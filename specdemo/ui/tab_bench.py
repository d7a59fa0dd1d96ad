"""The Benchmark tab: what is asked, the design, the plan's size before a start, the running job, the results."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import gradio as gr

from specdemo.bench.plan import LEVELS
from specdemo.bench.workloads import shipped
from specdemo.core.choice import K_CHOICES
from specdemo.errors import SpecDemoError
from specdemo.ui.asked import lang_of, visitor_of
from specdemo.ui.bench_desk import BenchDesk, Seen, View
from specdemo.ui.bench_form import BenchForm
from specdemo.ui.file_box import LIGHT, LOOK_S, FileBox, file_box, wire_file
from specdemo.ui.i18n import say
from specdemo.ui.services import Services


@dataclass(slots=True)
class _Tab:
    """The components that the wiring needs."""

    tab: gr.Tab
    source: gr.Radio
    box: FileBox
    fields: list[Any] = field(default_factory=list)
    plan: gr.HTML | None = None
    estimate: gr.Button | None = None
    shown: list[Any] = field(default_factory=list)

    @property
    def seen(self) -> list[Any]:
        """Chosen result, the one to compare with, the mark of the last view."""
        return self.shown[10:13]


def build(demo: gr.Blocks, services: Services, desk: BenchDesk, tr: gr.I18n) -> None:
    """The tab and its wiring; call it inside ``gr.Tabs``."""
    with gr.Tab(tr("tab_bench"), id="bench", elem_id="sd-tab-bench") as tab, gr.Column(elem_id="sd-bench"):
        gr.Markdown(tr("bench_about"))
        with gr.Row(equal_height=False, elem_classes="sd-setup"):
            with gr.Column(scale=1, min_width=320):
                view = _asked(tab, tr)
            with gr.Column(scale=1, min_width=320):
                design = _design(services, tr, sweeps=desk.sweeps)
        view.fields = [*view.fields, *design]
        view.plan = gr.HTML("", elem_id="sd-bench-plan", apply_default_css=False)
        _outcome(view, tr)
    _wire(demo, view, desk)


def _asked(tab: gr.Tab, tr: gr.I18n) -> _Tab:
    source, box = file_box(tr, "bench")
    with gr.Group(elem_id="sd-bench-shipped") as group:
        names = [workload.name for workload in shipped()]
        workloads = gr.CheckboxGroup(
            [(tr(f"chip_{name}"), name) for name in names],
            value=names, label=tr("bench_workloads"), elem_id="sd-bench-workloads",
        )  # fmt: skip
        languages = gr.CheckboxGroup(
            [("English", "en"), ("中文", "zh")], value=["en", "zh"], label=tr("bench_languages"),
            elem_id="sd-bench-languages",
        )  # fmt: skip
    prompts = gr.Slider(
        1, 100, value=4, step=1, label=tr("bench_prompts"), info=tr("bench_prompts_info"), elem_id="sd-bench-prompts"
    )
    source.change(lambda value: gr.update(visible=value != "own"), source, group, **LIGHT)
    return _Tab(tab, source, box, [source, workloads, languages, prompts, box.accept])


def _design(services: Services, tr: gr.I18n, *, sweeps: bool) -> list[Any]:
    """The fields after the prompts, in the order of ``bench_form.BenchForm``."""
    most = min(1024, services.max_tokens)
    levels = gr.CheckboxGroup(
        [(str(level), level) for level in LEVELS], value=[1], label=tr("bench_levels"), info=tr("bench_levels_info"),
        elem_id="sd-bench-levels",
    )  # fmt: skip
    with gr.Row():
        tokens = gr.Slider(
            8, most, value=min(128, most), step=8, label=tr("bench_tokens"),
            elem_id="sd-bench-tokens", min_width=150,
        )  # fmt: skip
        minutes = gr.Number(
            10, label=tr("bench_minutes"), info=tr("bench_minutes_info"), minimum=0, elem_id="sd-bench-minutes",
            min_width=150,
        )  # fmt: skip
    null = gr.Checkbox(False, label=tr("bench_null"), info=tr("bench_null_info"), elem_id="sd-bench-null")
    with gr.Accordion(tr("bench_more"), open=False, elem_id="sd-bench-more"):
        with gr.Row():
            repeats = gr.Number(
                1, label=tr("bench_repeats"), info=tr("bench_repeats_info"), minimum=1, precision=0, min_width=150
            )
            seed = gr.Number(1, label=tr("bench_seed"), minimum=0, precision=0, min_width=150)
        with gr.Row():
            warmup = gr.Number(2, label=tr("bench_warmup"), minimum=0, precision=0, min_width=150)
            control = gr.Number(5, label=tr("bench_control"), minimum=0, precision=0, min_width=150)
        with gr.Row():
            load_prompts = gr.Number(4, label=tr("bench_load_prompts"), minimum=1, precision=0, min_width=150)
            rate = gr.Number(None, label=tr("bench_rate"), info=tr("bench_rate_info"), minimum=0, min_width=150)
        own_length = gr.Checkbox(False, label=tr("bench_own_length"), info=tr("bench_own_length_info"))
        quiet = gr.Checkbox(True, label=tr("bench_quiet"))
    with gr.Accordion(tr("bench_sweep"), open=False, visible=sweeps, elem_id="sd-bench-sweep"):
        lengths = gr.CheckboxGroup(
            [(str(k), k) for k in range(K_CHOICES[0], K_CHOICES[1] + 1)], value=[], label=tr("bench_lengths"),
            info=tr("bench_sweep_info"), elem_id="sd-bench-lengths",
        )  # fmt: skip
        methods = gr.CheckboxGroup([], value=[], label=tr("bench_methods"), visible=False, elem_id="sd-bench-methods")
    return [
        levels, repeats, tokens, minutes, null, own_length, warmup, control, load_prompts, rate, seed, quiet, lengths,
        methods,
    ]  # fmt: skip


def _outcome(view: _Tab, tr: gr.I18n) -> None:
    with gr.Row(elem_classes="sd-actions"):
        view.estimate = gr.Button(tr("bench_estimate"), elem_id="sd-bench-estimate", min_width=110)
        start = gr.Button(tr("bench_start"), variant="primary", elem_id="sd-bench-start", min_width=110)
        pause = gr.Button(tr("bench_pause"), interactive=False, elem_id="sd-bench-pause", min_width=90)
        stop = gr.Button(tr("stop"), variant="stop", interactive=False, elem_id="sd-bench-stop", min_width=80)
    progress = gr.HTML("", elem_id="sd-bench-progress", apply_default_css=False)
    with gr.Row(elem_classes="sd-kept"):
        kept = gr.Dropdown([], label=tr("bench_kept"), elem_id="sd-bench-kept", min_width=240, scale=2)
        versus = gr.Dropdown([], label=tr("bench_versus"), elem_id="sd-bench-versus", min_width=240, scale=2)
        resume = gr.Button(tr("bench_resume"), visible=False, elem_id="sd-bench-resume", min_width=110, scale=1)
    head = gr.HTML("", elem_id="sd-bench-head", apply_default_css=False)
    drawn = [_plot(tr, "workloads")]
    with gr.Row(elem_classes="sd-plots"):
        drawn += [_plot(tr, "speed"), _plot(tr, "rates")]
    result = gr.HTML("", elem_id="sd-bench-result", apply_default_css=False)
    mark = gr.State("")
    timer = gr.Timer(LOOK_S, active=False)
    view.shown = [progress, head, *drawn, result, start, pause, stop, resume, kept, versus, mark, timer]


def _plot(tr: gr.I18n, name: str) -> gr.Plot:
    return gr.Plot(
        label=tr(f"bench_plot_{name}"), show_label=False, visible=False, elem_id=f"sd-bench-plot-{name}",
        elem_classes="sd-plot", min_width=300,
    )  # fmt: skip


def _wire(demo: gr.Blocks, view: _Tab, desk: BenchDesk) -> None:
    _, _, _, _, _, _, start, pause, stop, resume, kept, versus, _, timer = view.shown
    assert view.plan is not None  # noqa: S101 - made by build
    assert view.estimate is not None  # noqa: S101 - made by build

    async def looked(chosen: Any, other: Any, mark: Any, request: gr.Request) -> View:
        return await desk.view(visitor_of(request).key, lang_of(request), _seen(chosen, other, mark))

    def acting(act: Callable[[str, Seen], Awaitable[None] | None]) -> Any:
        async def acted(chosen: Any, other: Any, mark: Any, request: gr.Request) -> View:
            visitor, seen, said = visitor_of(request).key, _seen(chosen, other, mark), ""
            try:
                waiting = act(visitor, seen)
                if waiting is not None:
                    await waiting
            except SpecDemoError as error:
                said = str(error)
            return await desk.view(visitor, lang_of(request), seen, said=said)

        return acted

    async def started(request: gr.Request, *values: Any) -> View:
        visitor, seen, said = visitor_of(request).key, _seen(*values[-3:]), ""
        try:
            await desk.start(_form(values[:-3]), visitor)
        except SpecDemoError as error:
            said = str(error)
        return await desk.view(visitor, lang_of(request), seen, said=said)

    async def planned(request: gr.Request, *values: Any) -> str:
        return await desk.line(_form(values), visitor_of(request).key, lang_of(request))

    async def timed(request: gr.Request, *values: Any) -> str:
        return await desk.timed(_form(values), visitor_of(request).key, lang_of(request))

    async def arrived(chosen: Any, other: Any, mark: Any, request: gr.Request) -> tuple[Any, ...]:
        lang = lang_of(request)
        methods = desk.methods()
        offered = gr.update(
            choices=[(say(lang, f"bench_method_{name}"), name) for name in methods], visible=len(methods) > 1
        )
        return (*await looked(chosen, other, mark, request), offered)

    seen = view.seen
    start.click(started, [*view.fields, *seen], view.shown, **LIGHT)
    pause.click(acting(lambda visitor, _: desk.pause(visitor)), seen, view.shown, **LIGHT)
    stop.click(acting(lambda visitor, _: desk.stop(visitor)), seen, view.shown, **LIGHT)
    resume.click(acting(lambda visitor, now: desk.go_on(now.chosen, visitor)), seen, view.shown, **LIGHT)
    timer.tick(looked, seen, view.shown, **LIGHT)
    for menu in (kept, versus):
        menu.input(looked, seen, view.shown, **LIGHT)
    view.tab.select(arrived, seen, [*view.shown, view.fields[-1]], **LIGHT)
    view.tab.select(planned, view.fields, view.plan, **LIGHT)
    wire_file(view.source, view.box, desk.uploads)
    view.box.preview.change(planned, view.fields, view.plan, **LIGHT)
    gr.on([one.change for one in view.fields], planned, view.fields, view.plan, trigger_mode="always_last", **LIGHT)
    view.estimate.click(
        timed, view.fields, view.plan, api_visibility="private", show_progress="minimal",
        show_progress_on=[view.plan], trigger_mode="once",
    )  # fmt: skip
    demo.load(looked, seen, view.shown, **LIGHT)


def _seen(chosen: Any, other: Any, mark: Any) -> Seen:
    return Seen(*(value if isinstance(value, str) else "" for value in (chosen, other, mark)))


def _form(values: tuple[Any, ...]) -> BenchForm:
    """``view.fields`` in their order."""
    source, workloads, languages, prompts, accept, levels, repeats, tokens, minutes, *rest = values
    return BenchForm(source, workloads, languages, prompts, accept, levels, repeats, tokens, minutes, *rest)
