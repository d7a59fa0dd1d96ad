"""The layout, top to bottom as seen, then the wiring."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
from gradio.events import api as gradio_api

from specdemo.ui import assets, panes, tab_how, tab_runs, tabs
from specdemo.ui.asked import asked_run, asked_tab, event_data, lang_of, session_of, visitor_of
from specdemo.ui.chips import Chip, chips
from specdemo.ui.form import Form
from specdemo.ui.handlers import Desk, Update
from specdemo.ui.i18n import say, translator
from specdemo.ui.services import Services

UPLOADS_KEPT = (600, 3600)
"""Every so many seconds, files that visitors sent so many seconds ago are deleted."""
RUNS = "runs"
"""Run, its measuring twin and both API endpoints share one limit; waiting for the engines is the registry's matter."""


@dataclass(frozen=True, slots=True)
class _View:
    """The components that the wiring needs."""

    header: gr.HTML
    chips: list[tuple[gr.Button, Chip]]
    prompt: gr.Textbox
    fields: list[Any]
    run: gr.Button
    stop: gr.Button
    clear: gr.Button
    again: gr.Button
    status: gr.HTML
    arena: gr.HTML
    engines: gr.HTML
    recordings: gr.HTML
    runs: gr.HTML | None = None

    @property
    def shown(self) -> list[Any]:
        """The outputs of every handler that changes what is shown (``handlers.Update``)."""
        return [self.arena, self.status, self.again, self.run]


def words() -> gr.I18n:
    """The page's words for Gradio, with the examples' titles."""
    return translator({f"chip_{chip.name}": chip.titles for chip in chips()})


def build(services: Services, tr: gr.I18n, *, at_once: int = 32) -> gr.Blocks:
    """The page as Blocks. ``at_once`` visitors may run or wait for the engines; Gradio queues more."""
    demo: gr.Blocks = gr.Blocks(title="specdemo", fill_width=True, analytics_enabled=False, delete_cache=UPLOADS_KEPT)
    with demo:
        gr.State("")  # holds nothing: with a state in it Gradio's page keeps a connection open that tells when it goes
        view = _layout(demo, services, tr)
        _wire(demo, view, Desk(services), at_once)
        _endpoints(Desk(services), at_once)
    demo.queue(max_size=64, default_concurrency_limit=at_once)
    return demo


def _layout(demo: gr.Blocks, services: Services, tr: gr.I18n) -> _View:
    header = panes.console("header")
    with gr.Tabs(elem_id="sd-tabs") as bar:
        with gr.Tab(tr("tab_race"), id="race", elem_id="sd-tab-race"):
            view = _race(services, tr, header)
        runs = tab_runs.build(tr)
        tabs.build(demo, services, tr)
        tab_how.build(tr)
    names = {tab.id for tab in bar.children if isinstance(tab, gr.Tab)}

    async def asked(request: gr.Request) -> Any:
        name = asked_tab(request)
        return gr.Tabs(selected=name) if name in names else gr.skip()

    demo.load(asked, None, bar, api_visibility="private", queue=False, show_progress="hidden")
    return replace(view, runs=runs)


def _race(services: Services, tr: gr.I18n, header: gr.HTML) -> _View:
    with gr.Row(elem_id="sd-main", equal_height=False):
        with gr.Column(elem_id="sd-form", scale=1, min_width=320):
            buttons = _chips(tr)
            prompt = gr.Textbox(
                label=tr("prompt"),
                placeholder=tr("prompt_hint"),
                lines=5,
                max_lines=12,
                elem_id="sd-prompt",
                autofocus=True,
            )
            with gr.Row(elem_id="sd-buttons"):
                # Off until the page's first answer is there, which would otherwise overwrite an early run's.
                run = gr.Button(tr("run"), variant="primary", elem_id="sd-run", min_width=110, interactive=False)
                stop = gr.Button(tr("stop"), variant="stop", elem_id="sd-stop", min_width=70)
                clear = gr.Button(tr("clear"), elem_id="sd-clear", min_width=70)
            status = gr.HTML("", elem_id="sd-status", apply_default_css=False)
            again = gr.Button(tr("measure_again"), visible=False, elem_id="sd-again")
            mode = gr.Radio(
                [(tr("mode_race"), "race"), (tr("mode_measure"), "measure")],
                value="race", label=tr("mode"), info=tr("mode_info"), elem_id="sd-mode",
            )  # fmt: skip
            fields = [prompt, *_settings(services, tr, mode)]
        with gr.Column(elem_id="sd-stage", scale=3, min_width=320):
            arena = panes.arena()
    with gr.Accordion(tr("recordings"), open=services.mode == "replay", elem_id="sd-recordings-box"):
        recordings = panes.console("recordings")
    with gr.Accordion(tr("engines"), open=services.mode == "managed", elem_id="sd-engines-box"):
        engines = panes.console("engines")
    with gr.Accordion(tr("about"), open=False, elem_id="sd-about"):
        gr.Markdown(tr("about_text"))
    return _View(header, buttons, prompt, fields, run, stop, clear, again, status, arena, engines, recordings)


