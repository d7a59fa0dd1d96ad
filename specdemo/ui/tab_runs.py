"""The Runs tab: what is kept, found again, opened, shared, compared, brought in and taken away."""

from __future__ import annotations

import gradio as gr

from specdemo.ui import assets


def build(tr: gr.I18n) -> gr.HTML:
    """The tab, inside ``gr.Tabs``. Its script asks ``GET <root>/runs``; event: ``open`` {run}."""
    with gr.Tab(tr("tab_runs"), id="runs", elem_id="sd-tab-runs"):
        return gr.HTML(
            "",
            html_template=assets.text("html/runs.html"),
            js_on_load=assets.text("js/runs_mount.js"),
            css_template="",
            apply_default_css=False,
            elem_id="sd-runs",
        )
