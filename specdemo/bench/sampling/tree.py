"""Fallback without scores: do both arms continue shared prefixes alike? G statistic over the prefix tree, permuted.

At every prefix that at least 20 sequences of both arms together share, the next ids form a table by arm (ids seen
fewer than five times pooled); the G values are summed, and the p-value comes from shuffling the arm labels of whole
sequences within each prompt. The chi-squared approximation would be slightly liberal, so it is not used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ids = tuple[int, ...]
SMALLEST_NODE = 20
SMALLEST_CELL = 5


@dataclass(frozen=True, slots=True)
class TreeTest:
    """``p`` for all prompts together; ``by_prompt`` names the offender (uncorrected). ``nodes`` used in all."""

    p: float | None
    by_prompt: tuple[tuple[str, float], ...]
    nodes: int
    permutations: int


def tree_test(
    arm_a: Mapping[str, Sequence[Ids]], arm_b: Mapping[str, Sequence[Ids]], *, permutations: int = 199, seed: int = 0
) -> TreeTest:
    """Compare two arms of whole sequences by prompt; None where no prefix is shared often enough."""
    rng = np.random.default_rng(seed)
    total: NDArray[np.float64] | None = None
    by_prompt: list[tuple[str, float]] = []
    nodes = 0
    for prompt in sorted(set(arm_a) & set(arm_b)):
        a, b = list(arm_a[prompt]), list(arm_b[prompt])
        tables = _nodes(a + b)
        if not tables or not a or not b:
            continue
        nodes += len(tables)
        labels = np.zeros((permutations + 1, len(a) + len(b)), dtype=np.float64)
        labels[0, : len(a)] = 1.0
        for row in range(1, permutations + 1):
            labels[row] = rng.permutation(labels[0])
        values = np.zeros(permutations + 1)
        for members, kinds in tables:
            values += _g(labels[:, members], kinds)
        by_prompt.append((prompt, _p(values)))
        spread = float(values[1:].std())
        standard = (values - values[1:].mean()) / spread if spread > 0.0 else np.zeros_like(values)
        total = standard if total is None else total + standard
    return TreeTest(None if total is None else _p(total), tuple(by_prompt), nodes, permutations)


def _p(values: NDArray[np.float64]) -> float:
    return float((1 + int((values[1:] >= values[0] - 1e-12).sum())) / len(values))


def _nodes(sequences: Sequence[Ids]) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
    """For each big enough prefix: which sequences pass it, and the one-hot kind of their next id (rare ids pooled)."""
    found = []
    level: dict[Ids, list[int]] = {(): list(range(len(sequences)))}
    while level:
        deeper: dict[Ids, list[int]] = defaultdict(list)
        for prefix, members in level.items():
            going = [i for i in members if len(sequences[i]) > len(prefix)]
            if len(going) < SMALLEST_NODE:
                continue
            nexts = [sequences[i][len(prefix)] for i in going]
            counts = Counter(nexts)
            common = [token for token, count in counts.items() if count >= SMALLEST_CELL]
            columns = {token: column for column, token in enumerate(common)}
            kinds = np.zeros((len(going), len(common) + (len(common) < len(counts))))
            for row, token in enumerate(nexts):
                kinds[row, columns.get(token, len(common))] = 1.0
            if kinds.shape[1] > 1:
                found.append((np.asarray(going), kinds))
            for i, token in zip(going, nexts, strict=True):
                deeper[*prefix, token].append(i)
        level = {prefix: members for prefix, members in deeper.items() if len(members) >= SMALLEST_NODE}
    return found


def _g(labels: NDArray[np.float64], kinds: NDArray[np.float64]) -> NDArray[np.float64]:
    """G of the arm x next-id table, one value a labelling."""
    in_a = labels @ kinds
    column = kinds.sum(axis=0)
    in_b = column - in_a
    size_a = labels.sum(axis=1, keepdims=True)
    size = float(labels.shape[1])
    expected_a = size_a * column / size
    expected_b = (size - size_a) * column / size
    return _sum(in_a, expected_a) + _sum(in_b, expected_b)


def _sum(observed: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    safe = np.where(observed > 0.0, observed, 1.0)
    under = np.where(wanted > 0.0, wanted, 1.0)
    result: NDArray[np.float64] = 2.0 * np.where(observed > 0.0, observed * np.log(safe / under), 0.0).sum(axis=1)
    return result
