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

    Some duplicates are natural, so the arms are compared with each other (``p``, fair coin), and equal draws at equal
    index with equal draws at the next index (``same_p``); none is never asked for.
    """

    arm_a: int
    arm_b: int
    p: float
    same_index: int
    next_index: int
    same_p: float

    @property
    def suspicious(self) -> bool:
        """Whether seeds may be shared: one arm repeats itself clearly more often, or the arms follow each other."""
        return self.p < ALPHA or (self.same_p < ALPHA and self.same_index > self.next_index)


def duplicates(arm_a: Mapping[str, Sequence[Ids]], arm_b: Mapping[str, Sequence[Ids]]) -> Duplicates:
    """Count duplicates; keys are prompts."""
    a, b = (sum(_repeated(draws) for draws in arm.values()) for arm in (arm_a, arm_b))
    same, following = (_matches(arm_a, arm_b, shift) for shift in (0, 1))
    return Duplicates(
        a, b, binomial_half_two_sided(a, a + b), same, following, binomial_half_two_sided(same, same + following)
    )


def _matches(arm_a: Mapping[str, Sequence[Ids]], arm_b: Mapping[str, Sequence[Ids]], shift: int) -> int:
    total = 0
    for prompt, draws in arm_a.items():
        others = list(arm_b.get(prompt, ()))
        turned = others[shift:] + others[:shift]
        total += sum(x == y for x, y in zip(draws, turned, strict=False))
    return total


def _repeated(draws: Sequence[Ids]) -> int:
    return sum(count - 1 for count in Counter(draws).values())
