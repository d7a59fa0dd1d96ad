"""The report's texts, English and Chinese, from assets/report/.

``en.json`` and ``zh.json`` have the same keys and placeholders (tested). Results carry plain English sentences, which
stay quotable in their JSON for ever; ``sentences.zh.json`` holds their patterns for a Chinese report.
Words of an engine match no pattern and stay as they are.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache

from specdemo.bench import assets
from specdemo.core.sentences import fill, told

LANGUAGES = ("en", "zh")
FOLDER = assets.folder("report")
NAMES = frozenset(("config", "file", "names", "worst"))
"""Places that hold names, which are no words."""
LONGEST = 800
"""Characters; nothing that results say is longer."""


@cache
def words(language: str) -> dict[str, str]:
    """All texts of a language by key."""
    found: dict[str, str] = json.loads((FOLDER / f"{language}.json").read_text(encoding="utf-8"))
    return found


@dataclass(frozen=True, slots=True)
class Speaker:
    """Says the report's texts, and the results' own sentences, in one language."""

    language: str

    def __call__(self, key: str, **values: object) -> str:
        """The text of a key with its placeholders filled in."""
        return words(self.language)[key].format(**values)

    def knows(self, key: str) -> bool:
        """Whether there is a text of that key."""
        return key in words(self.language)

    def told(self, text: str) -> str:
        """A sentence of the results in this language; what is none of ours stays as it is."""
        if self.language == "en" or len(text) > LONGEST:
            return text
        for pattern, chinese in _patterns():
            found = pattern.fullmatch(text)
            if found is not None:
                values = found.groupdict().items()
                return chinese.format(**{k: value if k in NAMES else self.told(value) for k, value in values})
        known = told(text)
        return (fill(known, _of_runs(), "；") if known is not None else None) or text


def speaker(language: str) -> Speaker:
    """Who speaks the language; an unknown language speaks English."""
    return Speaker(language if language in LANGUAGES else "en")


@cache
def _of_runs() -> dict[str, str]:
    """What is said of single runs, comparability among it."""
    found: dict[str, str] = json.loads((assets.folder("i18n") / "sentences" / "zh.json").read_text(encoding="utf-8"))
    return found


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    """The results' English sentences and their Chinese, those with the most words of their own first."""
    found: dict[str, str] = {}
    for name in ("sentences", "forms"):  # of results; of files and plans that can't be used
        found |= json.loads((FOLDER / f"{name}.zh.json").read_text(encoding="utf-8"))
    ordered = sorted(found, key=lambda english: -len(re.sub(r"\{\w+\}", "", english)))
    return tuple((_pattern(english), found[english]) for english in ordered)


def _pattern(english: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", english)
    text = "".join(re.escape(part) if place % 2 == 0 else f"(?P<{part}>.+?)" for place, part in enumerate(parts))
    return re.compile(text, re.DOTALL)
