"""How many requests came through, level by level: an engine that fails under load has failed. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from specdemo.bench.arms import totals
from specdemo.bench.sample import Sample
from specdemo.core.events import Side


@dataclass(frozen=True, slots=True)
class Reliability:
    """How many of an arm's requests failed at a level, and why; all prompts count. ``side`` is who served the arm."""

    kind: Literal["measure", "control"]
    level: int
    side: Side
    requests: int
    failed: int
    failures: tuple[tuple[str, int], ...]

    def over(self, share: float) -> bool:
        """Whether a larger share than this failed."""
        return self.failed > share * self.requests

    def where(self, word: str, *, levels: bool) -> str:
        """Such as "on the speculative arm at concurrency 8"; the level only where there are several."""
        if self.kind == "control":
            return "in the A/A control"
        return f"on the {self.side.value} {word}" + (f" at concurrency {self.level}" if levels else "")


def reliability(kept: Iterable[Sample]) -> tuple[Reliability, ...]:
    """By level and arm, then the control; also of prompts that other levels lack."""
    groups: dict[tuple[bool, int, str], list[Sample]] = defaultdict(list)
    for s in kept:
        groups[s.place.kind == "control", s.place.level, "" if s.place.kind == "control" else s.place.arm].append(s)
    found = []
    for (control, level, _), samples in sorted(groups.items()):
        arm = totals(samples)
        kind: Literal["measure", "control"] = "control" if control else "measure"
        found.append(Reliability(kind, level, samples[0].side, arm.requests, arm.failed, arm.failures))
    return tuple(found)
