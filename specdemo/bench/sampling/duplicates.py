"""Shared seeds make equal sequences: count them before any test trusts that draws are independent. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specdemo.bench.distributions import binomial_half_two_sided

ALPHA = 0.01
Ids = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Duplicates:
    """Whole sequences that occur again within a prompt, by arm, and equal draws at equal index across the arms.

    Some duplicates are natural, so arms are compared with each other (``p``, fair coin) and never asked for none.
    """

    arm_a: int
    arm_b: int
    same_index: int
    p: float

    @property
    def suspicious(self) -> bool:
        """Whether one arm repeats itself clearly more often than the other: its seeds may be shared."""
        return self.p < ALPHA


def duplicates(arm_a: Mapping[str, Sequence[Ids]], arm_b: Mapping[str, Sequence[Ids]]) -> Duplicates:
    """Count duplicates; keys are prompts."""
    a, b = (sum(_repeated(draws) for draws in arm.values()) for arm in (arm_a, arm_b))
    same = sum(x == y for prompt, draws in arm_a.items() for x, y in zip(draws, arm_b.get(prompt, ()), strict=False))
    return Duplicates(a, b, same, binomial_half_two_sided(a, a + b))


def _repeated(draws: Sequence[Ids]) -> int:
    return sum(count - 1 for count in Counter(draws).values())
