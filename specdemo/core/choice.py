"""Which speculation a managed pair may be given while it runs, what each costs, and what came before."""

from __future__ import annotations

from dataclasses import dataclass

NGRAM, DRAFT_MODEL, NONE, CONFIGURED = "ngram", "draft_model", "none", "configured"
"""Names of choices. ``configured`` is what the settings ask for, where that is none of the other three."""

K_CHOICES = (1, 8)
"""Draft tokens a step that a visitor may choose from, both included."""


@dataclass(frozen=True, slots=True)
class Picked:
    """A configuration in two words: the choice's name, vLLM's method (None: no speculation) and k."""

    name: str
    method: str | None = None
    k: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One configuration on offer.

    ``method`` is vLLM's name, None for no speculation; ``k`` is the draft length to begin with, None where there is
    none to choose. ``draft`` is the draft model's name without its path. ``reason`` says in one sentence why it cannot
    work here; None if it can. ``extra_bytes`` estimates the weights that it adds to the target's (0: none),
    ``memory_bytes`` is what the whole engine took right after its last start with it, None if that was not seen.
    ``start_s`` holds (k, median seconds of earlier starts here); a k that never ran has no entry, and the choice
    without speculation has k 0.
    """

    name: str
    method: str | None = None
    k: int | None = None
    draft: str | None = None
    reason: str | None = None
    extra_bytes: int | None = None
    memory_bytes: int | None = None
    start_s: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Switching:
    """What the method switch shows. ``former`` is the last configuration that was ready, if it is not the current."""

    current: Picked
    former: Picked | None
    choices: tuple[Choice, ...]
    k_limits: tuple[int, int] = K_CHOICES
