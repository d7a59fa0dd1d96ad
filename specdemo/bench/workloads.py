"""The shipped workloads: assets/prompts/workloads.json and one JSONL file each.

Each says in one sentence, in English and Chinese, why an n-gram or a draft model should help it or not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from specdemo.bench import assets
from specdemo.bench.prompts import BenchPrompt
from specdemo.core.prompt import Message
from specdemo.errors import UsageError

PROMPTS = assets.folder("prompts")


@dataclass(frozen=True, slots=True)
class Workload:
    """A kind of work. ``max_tokens`` is the output budget of a prompt; ``expects`` is a (method, help) table."""

    name: str
    title_en: str
    title_zh: str
    why_en: str
    why_zh: str
    max_tokens: int
    expects: tuple[tuple[str, str], ...]
    prompts: tuple[BenchPrompt, ...]


@cache
def shipped(folder: Path = PROMPTS) -> tuple[Workload, ...]:
    """All shipped workloads in their listed order."""
    index = json.loads((folder / "workloads.json").read_text(encoding="utf-8"))
    return tuple(_workload(folder, entry) for entry in index["workloads"])


def _workload(folder: Path, entry: Mapping[str, Any]) -> Workload:
    name = str(entry["name"])
    rows = (folder / str(entry["file"])).read_text(encoding="utf-8").split("\n")
    prompts = tuple(
        BenchPrompt(row["id"], name, (Message("user", row["prompt"]),), None, None, row["language"], row["max_tokens"])
        for row in map(json.loads, filter(None, rows))
    )
    return Workload(
        name,
        entry["title"]["en"],
        entry["title"]["zh"],
        entry["why"]["en"],
        entry["why"]["zh"],
        int(entry["max_tokens"]),
        tuple(sorted(entry["expects"].items())),
        prompts,
    )


def choose(
    names: Sequence[str] = (), *, languages: Sequence[str] = (), limit: int | None = None
) -> tuple[BenchPrompt, ...]:
    """Prompts of the named workloads (all without names), at most ``limit`` each, spread over the languages.

    Raises UsageError for a name that does not exist.
    """
    known = {workload.name: workload for workload in shipped()}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UsageError(f'There is no workload "{unknown[0]}"; choose from {", ".join(known)}.')
    chosen: list[BenchPrompt] = []
    for workload in known.values():
        if names and workload.name not in names:
            continue
        prompts = [p for p in workload.prompts if not languages or p.language in languages]
        chosen += _spread(prompts, limit)
    if not chosen:
        raise UsageError("No shipped prompt is in the languages asked for; choose en or zh.")
    return tuple(chosen)


def _spread(prompts: list[BenchPrompt], limit: int | None) -> list[BenchPrompt]:
    """At most ``limit`` prompts, taken evenly from the file so that both languages stay in it."""
    if limit is None or limit >= len(prompts):
        return prompts
    return [prompts[i * len(prompts) // limit] for i in range(max(limit, 1))]


@cache
def sampling_prompts(folder: Path = PROMPTS) -> tuple[BenchPrompt, ...]:
    """Eight short texts that repeat themselves, so that drafts are made early, and leave room for chance."""
    rows = filter(None, (folder / "sampling.jsonl").read_text(encoding="utf-8").split("\n"))
    return tuple(
        BenchPrompt(row["id"], "sampling", text=row["text"], language=row["language"]) for row in map(json.loads, rows)
    )
