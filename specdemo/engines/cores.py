"""Which CPU cores each engine gets. Own cores keep a race from being a fight over them (benchmarks/results)."""

from __future__ import annotations

import os
from collections.abc import Sequence


def usable_cores() -> tuple[int, ...]:
    """The CPU numbers that this process may use; a container may see fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def split_cores(cores: Sequence[int] | None = None) -> tuple[str, str]:
    """(standard, speculative) in vLLM's notation: halves of equal size, or the same one core where there is just one.

    An odd core is left to the page and the client, so that both sides get the same.
    """
    numbers = tuple(cores) if cores is not None else usable_cores()
    half = len(numbers) // 2
    if half == 0:
        one = notation(numbers or (0,))
        return one, one
    return notation(numbers[:half]), notation(numbers[half : 2 * half])


def same_cores(cores: Sequence[int] | None = None) -> tuple[str, str]:
    """All cores for each engine: faster alone (Measure), a fight in a race."""
    everything = notation(tuple(cores) if cores is not None else usable_cores())
    return everything, everything


def notation(numbers: Sequence[int]) -> str:
    """(0, 1, 2, 5) → "0-2,5"."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