def _chips(tr: gr.I18n) -> list[tuple[gr.Button, Chip]]:
    with gr.Row(elem_id="sd-chips"):
        return [
            (gr.Button(tr(f"chip_{chip.name}"), size="sm", min_width=60, elem_id=f"sd-chip-{chip.name}", scale=0), chip)
            for chip in chips()
        ]


def _settings(services: Services, tr: gr.I18n, mode: gr.Radio) -> list[Any]:
    """The form's fields after the prompt, in the order of ``handlers.Form``."""
    most = services.max_tokens
    max_tokens = gr.Slider(1, most, value=min(256, most), step=1, label=tr("max_tokens"), elem_id="sd-max-tokens")
    temperature = gr.Slider(
        0, 2, value=0, step=0.05, label=tr("temperature"), info=tr("temperature_info"), elem_id="sd-temperature"
    )
    with gr.Accordion(tr("sampling"), open=False, elem_id="sd-sampling"):
        system = gr.Textbox(
            label=tr("system"), placeholder=tr("system_hint"), lines=2, max_lines=6, elem_id="sd-system"
        )
        with gr.Row():
            top_p = gr.Number(1.0, label=tr("top_p"), minimum=0, maximum=1, step=0.05, min_width=120)
            top_k = gr.Number(0, label=tr("top_k"), minimum=0, precision=0, min_width=120)
            min_p = gr.Number(0.0, label=tr("min_p"), minimum=0, maximum=1, step=0.05, min_width=120)
            seed = gr.Number(None, label=tr("seed"), precision=0, min_width=120)
        with gr.Row():
            presence = gr.Number(0.0, label=tr("presence_penalty"), minimum=-2, maximum=2, step=0.1, min_width=120)
            frequency = gr.Number(0.0, label=tr("frequency_penalty"), minimum=-2, maximum=2, step=0.1, min_width=120)
            repetition = gr.Number(1.0, label=tr("repetition_penalty"), minimum=0, maximum=10, step=0.05, min_width=120)
        ignore_eos = gr.Checkbox(False, label=tr("ignore_eos"))
        plain = gr.Checkbox(False, label=tr("plain"), info=tr("plain_info"), elem_id="sd-plain")
        logprobs = gr.Checkbox(False, label=tr("logprobs"), info=tr("logprobs_info"), elem_id="sd-logprobs")
        keeps = services.keeper is not None and services.keeper.keep
        unkept = gr.Checkbox(False, label=tr("unkept"), info=tr("unkept_info"), elem_id="sd-unkept", visible=keeps)
    return [
        system, mode, max_tokens, temperature, top_p, top_k, min_p, seed, presence, frequency, repetition,
        ignore_eos, plain, logprobs, unkept,
    ]  # fmt: skip


def _wire(demo: gr.Blocks, view: _View, desk: Desk, at_once: int) -> None:
    own: dict[str, Any] = {"api_visibility": "private"}
    light: dict[str, Any] = {**own, "queue": False, "show_progress": "hidden"}
    heavy: dict[str, Any] = {
        **own, "concurrency_limit": at_once, "concurrency_id": RUNS, "trigger_mode": "once",
        "show_progress": "minimal", "show_progress_on": view.status,
    }  # fmt: skip
    started = view.run.click(_runner(desk, None), view.fields, view.shown, **heavy)
    measured = view.again.click(_runner(desk, "measure"), view.fields, view.shown, **heavy)

    async def stopped(shown: str, request: gr.Request) -> Update:
        return await desk.stopped(shown, lang_of(request), session_of(request), visitor_of(request))

    async def settled(request: gr.Request) -> Any:
        line = desk.settled(lang_of(request), session_of(request), visitor_of(request))
        return gr.skip() if line is None else line

    async def cleared(request: gr.Request) -> tuple[Any, ...]:
        lang = lang_of(request)
        line = panes.status(say(lang, "status_idle"))
        return "", panes.shown(None, lang), line, gr.update(visible=False), gr.update(interactive=True)

    async def arrived(request: gr.Request) -> Update:
        run_id, lang = asked_run(request), lang_of(request)
        return await desk.opened(run_id, lang, visitor_of(request)) if run_id else desk.first(lang)

    async def opened(event: gr.EventData, request: gr.Request) -> Update:
        return await desk.opened(event_data(event).get("run", ""), lang_of(request), visitor_of(request))

    async def ready(request: gr.Request) -> str:
        return panes.status(say(lang_of(request), "status_idle"))

    async def commanded(event: gr.EventData, request: gr.Request) -> str:
        sent = event_data(event)
        return await desk.command(sent.get("side", ""), sent.get("action", ""), lang_of(request))

    # Listeners of one event run one after another, so cancelling comes first.
    for button in (view.stop, view.clear):
        button.click(None, None, None, cancels=[started, measured], **light)
    view.stop.click(stopped, view.arena, view.shown, **light)
    for handler in (started, measured):
        handler.then(settled, None, view.status, **light)
    view.clear.click(cleared, None, [view.prompt, *view.shown], **light)
    demo.load(arrived, None, view.shown, **light)
    demo.load(None, None, None, js=assets.text("js/tabs.js"), **own)
    view.header.ready(ready, None, view.status, **light)
    for list_of_runs in (view.recordings, view.runs):
        if list_of_runs is not None:
            list_of_runs.open(opened, None, view.shown, **light)
    view.engines.command(commanded, None, view.status, **light)
    view.arena.change(None, view.arena, None, js=assets.text("js/address.js"), **own)
    for button, chip in view.chips:
        button.click(_picker(chip), view.prompt, [view.prompt, view.fields[3]], **light)


