"""The page's own components: markup from ``assets/html``, behaviour from ``assets/js``, nothing else."""

from __future__ import annotations

import html
import json
from typing import Any

import gradio as gr

from specdemo.ui import assets
from specdemo.ui.i18n import Lang


class _Fixed(gr.HTML):
    """Static markup; everything that moves is done by its script, so that updates never rebuild it.

    Gradio builds a component anew from its keywords when a handler updates it, so all are passed on.
    """

    def __init__(self, value: Any = "", *, template: str, script: str, **more: Any) -> None:
        fixed = {
            "html_template": assets.text(f"html/{template}"),
            "js_on_load": assets.text(f"js/{script}"),
            "css_template": "",
            "apply_default_css": False,
        }
        super().__init__(value, **{**more, **fixed})

    def api_info(self) -> dict[str, Any]:
        return {"type": "string"}


class Arena(_Fixed):
    """The race view. Its value says which run to show; the text itself comes beside Gradio (``docs/frames.md``)."""

    def __init__(self, value: Any = "", **more: Any) -> None:
        super().__init__(value, template="race.html", script="mount.js", **{"elem_id": "sd-arena", **more})


class Console(_Fixed):
    """Header, engine panel or gallery. Events: ``command`` {side, action}, ``open`` {run}."""

    def __init__(self, value: Any = "", *, part: str = "header", **more: Any) -> None:
        super().__init__(
            value, template=f"{part}.html", script="console_mount.js", **{"elem_id": f"sd-{part}", **more}
        )


def shown(run_id: str | None, lang: Lang, *, replay: bool = False, loop: bool = False, nonce: str = "") -> str:
    """The arena's value: which run, and how. None clears the view."""
    value: dict[str, Any] = {"run": run_id, "lang": lang}
    if replay:
        value["replay"] = True
    if loop:
        value["loop"] = True
    if nonce:
        value["nonce"] = nonce
    return json.dumps(value)


def status(text: str, kind: str = "info", *, run_id: str | None = None, links: tuple[tuple[str, str], ...] = ()) -> str:
    """The line beside the Run button as markup: ``text`` is escaped; ``links`` are (address, words)."""
    anchors = "".join(
        f' <a href="{html.escape(address, quote=True)}" target="_top">{html.escape(words)}</a>' for address, words in links
    )
    run = f' data-run="{html.escape(run_id, quote=True)}"' if run_id else ""
    role = "alert" if kind == "error" else "status"
    return f'<p class="sd-status" data-kind="{html.escape(kind)}" role="{role}"{run}>{html.escape(text)}{anchors}</p>'
