"""Where prompts come from: the shipped ones, or a file that is previewed before anything runs. Both tabs have it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from specdemo.errors import PromptError
from specdemo.ui import uploads
from specdemo.ui.asked import lang_of, visitor_of
from specdemo.ui.uploads import Uploads

LOOK_S = 2.0
"""Seconds between two looks at a running job: often enough to watch, seldom enough not to disturb it."""
LIGHT: dict[str, Any] = {"api_visibility": "private", "queue": False, "show_progress": "hidden"}


@dataclass(frozen=True, slots=True)
class FileBox:
    """The part that is there for a file only."""

    group: gr.Group
    file: gr.File
    preview: gr.HTML
    accept: gr.Checkbox


def file_box(tr: gr.I18n, tab: str) -> tuple[gr.Radio, FileBox]:
    """The choice of a source, and what belongs to a file."""
    source = gr.Radio(
        [(tr(f"{tab}_source_shipped"), "shipped"), (tr("bench_source_own"), "own")],
        value="shipped", label=tr("bench_source"), elem_id=f"sd-{tab}-source",
    )  # fmt: skip
    with gr.Group(visible=False, elem_id=f"sd-{tab}-own") as group:
        file = gr.File(label=tr("bench_file"), elem_id=f"sd-{tab}-file", height=120)
        preview = gr.HTML("", elem_id=f"sd-{tab}-preview", apply_default_css=False)
        accept = gr.Checkbox(False, label=tr("bench_accept"), visible=False, elem_id=f"sd-{tab}-accept")
    return source, FileBox(group, file, preview, accept)


def wire_file(source: gr.Radio, box: FileBox, held: Uploads) -> None:
    """A file is read when it comes, shown as it will be used, and forgotten when it is taken away."""

    async def handed_in(path: Any, request: gr.Request) -> tuple[Any, Any]:
        visitor, hidden = visitor_of(request).key, gr.update(visible=False, value=False)
        if not isinstance(path, str | Path):
            held.drop(visitor)
            return uploads.limits(lang_of(request)), hidden
        try:
            found = await held.read(visitor, str(path))
        except PromptError as error:
            return uploads.refused(error, lang_of(request)), hidden
        return uploads.preview(found, lang_of(request)), gr.update(visible=bool(found.refused), value=False)

    async def chosen(value: Any, request: gr.Request) -> tuple[Any, str]:
        return gr.update(visible=value == "own"), held.shown(visitor_of(request).key, lang_of(request))

    source.change(chosen, source, [box.group, box.preview], **LIGHT)
    box.file.change(handed_in, box.file, [box.preview, box.accept], **LIGHT)