def _runner(desk: Desk, mode: str | None) -> Any:
    async def run(
        prompt: str, system: str, how: str, max_tokens: float, temperature: float, top_p: float, top_k: float,
        min_p: float, seed: float, presence: float, frequency: float, repetition: float, ignore_eos: bool,
        plain: bool, logprobs: bool, unkept: bool, request: gr.Request,
    ) -> AsyncIterator[Update]:  # fmt: skip
        form = Form(
            prompt, system, mode or how, max_tokens, temperature, top_p, top_k, min_p, seed, presence, frequency,
            repetition, ignore_eos, plain, logprobs, not unkept,
        )  # fmt: skip
        async for update in desk.run(form, lang_of(request), session_of(request), visitor_of(request)):
            yield update

    return run


def _picker(chip: Chip) -> Any:
    async def pick(current: str, request: gr.Request) -> tuple[str, int]:
        return chip.next(current or "", lang_of(request))

    return pick


def _endpoints(desk: Desk, at_once: int) -> None:
    """The API that programs use (``gradio_client``, REST): same limits, same contract as the command line."""

    async def race(  # noqa: D417 - the request is Gradio's, not a parameter
        prompt: str, system: str = "", max_tokens: int = 256, temperature: float = 0.0, mode: str = "race",
        seed: int | None = None, plain: bool = False, keep: bool = True, request: gr.Request | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """Run one prompt on both engines and return the result as `specdemo race --json` prints it.

        Args:
            prompt: the user's message, sent to both engines
            system: the system message; empty sends none
            max_tokens: most output tokens
            temperature: 0 is greedy decoding, with the identity check
            mode: "race" runs both at once, "measure" one at a time
            seed: random seed; none by default
            plain: send the prompt as plain text, without the chat template
            keep: keep the run on this server, if it keeps runs
        """
        form = _form(prompt, system, max_tokens, temperature, mode, seed, plain, keep)
        return await desk.race(form, visitor_of(request), session_of(request))

    async def race_stream(  # noqa: D417
        prompt: str, system: str = "", max_tokens: int = 256, temperature: float = 0.0, mode: str = "race",
        seed: int | None = None, plain: bool = False, keep: bool = True, request: gr.Request | None = None,
    ) -> AsyncIterator[str]:  # fmt: skip
        """Run one prompt on both engines and stream the page's own frames, one JSON text each (see docs/frames.md).

        Args:
            prompt: the user's message, sent to both engines
            system: the system message; empty sends none
            max_tokens: most output tokens
            temperature: 0 is greedy decoding, with the identity check
            mode: "race" runs both at once, "measure" one at a time
            seed: random seed; none by default
            plain: send the prompt as plain text, without the chat template
            keep: keep the run on this server, if it keeps runs
        """
        form = _form(prompt, system, max_tokens, temperature, mode, seed, plain, keep)
        async for frame in desk.race_stream(form, visitor_of(request), session_of(request)):
            yield frame

    limits: dict[str, Any] = {"concurrency_limit": at_once, "concurrency_id": RUNS}
    gradio_api(race, api_name="race", **limits)
    gradio_api(race_stream, api_name="race_stream", **limits)


def _form(
    prompt: str, system: str, max_tokens: int, temperature: float, mode: str, seed: int | None, plain: bool, keep: bool
) -> Form:
    return Form(prompt, system, mode, max_tokens, temperature, seed=seed, plain=plain, keep=keep)
