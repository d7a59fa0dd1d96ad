"""The target's own answers with its 20 best next tokens at each place: what the draft model learns from.

    python generate.py --model TARGET --out FOLDER [--seed 0] [--shards 24] [--worker 0/2] [--demo-answers]

Runs in the engine environment, batched, one thread a worker (start several: they share the shards). Each shard is one
file, written under a temporary name and renamed, so a stopped run goes on where it was. Two thirds of the shards are
greedy, one third is sampled at temperature 0.7: at inference the draft has to follow both.

A shard (``.npz``): ``prompt_ids`` and ``output_ids`` (uint16, concatenated), ``prompt_len``, ``output_len`` (int32),
``top_ids`` (uint16, [tokens, 20]) and ``top_logprobs`` (float16, [tokens, 20], natural log at temperature 1).
``--demo-answers`` writes ``demo.npz`` instead: greedy answers to the shipped prompts, for measuring, never for training.
"""

from __future__ import annotations

import argparse
import json
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import prompts as p
import torch
from target import Cache, Target
from tqdm import tqdm
from transformers import AutoTokenizer

TOP = 20
PREFILL_ROWS = 16


def answer(
    target: Target, prompts: list[list[int]], limits: list[int], temperature: float, generator: torch.Generator
) -> dict[str, np.ndarray]:
    """Answers to a batch of prompts, as the arrays of one shard in the order given."""
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    longest = len(prompts[order[-1]])
    low, high = min(prompts), max(prompts)
    same = (i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b)
    shared = next(same, 0) if len(prompts) > 1 else 0  # the chat template's own words, computed once
    alone = Cache(target.config, torch.tensor([0]), max(shared, 1))
    pad = torch.tensor([longest - len(prompts[i]) for i in order])
    cache = Cache(target.config, pad, longest + max(limits), shared)
    if shared:
        target.step(torch.tensor([prompts[0][:shared]]), 0, alone)
        cache.share(alone)
    logits = []
    for at in range(0, len(order), PREFILL_ROWS):
        # Sorted by length, so this piece starts late: what is left of it is padding in all of its rows.
        rows = slice(at, min(at + PREFILL_ROWS, len(order)))
        first = longest - len(prompts[order[rows.stop - 1]]) + shared
        ids = [[0] * (longest - first - len(prompts[i]) + shared) + prompts[i][shared:] for i in order[rows]]
        logits.append(target.step(torch.tensor(ids), first, cache, rows))
    now, alive = torch.cat(logits), list(order)
    out: dict[int, list[tuple[int, Any, Any]]] = {i: [] for i in order}
    for place in tqdm(range(longest, longest + max(limits)), mininterval=10):
        best, ids = now.topk(TOP, dim=1)
        logs = (best - now.logsumexp(1, keepdim=True)).numpy().astype(np.float16)
        chosen = ids[:, 0]
        if temperature > 0:
            chosen = torch.multinomial((now / temperature).softmax(1), 1, generator=generator)[:, 0]
        top = ids.numpy().astype(np.uint16)
        for row, i in enumerate(alive):
            if i >= 0:
                out[i].append((int(chosen[row]), top[row], logs[row]))
                if int(chosen[row]) == target.config["eos_token_id"] or len(out[i]) == limits[i]:
                    alive[row] = -1
        going = [row for row, i in enumerate(alive) if i >= 0]
        if not going:
            break
        if len(going) < 0.85 * len(alive):
            index = torch.tensor(going)
            cache.rows(index)
            chosen, alive = chosen[index], [alive[row] for row in going]
        now = target.step(chosen[:, None], place, cache)
    rows_of = [row for i in range(len(prompts)) for row in out[i]]
    return {
        "prompt_ids": np.concatenate([np.array(ids, np.uint16) for ids in prompts]),
        "output_ids": np.array([token for token, _, _ in rows_of], np.uint16),
        "prompt_len": np.array([len(ids) for ids in prompts], np.int32),
        "output_len": np.array([len(out[i]) for i in range(len(prompts))], np.int32),
        "top_ids": np.stack([ids for _, ids, _ in rows_of]),
        "top_logprobs": np.stack([logs for _, _, logs in rows_of]),
    }


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write whole or not at all."""
    half = path.with_name(f"half-{path.name}")
    np.savez(half, **arrays)
    half.replace(path)


def demo_rows(folder: Path) -> list[tuple[str, int]]:
    """Chat prompts of the shipped workloads and their answer limits, in order of file and line."""
    lines = (line for file in sorted(folder.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines())
    found = (json.loads(line) for line in lines if line.strip())
    return [(row["prompt"], row["max_tokens"]) for row in found if "prompt" in row]


def main() -> None:
    """Generate every missing shard of this worker."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--demo", type=Path, default=Path(__file__).parents[2] / "assets" / "prompts")
    parser.add_argument("--demo-answers", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--size", type=int, default=96, help="answers in a shard, all decoded at once")
    parser.add_argument("--shards", type=int, default=36)
    parser.add_argument("--worker", default="0/1", help="this worker's number and how many there are")
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--minutes", type=float, default=1e6, help="start no further shard after this long")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    worker, workers = (int(part) for part in args.worker.split("/"))
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)
    target, tokenizer = Target(args.model), AutoTokenizer.from_pretrained(args.model)

    def ids_of(question: str) -> list[int]:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, tokenize=False
        )
        return list(tokenizer(text, add_special_tokens=False)["input_ids"])

    if args.demo_answers:
        rows = demo_rows(args.demo)
        ids, limits = [ids_of(question) for question, _ in rows], [limit for _, limit in rows]
        save(args.out / "demo.npz", answer(target, ids, limits, 0.0, torch.Generator()))
        return
    prompts = p.stream(args.seed, list(p.demo_prompts(args.demo)))
    began, tokens = time.monotonic(), 0
    for number in range(args.shards):
        questions = list(islice(prompts, args.size))
        path = args.out / f"{number:04d}.npz"
        if number % workers != worker or path.exists():
            continue
        if time.monotonic() - began > 60 * args.minutes:
            break
        generator = torch.Generator().manual_seed(args.seed * 100_000 + number)
        temperature = 0.7 if number % 3 == 2 else 0.0
        arrays = answer(
            target, [ids_of(q) for q in questions], [args.max_tokens] * len(questions), temperature, generator
        )
        save(path, arrays)
        tokens += len(arrays["output_ids"])
        pace = tokens / (time.monotonic() - began)
        print(f"shard {number + 1} of {args.shards}: {tokens} tokens by this worker, {pace:.0f} a second", flush=True)


if __name__ == "__main__":
    main()
