"""The Validate tab: which settings are tested, on what, how much that can find, the running test, the verdict."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gradio as gr

from specdemo.bench.workloads import sampling_prompts
from specdemo.errors import SpecDemoError
from specdemo.ui.asked import lang_of, visitor_of
from specdemo.ui.bench_desk import Seen, View
from specdemo.ui.file_box import LIGHT, LOOK_S, file_box, wire_file
from specdemo.ui.services import Services
from specdemo.ui.validate_desk import ValidateDesk
from specdemo.ui.validate_form import ValidateForm


def build(demo: gr.Blocks, services: Services, desk: ValidateDesk, tr: gr.I18n) -> None:
    """The tab and its wiring; call it inside ``gr.Tabs``."""
    with gr.Tab(tr("tab_validate"), id="validate", elem_id="sd-tab-validate") as tab, gr.Column(elem_id="sd-validate"):
        gr.Markdown(tr("validate_about"))
        with gr.Row(equal_height=False, elem_classes="sd-setup"):
            with gr.Column(scale=1, min_width=320):
                settings, own, mine = _settings(tr)
                source, box = file_box(tr, "validate")
            with gr.Column(scale=1, min_width=320):
                rest = _design(services, tr)
        fields = [settings, *mine, source, rest[0], box.accept, *rest[1:]]
        plan = gr.HTML("", elem_id="sd-validate-plan", apply_default_css=False)
        with gr.Row(elem_classes="sd-actions"):
            estimate = gr.Button(tr("bench_estimate"), elem_id="sd-validate-estimate", min_width=110)
            start = gr.Button(tr("validate_start"), variant="primary", elem_id="sd-validate-start", min_width=110)
            stop = gr.Button(tr("stop"), variant="stop", interactive=False, elem_id="sd-validate-stop", min_width=80)
        progress = gr.HTML("", elem_id="sd-validate-progress", apply_default_css=False)
        kept = gr.Dropdown([], label=tr("bench_kept"), elem_id="sd-validate-kept")
        drawn = [
            gr.Plot(
                label=tr(f"validate_plot_{name}"), show_label=False, visible=False, elem_id=f"sd-validate-plot-{name}",
                elem_classes="sd-plot",
            )
            for name in ("temperature", "top1")
        ]  # fmt: skip
        result = gr.HTML("", elem_id="sd-validate-result", apply_default_css=False)
        mark = gr.State("")
        timer = gr.Timer(LOOK_S, active=False)
    shown = [progress, *drawn, result, start, stop, kept, mark, timer]
    _wire(demo, desk, tab, fields, plan, shown, estimate)
    wire_file(source, box, desk.uploads)
    box.preview.change(_planner(desk), fields, plan, **LIGHT)
    settings.change(lambda value: gr.update(visible=value == "own"), settings, own, **LIGHT)


def _settings(tr: gr.I18n) -> tuple[gr.Radio, gr.Row, list[Any]]:
    settings = gr.Radio(
        [(tr("validate_usual"), "usual"), (tr("validate_own"), "own")],
        value="usual", label=tr("validate_settings"), info=tr("validate_settings_info"), elem_id="sd-validate-settings",
    )  # fmt: skip
    with gr.Row(visible=False, elem_id="sd-validate-own-settings") as own:
        temperature = gr.Number(1.0, label=tr("temperature"), minimum=0, maximum=10, step=0.05, min_width=90)
        top_p = gr.Number(1.0, label=tr("top_p"), minimum=0, maximum=1, step=0.05, min_width=90)
        top_k = gr.Number(20, label=tr("top_k"), minimum=0, precision=0, min_width=90)
    return settings, own, [temperature, top_p, top_k]


def _design(services: Services, tr: gr.I18n) -> list[Any]:
    """prompts, then the fields after ``accept_refused`` in the order of ``validate_form.ValidateForm``."""
    most = len(sampling_prompts())
    prompts = gr.Slider(1, most, value=most, step=1, label=tr("validate_prompts"), elem_id="sd-validate-prompts")
    draws = gr.Slider(
        2,
        320,
        value=80,
        step=2,
        label=tr("validate_draws"),
        info=tr("validate_draws_info"),
        elem_id="sd-validate-draws",
    )
    with gr.Row():
        tokens = gr.Number(16, label=tr("validate_tokens"), minimum=2, precision=0, min_width=150)
        minutes = gr.Number(
            10, label=tr("bench_minutes"), info=tr("bench_minutes_info"), minimum=0, elem_id="sd-validate-minutes",
            min_width=150,
        )  # fmt: skip
    with gr.Accordion(tr("bench_more"), open=False):
        with gr.Row():
            seed = gr.Number(1, label=tr("bench_seed"), minimum=0, precision=0, min_width=150)
            concurrency = gr.Number(4, label=tr("validate_concurrency"), minimum=1, precision=0, min_width=150)
        with gr.Row():
            listed = gr.Number(20, label=tr("validate_listed"), minimum=1, precision=0, min_width=100)
            shortest = gr.Number(2, label=tr("validate_shortest"), minimum=1, precision=0, min_width=100)
            longest = gr.Number(4, label=tr("validate_longest"), minimum=1, precision=0, min_width=100)
    anyway = gr.Checkbox(
        False, label=tr("validate_anyway"), info=tr("validate_anyway_info"), elem_id="sd-validate-anyway",
        visible=not services.public,
    )  # fmt: skip
    return [prompts, draws, tokens, minutes, seed, concurrency, listed, shortest, longest, anyway]


def _planner(desk: ValidateDesk) -> Any:
    async def planned(request: gr.Request, *values: Any) -> str:
        return desk.line(ValidateForm(*values), visitor_of(request).key, lang_of(request))

    return planned


def _wire(
    demo: gr.Blocks, desk: ValidateDesk, tab: gr.Tab, fields: list[Any], plan: gr.HTML, shown: list[Any],
    estimate: gr.Button,
) -> None:  # fmt: skip
    _, _, _, _, start, stop, kept, mark, timer = shown
    seen = [kept, mark]
    planned = _planner(desk)

    async def looked(chosen: Any, last: Any, request: gr.Request) -> View:
        return await desk.view(visitor_of(request).key, lang_of(request), _seen(chosen, last))

    async def acted(request: gr.Request, act: Callable[[], None], chosen: Any, last: Any) -> View:
        said = ""
        try:
            act()
        except SpecDemoError as error:
            said = str(error)
        return await desk.view(visitor_of(request).key, lang_of(request), _seen(chosen, last), said=said)

    async def started(request: gr.Request, *values: Any) -> View:
        form = ValidateForm(*values[:-2])
        return await acted(request, lambda: desk.start(form, visitor_of(request).key), *values[-2:])

    async def stopped(request: gr.Request, chosen: Any, last: Any) -> View:
        return await acted(request, lambda: desk.stop(visitor_of(request).key), chosen, last)

    async def timed(request: gr.Request, *values: Any) -> str:
        return await desk.timed(ValidateForm(*values), visitor_of(request).key, lang_of(request))

    start.click(started, [*fields, *seen], shown, **LIGHT)
    stop.click(stopped, seen, shown, **LIGHT)
    timer.tick(looked, seen, shown, **LIGHT)
    kept.input(looked, seen, shown, **LIGHT)
    tab.select(looked, seen, shown, **LIGHT)
    tab.select(planned, fields, plan, **LIGHT)
    gr.on([one.change for one in fields], planned, fields, plan, trigger_mode="always_last", **LIGHT)
    estimate.click(
        timed, fields, plan, api_visibility="private", show_progress="minimal", show_progress_on=[plan],
        trigger_mode="once",
    )  # fmt: skip
    demo.load(looked, seen, shown, **LIGHT)


def _seen(chosen: Any, mark: Any) -> Seen:
    return Seen(chosen if isinstance(chosen, str) else "", "", mark if isinstance(mark, str) else "")
