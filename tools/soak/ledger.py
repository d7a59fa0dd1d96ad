"""What was seen during a soak, and what of it is a fault."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from tools.soak.visitor import Seen

MB = 1_000_000
FROM, TO = 100, 1000
GROWTH = 0.05
LEFT_S = 1.0
BEHIND_S = 1.0


@dataclass
class Ledger:
    """Filled while the soak runs. ``memory`` holds (runs so far, bytes), ``left`` seconds until engines were free."""

    head: str
    seen: defaultdict[str, list[Seen]] = field(default_factory=lambda: defaultdict(list))
    faults: list[str] = field(default_factory=list)
    memory: list[tuple[int, int]] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    cores: float = 0.0
    runs: int = 0
    tabs: int = 0
    disturbed: int = 0
    lines: list[str] = field(default_factory=list)

    def fault(self, text: str) -> None:
        """Something that must not be."""
        self.faults.append(text)

    def saw(self, visitor: str, seen: Seen) -> None:
        """One run of a visitor, however it ended."""
        self.seen[visitor].append(seen)
        self.runs += 1

    def crowd(self, viewers: int, spread: Sequence[float], cores: float, *, whole: bool) -> None:
        """The viewers of one run: seconds between the first and the last of them, by frame."""
        worst = max(spread, default=0.0)
        self.lines.append(
            f"{viewers} viewers of one live run: the last at most {worst:.2f} s behind the first "
            f"({len(spread)} frames), {cores:.2f} of a core"
        )
        if not whole or not spread:
            self.fault("some viewers did not get every frame")
        if worst > BEHIND_S:
            self.fault(f"a viewer was {worst:.2f} s behind")
        if cores > 1:
            self.fault(f"{viewers} viewers took {cores:.2f} cores")

    def report(self) -> str:
        """The result as text; adds the faults that only the whole shows."""
        ways = Counter(seen.how for found in self.seen.values() for seen in found)
        lines = [
            self.head,
            f"{self.runs} runs of visitors: " + ", ".join(f"{count} {way}" for way, count in sorted(ways.items())),
            f"runs while an engine was away: {self.disturbed}; rounds of real browser tabs: {self.tabs}",
            f"the page took {self.cores:.2f} of a core on average",
            *self._left(),
            *self._growth(),
            *self.lines,
            f"faults: {len(self.faults) or 'none'}",
            *(f"  {fault}" for fault in self.faults[:40]),
        ]
        return "\n".join(lines)

    def _left(self) -> list[str]:
        if not self.left:
            return []
        late = sorted(self.left)
        worst, high = late[-1], late[int(0.95 * (len(late) - 1))]
        if worst > LEFT_S:
            self.fault(f"an engine went on for {worst:.2f} s after a tab was closed")
        return [
            f"engines free after a stop or a closed tab: p95 {high:.2f} s, at most {worst:.2f} s ({len(late)} times)"
        ]

    def _growth(self) -> list[str]:
        at = {count: self._memory_at(count) for count in (FROM, TO)}
        last = median([size for _, size in self.memory[-20:]]) if self.memory else 0.0
        early, late = at[FROM], at[TO]
        if early is None:
            return []
        if late is None:
            return [f"memory: {early / MB:.0f} MB at run {FROM}, {last / MB:.0f} MB at the end ({self.runs} runs)"]
        if late > early * (1 + GROWTH):
            self.fault(f"memory grew by {100 * (late / early - 1):.1f} % between runs {FROM} and {TO}")
        growth = f"{100 * (late / early - 1):+.1f} %"
        ends = f"{last / MB:.0f} MB at the end"
        return [f"memory: {early / MB:.0f} MB at run {FROM}, {late / MB:.0f} MB at run {TO} ({growth}), {ends}"]

    def _memory_at(self, count: int) -> float | None:
        near = [size for runs, size in self.memory if 0.85 * count <= runs <= 1.15 * count]
        return median(near) if near and self.runs >= count else None
