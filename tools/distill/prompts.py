"""Training prompts for the draft model: a seeded stream over all workloads, disjoint from what is shown and measured.

None of the prompts may stand in ``assets/prompts``, nor share a longer run of words with one: ``disjoint`` sees to it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import forms

SPAN = 8
"""Words in a row that a training prompt may not share with a demo prompt; Chinese counts by the character, twice."""


def stream(seed: int, demo: Iterable[str]) -> Iterator[str]:
    """Endless prompts, each once, in the shares of ``forms.WORKLOADS``, none of them near one of ``demo``."""
    rng = random.Random(seed)
    makers = [make for _, make in forms.WORKLOADS.values()]
    weights = [share for share, _ in forms.WORKLOADS.values()]
    taken, given = {span for text in demo for span in spans(text)}, set()
    while True:
        prompt = rng.choices(makers, weights)[0](rng)
        if prompt not in given and not (spans(prompt) & taken):
            given.add(prompt)
            yield prompt


def demo_prompts(folder: Path) -> Iterator[str]:
    """Every prompt text of the shipped workloads."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip():
                row = json.loads(line)
                yield row.get("prompt") or row["text"]


def spans(text: str) -> set[tuple[str, ...]]:
    """The word spans of one prompt, lower case, and the whole of it if it is shorter than a span."""
    words: list[str] = []
    for word in text.lower().split():
        words += list(word) if any("一" <= c <= "鿿" for c in word) else [word]
    size = 2 * SPAN if any("一" <= c <= "鿿" for c in text) else SPAN
    return {tuple(words[i : i + size]) for i in range(max(len(words) - size, 0) + 1)}
