"""The How-it-works tab: the method step by step from a real run, its theory, its limits, claims beside measurements."""

from __future__ import annotations

import gradio as gr

from specdemo.ui import assets


def build(tr: gr.I18n) -> gr.HTML:
    """The tab, inside ``gr.Tabs``. Its script asks ``GET <root>/how`` when the tab is first looked at."""
    with gr.Tab(tr("tab_how"), id="how", elem_id="sd-tab-how"):
        return gr.HTML(
            "",
            html_template=assets.text("html/how.html"),
            js_on_load=assets.text("js/how_mount.js"),
            css_template="",
            apply_default_css=False,
            elem_id="sd-how",
        )
