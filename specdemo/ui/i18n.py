"""Words of the page in English and Chinese, from ``assets/i18n``; which language a visitor gets.

The browser's language decides, ``?lang=en|zh`` overrides it. Gradio translates its labels in the browser; the sentences
that a handler writes are chosen here, by the same two sources.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Literal

import gradio as gr

from specdemo.bench.report.words import speaker
from specdemo.core.sentences import fill, told
from specdemo.errors import SetupError
from specdemo.ui import assets

Lang = Literal["en", "zh"]
LANGS: tuple[Lang, ...] = ("en", "zh")


@cache
def words(lang: Lang) -> Mapping[str, str]:
    """All sentences of one language by key: ``en.json`` and the parts ``<part>.en.json``. A key stands in one file."""
    found: dict[str, str] = {}
    files = (assets.folder() / "i18n").glob(f"*{lang}.json")
    for path in sorted(files, key=lambda path: path.name.removesuffix(f"{lang}.json")):  # one order in all languages
        part: dict[str, str] = json.loads(assets.text(f"i18n/{path.name}"))
        if twice := found.keys() & part.keys():
            raise SetupError(f"assets/i18n/{path.name} repeats words of another file: {', '.join(sorted(twice))}.")
        found |= part
    return found


def say(lang: Lang, key: str, **values: object) -> str:
    """One sentence with its values filled in."""
    return words(lang)[key].format_map({name: str(value) for name, value in values.items()})


def tell(lang: Lang, text: str) -> str:
    """One of specdemo's English sentences in the visitor's language; any other text, an engine's own say, as it is."""
    known = told(text) if lang == "zh" else None
    return (fill(known, _sentences(), "；") if known is not None else None) or speaker(lang).told(text)


@cache
def _sentences() -> Mapping[str, str]:
    found: dict[str, str] = json.loads(assets.text("i18n/sentences/zh.json"))
    return found


def translator(more: Mapping[str, Mapping[str, str]] | None = None) -> gr.I18n:
    """Gradio's own table: the browser picks by its language, ``zh`` for every Chinese one.

    ``more`` adds words by key and language that come from elsewhere, such as the examples' titles.
    """
    added = more or {}
    english = {**words("en"), **{key: texts["en"] for key, texts in added.items()}}
    chinese = {**words("zh"), **{key: texts["zh"] for key, texts in added.items()}}
    return gr.I18n(en=english, zh=chinese, **{"zh-CN": chinese, "zh-TW": chinese, "zh-HK": chinese})


def language(query: Mapping[str, str] | None, accept: str | None) -> Lang:
    """The visitor's language: ``lang`` of the query if it is one of ours, else the browser's first choice."""
    asked = (query or {}).get("lang", "")
    if asked in LANGS:
        return "zh" if asked == "zh" else "en"
    return "zh" if (accept or "").strip().lower().startswith("zh") else "en"


def language_of(request: gr.Request | None) -> Lang:
    """The language of one Gradio request; English for programs that send neither header nor query."""
    if request is None:
        return "en"
    return language(dict(request.query_params or {}), (request.headers or {}).get("accept-language"))
