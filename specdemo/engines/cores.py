"""Which CPU cores each engine gets.

Bound to cores of their own, two equal engines measured 6 % apart here, and always the same way: core 0 also serves
interrupts and this application. So both get the same number of threads, half of the cores, and the system places them
on whichever cores are free: in a race they do not fight, and in a measurement neither has the worse core.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from specdemo.errors import ConfigError


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


FLOATING = "any:"
"""Prefix of "any:N": N threads that the system places, bound to no core."""


def floating_cores(cores: Sequence[int] | None = None) -> str:
    """Half of the cores' number of threads for each engine, bound to none; at least one. An odd core is left over."""
    numbers = tuple(cores) if cores is not None else usable_cores()
    return f"{FLOATING}{max(len(numbers) // 2, 1)}"


def binding(cores: str | None) -> tuple[str, str | None]:
    """(VLLM_CPU_OMP_THREADS_BIND, OMP_NUM_THREADS or None where the binding itself says how many)."""
    if cores is None:
        return "auto", None
    if cores.startswith(FLOATING):
        return "nobind", cores.removeprefix(FLOATING)
    return cores, None


def thread_count(cores: str | None) -> int | None:
    """How many threads that notation means for one engine; None where vLLM chooses. ConfigError if it is none."""
    if cores is None:
        return None
    if cores.startswith(FLOATING):
        return int(cores.removeprefix(FLOATING))
    ends = [part.split("-") for part in cores.split(",")]
    if not all(end.isdecimal() for part in ends for end in part):
        return None
    sizes = [int(part[-1]) - int(part[0]) + 1 for part in ends]
    if min(sizes) < 1:
        raise ConfigError(f"The cores `{cores[:60]}` run backwards; write the lower number first.")
    return sum(sizes)


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
