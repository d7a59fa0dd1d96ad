"""Example prompts by workload, for the buttons above the prompt box."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from specdemo.errors import SetupError
from specdemo.ui import assets
from specdemo.ui.i18n import Lang

CHINESE = "chinese"


@dataclass(frozen=True, slots=True)
class Chip:
    """One button: its titles by language, and its (prompt, most output tokens) pairs by language."""

    name: str
    titles: dict[str, str]
    prompts: dict[str, tuple[tuple[str, int], ...]]

    def next(self, current: str, lang: Lang) -> tuple[str, int]:
        """The example after ``current``; the first one when ``current`` is something else. Pressing again goes on."""
        own = self.prompts.get(lang) or self.prompts.get("en") or self.prompts["zh"]
        texts = [prompt for prompt, _ in own]
        place = texts.index(current) + 1 if current in texts else 0
        return own[place % len(own)]


@cache
def chips() -> tuple[Chip, ...]:
    """All buttons, in the order of ``prompts/workloads.json``, and one that is Chinese in every language."""
    try:
        listed = json.loads(assets.text("prompts/workloads.json"))["workloads"]
        found = [_chip(entry) for entry in listed]
    except (KeyError, ValueError) as error:
        raise SetupError("The example prompts (assets/prompts) are damaged; install specdemo again.") from error
    spoken = [
        pair for name in ("open_chat", "rag_qa", "summarisation", "templated_output") for pair in _chinese(found, name)
    ]
    if spoken:
        titles = {"en": "Chinese", "zh": "中文"}
        found.append(Chip(CHINESE, titles, {"en": tuple(spoken), "zh": tuple(spoken)}))
    return tuple(found)


def _chip(entry: dict[str, Any]) -> Chip:
    prompts: dict[str, list[tuple[str, int]]] = {}
    for line in assets.text(f"prompts/{entry['file']}").splitlines():
        if line.strip():
            row = json.loads(line)
            prompts.setdefault(row["language"], []).append((row["prompt"], int(row["max_tokens"])))
    return Chip(entry["name"], entry["title"], {lang: tuple(pairs) for lang, pairs in prompts.items()})


def _chinese(found: list[Chip], name: str) -> list[tuple[str, int]]:
    return [pair for chip in found if chip.name == name for pair in chip.prompts.get("zh", ())[:2]]
