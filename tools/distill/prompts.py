"""Training prompts for the draft model: templates filled by a seeded generator, in two stages.

Stage one needs nothing. Stage two (summaries, questions about a text) uses answers of stage one as its texts.
None of the prompts may stand in ``assets/prompts``: those are for showing and measuring. ``disjoint`` checks it.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path

import topics as t

SPAN = 8
"""Words in a row that a training prompt may not share with a demo prompt."""


def stage_one(seed: int) -> list[str]:
    """All prompts that need no passage, in a shuffled order that depends on ``seed`` alone."""
    rng = random.Random(seed)
    found = {form.format(t=topic) for form in (*t.ASK, *t.FORMS) for topic in t.TOPICS}
    found |= {form.format(t=topic) for form in t.ZH for topic in t.ZH_TOPICS}
    for language in ("Python", "JavaScript", "Java"):
        found |= {f"Write a {language} function that {task}." for task in t.CODE_TASKS}
    found |= {f"Show an example of Python code that {task}, with comments." for task in t.CODE_TASKS}
    found |= {f"{edit}\n{code}" for edit in t.EDITS for code in t.SNIPPETS}
    for form in t.TRANSLATE:
        for sentence in t.SENTENCES:
            for _ in range(6):
                words = {"p": rng.choice(t.PLACES), "n": rng.choice(t.NAMES), "o": rng.choice(t.PRODUCTS)}
                found.add(form.format(s=sentence.format(**words)))
    out = sorted(found)
    rng.shuffle(out)
    return out


def stage_two(seed: int, passages: Iterable[str]) -> list[str]:
    """Prompts about a passage: each passage is asked about once or twice."""
    rng = random.Random(seed + 1)
    out = []
    for passage in passages:
        text = " ".join(passage.split())[:900]
        if len(text) > 200:
            out += [form.format(x=text) for form in rng.sample(t.ABOUT_PASSAGE, k=2)]
    rng.shuffle(out)
    return out


def demo_prompts(folder: Path) -> Iterator[str]:
    """Every prompt text of the shipped workloads."""
    for file in sorted(folder.glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield json.loads(line)["prompt"]


def spans(text: str) -> set[tuple[str, ...]]:
    """The word spans of one prompt, lower case."""
    words = text.lower().split()
    return {tuple(words[i : i + SPAN]) for i in range(len(words) - SPAN + 1)}


def disjoint(prompts: Iterable[str], demo: Iterable[str]) -> list[str]:
    """The prompts that share no span of words with a demo prompt, nor are one."""
    taken: set[tuple[str, ...]] = set()
    whole = set()
    for text in demo:
        taken |= spans(text)
        whole.add(" ".join(text.lower().split()))
    return [p for p in prompts if not (spans(p) & taken) and " ".join(p.lower().split()) not in whole]
