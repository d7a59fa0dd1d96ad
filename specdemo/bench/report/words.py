"""The report's texts, English and Chinese, from assets/report/; both have the same keys and placeholders (tested)."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from specdemo.bench import assets

LANGUAGES = ("en", "zh")
FOLDER = assets.folder("report")


@cache
def words(language: str) -> dict[str, str]:
    """All texts of a language by key."""
    found: dict[str, str] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return found


def speaker(language: str) -> Callable[..., str]:
    """A function of key and placeholders that speaks the language; an unknown language speaks English."""
    known = words(language if language in LANGUAGES else "en")

    def say(key: str, **values: object) -> str:
        return known[key].format(**values)

    return say
