"""Prompt files that visitors have handed in: read once, previewed, kept for a start of the same visitor; bounded."""

from __future__ import annotations

import asyncio
import contextlib
import html
from collections import OrderedDict
from pathlib import Path

from specdemo.bench.datasets import Dataset, DatasetLimits, read_path
from specdemo.bench.report.words import speaker
from specdemo.errors import PromptError
from specdemo.ui.i18n import Lang, say

KEPT = 8
SHOWN_REFUSED = 8
SHOWN_PROMPTS = 3
LIMITS = DatasetLimits()


class Uploads:
    """The latest file of each of the last visitors."""

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._found: OrderedDict[str, Dataset] = OrderedDict()

    async def read(self, visitor: str, path: str) -> Dataset:
        """Read a file that Gradio has stored, and remove it. Raises PromptError with one sentence."""
        self._found.pop(visitor, None)
        dataset = await asyncio.to_thread(_read, Path(path))
        self._found[visitor] = dataset
        while len(self._found) > self._kept:
            self._found.popitem(last=False)
        return dataset

    def get(self, visitor: str) -> Dataset:
        """The visitor's file. Raises PromptError when it is not (or no longer) here."""
        if visitor not in self._found:
            raise PromptError("The file with prompts is no longer kept here; choose it again.")
        return self._found[visitor]

    def shown(self, visitor: str, lang: Lang) -> str:
        """The preview of the visitor's file, or what a file may hold while there is none."""
        found = self._found.get(visitor)
        return preview(found, lang) if found is not None else limits(lang)

    def drop(self, visitor: str) -> None:
        """Forget it."""
        self._found.pop(visitor, None)


def _read(path: Path) -> Dataset:
    try:
        return read_path(path, limits=LIMITS)
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def preview(dataset: Dataset, lang: Lang) -> str:
    """Counts, shapes, notes, refused lines with reasons and the first prompts, as markup; all of it escaped."""
    head = say(
        lang, "bench_file_head", name=dataset.name, form=dataset.form, usable=len(dataset.prompts), rows=dataset.rows
    )
    tell = speaker(lang).told
    parts = [_p(head, "sd-strong")]
    if dataset.shapes:
        shapes = ", ".join(f"{count} × {shape}" for shape, count in dataset.shapes)
        parts.append(_p(say(lang, "bench_file_shapes", shapes=shapes)))
    parts += [_p(tell(note)) for note in dataset.notes]
    if dataset.refused:
        items = [
            f"<li dir='auto'>{html.escape(say(lang, 'bench_file_line', line=one.line, reason=tell(one.reason)))}</li>"
            for one in dataset.refused[:SHOWN_REFUSED]
        ]
        more = len(dataset.refused) - SHOWN_REFUSED
        if more > 0:
            items.append(f"<li>{html.escape(say(lang, 'bench_file_more', n=more))}</li>")
        parts.append(_p(say(lang, "bench_file_refused", n=len(dataset.refused)), "sd-warned"))
        parts.append(f"<ul>{''.join(items)}</ul>")
    for prompt in dataset.prompts[:SHOWN_PROMPTS]:
        parts.append(f'<pre dir="auto">{html.escape(_short(prompt.shown))}</pre>')
    return f'<div class="sd-preview">{"".join(parts)}</div>'


def limits(lang: Lang) -> str:
    """What a file may hold, in one sentence, as markup."""
    mib = 1024 * 1024
    text = say(
        lang,
        "bench_file_limits",
        file=LIMITS.file_bytes // mib,
        line=LIMITS.line_bytes // mib,
        rows=f"{LIMITS.rows:,}",
    )
    return f'<p class="sd-hint">{html.escape(text)}</p>'


def refused(error: PromptError, lang: Lang) -> str:
    """A file that can't be used at all."""
    text = html.escape(speaker(lang).told(str(error)))
    return f'<p class="sd-status" data-kind="error" role="alert">{text}</p>'


def _p(text: str, name: str = "") -> str:
    return f'<p class="{name}" dir="auto">{html.escape(text)}</p>'


def _short(text: str) -> str:
    flat = text.strip()
    return flat if len(flat) <= 200 else flat[:200] + " …"
