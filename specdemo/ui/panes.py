"""The page's own components: markup from ``assets/html``, behaviour from ``assets/js``, nothing else."""

from __future__ import annotations

import html
import json
from typing import Any

import gradio as gr

from specdemo.ui import assets
from specdemo.ui.i18n import Lang


def arena() -> gr.HTML:
    """The race view. Its value says which run to show; the text itself comes beside Gradio (``docs/frames.md``)."""
    return _fixed("race", "mount", "sd-arena")


def console(part: str) -> gr.HTML:
    """Header, engine panel or gallery. Events: ``command`` {side, action}, ``open`` {run}."""
    return _fixed(part, "console_mount", f"sd-{part}")


def _fixed(template: str, script: str, elem_id: str) -> gr.HTML:
    # Static markup; everything that moves is done by its script, so that updates never rebuild it. No subclass:
    # Gradio writes a stub file beside the module of each component class.
    return gr.HTML(
        "",
        html_template=assets.text(f"html/{template}.html"),
        js_on_load=assets.text(f"js/{script}.js"),
        css_template="",
        apply_default_css=False,
        elem_id=elem_id,
    )


def shown(
    run_id: str | None,
    lang: Lang,
    *,
    replay: bool = False,
    loop: bool = False,
    nonce: str = "",
    events_url: str = "",
) -> str:
    """The arena's value: which run, and how. None clears the view. ``events_url`` if it is not the usual one."""
    value: dict[str, Any] = {"run": run_id, "lang": lang}
    if replay:
        value["replay"] = True
    if loop:
        value["loop"] = True
    if nonce:
        value["nonce"] = nonce
    if events_url:
        value["events_url"] = events_url
    return json.dumps(value)


def status(
    text: str,
    kind: str = "info",
    *,
    run_id: str | None = None,
    links: tuple[tuple[str, str], ...] = (),
    share: tuple[str, str, str] | None = None,
) -> str:
    """The line beside the Run button as markup: ``text`` is escaped; ``links`` are (address, words).

    ``share`` is (run, words, words when done) of a button that ``assets/js/dom/share.mjs`` serves.
    """
    anchors = "".join(
        f' <a href="{html.escape(address, quote=True)}" target="_top">{html.escape(words)}</a>'
        for address, words in links
    )
    if share is not None:
        shared, words, done = (html.escape(part, quote=True) for part in share)
        anchors += f' <button type="button" data-share="{shared}" data-done="{done}">{words}</button>'
    run = f' data-run="{html.escape(run_id, quote=True)}"' if run_id else ""
    role = "alert" if kind == "error" else "status"
    return f'<p class="sd-status" data-kind="{html.escape(kind)}" role="{role}"{run}>{html.escape(text)}{anchors}</p>'
