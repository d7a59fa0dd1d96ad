"""Shards of ``generate.py`` as training batches. Whole prompts go to training or to validation, never to both."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch


@dataclass(frozen=True, slots=True)
class Example:
    """One answer: ``ids`` is prompt then output; row i of ``top_ids``/``top_logprobs`` belongs to output token i."""

    ids: np.ndarray
    prompt_len: int
    top_ids: np.ndarray
    top_logprobs: np.ndarray


def load(folder: Path, *, held_out: float = 0.04) -> tuple[list[Example], list[Example]]:
    """Training and validation examples. A prompt's ids decide where it goes, so that its greedy and its sampled answer stay together."""
    train: list[Example] = []
    valid: list[Example] = []
    for path in sorted(folder.glob("*.npz")):
        if path.name.endswith(".half.npz"):
            continue
        with np.load(path) as z:
            a = {name: z[name] for name in z.files}
        prompt_at = output_at = 0
        for n, m in zip(a["prompt_len"], a["output_len"], strict=True):
            prompt = a["prompt_ids"][prompt_at : prompt_at + n]
            rows = slice(output_at, output_at + m)
            example = Example(
                np.concatenate([prompt, a["output_ids"][rows]]).astype(np.int64),
                int(n),
                a["top_ids"][rows].astype(np.int64),
                a["top_logprobs"][rows].astype(np.float32),
            )
            bucket = zlib.crc32(prompt.tobytes()) % 10_000 / 10_000
            (valid if bucket < held_out else train).append(example)
            prompt_at += n
            output_at += m
    return train, valid


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded ids [B, T], mask, and the flat positions (into B*T) whose next token has a teacher row."""

    ids: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor
    top_ids: torch.Tensor
    top_logprobs: torch.Tensor
    copy_positions: torch.Tensor
    copy_targets: torch.Tensor


def batches(examples: list[Example], tokens: int, rng: np.random.Generator | None) -> Iterator[Batch]:
    """Batches of about ``tokens`` padded tokens, of similar lengths; shuffled when ``rng`` is given."""
    order = np.argsort([len(e.ids) for e in examples], kind="stable")
    groups, group, longest = [], [], 0
    for i in order:
        longest = max(longest, len(examples[i].ids))
        if group and longest * (len(group) + 1) > tokens:
            groups.append(group)
            group, longest = [], len(examples[i].ids)
        group.append(int(i))
    groups.append(group)
    if rng is not None:
        rng.shuffle(groups)
    for members in groups:
        yield _batch([examples[i] for i in members])


def _batch(members: list[Example]) -> Batch:
    width = max(len(e.ids) for e in members)
    ids = torch.zeros(len(members), width, dtype=torch.long)
    mask = torch.zeros(len(members), width, dtype=torch.long)
    positions, copies, targets = [], [], []
    for row, e in enumerate(members):
        ids[row, : len(e.ids)] = torch.from_numpy(e.ids)
        mask[row, : len(e.ids)] = 1
        # The token at index i is predicted at index i-1.
        positions.append(torch.arange(e.prompt_len - 1, len(e.ids) - 1) + row * width)
        copies.append(torch.arange(0, e.prompt_len - 1) + row * width)
        targets.append(torch.from_numpy(e.ids[1 : e.prompt_len]))
    return Batch(
        ids,
        mask,
        torch.cat(positions),
        torch.from_numpy(np.concatenate([e.top_ids for e in members])),
        torch.from_numpy(np.concatenate([e.top_logprobs for e in members])),
        torch.cat(copies),
        torch.cat(targets),
    )
