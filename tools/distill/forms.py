"""One training prompt of each workload, filled by a seeded generator. All wording is ours and differs from the demo's.

The workloads are those of ``assets/prompts``; about a third of the prompts is Chinese, as there.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, SimpleNamespace

import topics as t

x = SimpleNamespace(**json.loads(Path(__file__).with_name("texts.json").read_text(encoding="utf-8")))
"""Sentences, records and orders to be filled, by name."""

CHINESE = 0.3


def fill(form: str, rng: random.Random, chinese: bool = False) -> str:
    """``form`` with its slots ({n} name, {p} place, {o} thing, {k} number, {d} day, {m} month, {j} job) drawn anew."""
    bank = x.ZH_WORDS if chinese or any("一" <= c <= "鿿" for c in form) else x.WORDS
    out = []
    for part in form.split("{"):
        name, brace, rest = part.partition("}")
        if not brace:
            out.append(part)
        elif name == "k":
            out.append(
                str(rng.choice((2, 3, 4, 5, 6, 8, 10, 12, 14, 15, 20, 24, 25, 30, 40, 45, 60, 75, 90, 120))) + rest
            )
        else:
            out.append(rng.choice(bank[name]) + rest)
    return "".join(out)


def passage(rng: random.Random, sentences: int, chinese: bool) -> str:
    """Some sentences of one subject."""
    theme = rng.choice(x.ZH_THEMES if chinese else x.THEMES)
    chosen = rng.sample(theme, k=min(sentences, len(theme)))
    return ("" if chinese else " ").join(fill(s, rng) for s in chosen)


def chat(rng: random.Random) -> str:
    if rng.random() < CHINESE:
        return fill(rng.choice(x.ZH_CHAT), rng).replace("<t>", rng.choice(t.ZH_TOPICS))
    if rng.random() < 0.25:
        return fill(rng.choice(x.CHAT), rng)
    return rng.choice((*t.ASK, *t.ASK, *t.FORMS)).format(t=rng.choice(t.TOPICS))


def code_generation(rng: random.Random) -> str:
    if rng.random() < CHINESE:
        return rng.choice(x.ZH_CODE).format(t=rng.choice(x.ZH_TASKS))
    return rng.choice(x.CODE).format(t=rng.choice(t.CODE_TASKS))


def snippet(rng: random.Random) -> str:
    """A piece of code with names drawn anew, so that copying must be learnt and not the piece."""
    code = rng.choice(t.SNIPPETS + x.SNIPPETS)
    for old, new in x.RENAMES:
        if rng.random() < 0.5 and old in code:
            code = code.replace(old, rng.choice(new))
    return code.rstrip("\n")


def code_editing(rng: random.Random) -> str:
    code = snippet(rng)
    language = "javascript" if code.startswith("function") else "python"
    edit = rng.choice(x.ZH_EDITS if rng.random() < CHINESE else t.EDITS + x.EDITS)
    return f"{edit}\n\n```{language}\n{code}\n```"


def summarisation(rng: random.Random) -> str:
    chinese = rng.random() < CHINESE
    text = passage(rng, rng.randint(4, 6), chinese)
    return rng.choice(x.ZH_SUMMARISE if chinese else x.SUMMARISE).format(x=text)


def rag_qa(rng: random.Random) -> str:
    chinese = rng.random() < CHINESE
    themes = x.ZH_THEMES if chinese else x.THEMES
    asked = rng.choice(list((x.ZH_QUESTIONS if chinese else x.QUESTIONS).items()))
    parts = [passage(rng, rng.randint(1, 2), chinese) for _ in range(2)]
    fact = fill(asked[0], rng) + ("" if chinese else " ") + fill(rng.choice(rng.choice(themes)), rng)
    parts.insert(rng.randint(0, 2), fact)
    text = "\n".join(f"[{i}] {part}" for i, part in enumerate(parts, 1))
    return rng.choice(x.ZH_RAG if chinese else x.RAG).format(x=text, q=asked[1])


def templated_output(rng: random.Random) -> str:
    if rng.random() < 0.25:
        return fill(rng.choice(x.COUNTED), rng)
    if rng.random() < CHINESE:
        rows = [fill(rng.choice(x.ZH_RECORDS), rng, True) for _ in range(rng.randint(3, 6))]
        return rng.choice(x.ZH_TEMPLATES) + "\n\n" + "\n".join(rows)
    form, record = rng.choice(x.TEMPLATES)
    rows = [f"- {fill(record, rng)}" for _ in range(rng.randint(3, 6))]
    return f"{rng.choice(x.TEMPLATE_ORDERS)}\n\nFormat:\n{form}\n\nRecords:\n" + "\n".join(rows)


def translation(rng: random.Random) -> str:
    if rng.random() < CHINESE:
        return f"Translate into English:\n\n{passage(rng, rng.randint(1, 2), True)}"
    language = rng.choice(("French", "Spanish", "German", "Italian", "Chinese"))
    text = passage(rng, rng.randint(1, 2), False) if rng.random() < 0.7 else fill(rng.choice(t.SENTENCES), rng)
    return f"Translate into {language}:\n\n{text}"


WORKLOADS: Mapping[str, tuple[int, Callable[[random.Random], str]]] = MappingProxyType({
    "open_chat": (26, chat),
    "code_generation": (16, code_generation),
    "code_editing": (16, code_editing),
    "summarisation": (12, summarisation),
    "templated_output": (12, templated_output),
    "rag_qa": (10, rag_qa),
    "translation": (8, translation),
})  # fmt: skip
"""Workload → share of the training prompts in percent, and its maker."""
