"""Shards of ``generate.py`` as training batches. Whole prompts go to training or to validation, never to both."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

HELD_OUT = 0.05
"""Share of the prompts that training never sees."""


@dataclass(frozen=True, slots=True)
class Example:
    """One answer: ``ids`` is prompt then output; row i of ``top_ids``/``top_logprobs`` belongs to output token i."""

    ids: np.ndarray
    prompt_len: int
    top_ids: np.ndarray
    top_logprobs: np.ndarray

    @property
    def greedy(self) -> bool:
        """Whether every token is the target's first choice."""
        return bool((self.ids[self.prompt_len :] == self.top_ids[:, 0]).all())


def read_shard(path: Path) -> Iterator[Example]:
    """The answers of one file."""
    with np.load(path) as z:
        a = {name: z[name] for name in z.files}
    prompt_at = output_at = 0
    for n, m in zip(a["prompt_len"], a["output_len"], strict=True):
        rows = slice(output_at, output_at + m)
        yield Example(
            np.concatenate([a["prompt_ids"][prompt_at : prompt_at + n], a["output_ids"][rows]]).astype(np.int64),
            int(n),
            a["top_ids"][rows].astype(np.int64),
            a["top_logprobs"][rows].astype(np.float32),
        )
        prompt_at, output_at = prompt_at + n, output_at + m


def load(folder: Path) -> tuple[list[Example], list[Example]]:
    """Training and validation examples, by a checksum of each prompt's ids."""
    train: list[Example] = []
    valid: list[Example] = []
    for path in sorted(folder.glob("[0-9]*.npz")):
        for example in read_shard(path):
            if len(example.top_ids):
                bucket = zlib.crc32(example.ids[: example.prompt_len].tobytes()) % 10_000 / 10_000
                (valid if bucket < HELD_OUT else train).append(example)
    return train, valid


def occurring(examples: Sequence[Example], vocabulary: int) -> torch.Tensor:
    """Sorted ids that stand in a prompt or an answer, or were one of the target's three best choices."""
    found = np.zeros(vocabulary, bool)
    for e in examples:
        found[e.ids] = True
        found[e.top_ids[:, :3].ravel()] = True
    return torch.from_numpy(np.flatnonzero(found))


@dataclass(frozen=True, slots=True)
class Batch:
    """``ids`` [B, T] compact, padded on the right; ``positions`` into B*T whose next token has a row of shares."""

    ids: torch.Tensor
    positions: torch.Tensor
    index: torch.Tensor
    weight: torch.Tensor


class Batches:
    """Batches of about ``tokens`` padded tokens of similar lengths, in ids of the compact vocabulary ``seen``."""

    def __init__(self, examples: Sequence[Example], seen: torch.Tensor, tokens: int, hard: float) -> None:
        self.examples, self.hard = examples, hard
        self.place = np.full(65536, -1, np.int64)
        self.place[seen.numpy()] = np.arange(len(seen))
        order = np.argsort([len(e.ids) for e in examples], kind="stable")
        self.groups: list[list[int]] = [[]]
        for i in order:
            if self.groups[-1] and len(examples[i].ids) * (len(self.groups[-1]) + 1) > tokens:
                self.groups.append([])
            self.groups[-1].append(int(i))

    def __len__(self) -> int:
        return len(self.groups)

    def epoch(self, rng: np.random.Generator | None) -> Iterator[Batch]:
        """All batches once, shuffled when ``rng`` is given."""
        order = rng.permutation(len(self.groups)) if rng is not None else np.arange(len(self.groups))
        for i in order:
            yield self.batch([self.examples[j] for j in self.groups[i]])

    def batch(self, members: Sequence[Example]) -> Batch:
        width = max(len(e.ids) for e in members)
        ids = np.zeros((len(members), width), np.int64)
        for row, e in enumerate(members):
            ids[row, : len(e.ids)] = np.maximum(self.place[e.ids], 0)
        # The token at index i is predicted at index i - 1.
        positions = [np.arange(e.prompt_len - 1, len(e.ids) - 1) + row * width for row, e in enumerate(members)]
        index = self.place[np.concatenate([e.top_ids for e in members])]
        shares = np.exp(np.concatenate([e.top_logprobs for e in members])) * (index >= 0)
        shares /= np.maximum(shares.sum(1, keepdims=True), 1e-9)
        shares[:, 0] += self.hard * (index[:, 0] >= 0)
        shares /= np.maximum(shares.sum(1, keepdims=True), 1e-9)
        return Batch(
            torch.from_numpy(ids),
            torch.from_numpy(np.concatenate(positions)),
            torch.from_numpy(np.maximum(index, 0)),
            torch.from_numpy(shares.astype(np.float32)),
        )


def tokens_per_step(hits: Sequence[np.ndarray], k: int) -> tuple[float, list[float]]:
    """What drafting would give on greedy answers: (tokens a target step, acceptance of draft position 1..k).

    ``hits[i][t]`` says whether the student's first choice at output token t is the target's. As long as all drafts
    before were right the student sees the target's own text, so this is exact, not an estimate. The first token of an
    answer comes from the prefill and belongs to no step.
    """
    steps = tokens = 0
    offered, accepted = np.zeros(k), np.zeros(k)
    for answer in hits:
        at = 1
        while at < len(answer):
            room = min(k, len(answer) - at)
            right = 0
            while right < room and answer[at + right]:
                right += 1
            offered[:room] += 1
            accepted[:right] += 1
            steps, tokens, at = steps + 1, tokens + min(right + 1, len(answer) - at), at + right + 1
    return tokens / max(steps, 1), (accepted / np.maximum(offered, 1)).tolist()
