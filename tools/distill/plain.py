"""Plain text for a first stage: the sources and documentation of Python's own standard library (PSF licence).

The target's answers are costly to make; grammar, code and copying can be learnt before, from text that every
installation has. Seeded, cut into windows, tests left out.
"""

from __future__ import annotations

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

WINDOW = 256


def documents(seed: int) -> Iterator[str]:
    """Files in a seeded order; the language's reference (prose) is cut into its topics and comes in between."""
    library = Path(sysconfig.get_path("stdlib"))
    files = [
        p
        for p in sorted(library.rglob("*.py"))
        if not {"site-packages", "test", "tests", "idle_test", "lib2to3"} & set(p.parts)
    ]
    texts = [
        p.read_text(encoding="utf-8", errors="ignore")
        for p in files
        if p.stat().st_size < 200_000 and p.name != "topics.py"
    ]
    from pydoc_data.topics import topics

    texts += list(topics.values())
    for i in np.random.default_rng(seed).permutation(len(texts)):
        yield texts[i]


def windows(tokenizer: Path, seed: int, tokens: int) -> np.ndarray:
    """About ``tokens`` ids as rows of WINDOW."""
    coder, ids = Tokenizer.from_file(str(tokenizer)), []
    for text in documents(seed):
        ids += coder.encode(text, add_special_tokens=False).ids
        if len(ids) > tokens:
            break
    rows = len(ids) // WINDOW
    return np.array(ids[: rows * WINDOW], np.int64).reshape(rows, WINDOW)
