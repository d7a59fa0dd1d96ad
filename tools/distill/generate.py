"""The target's own answers with its 20 best next tokens at each position: what the draft model learns from.

    python generate.py --model TARGET --out FOLDER [--seed 0] [--dtype bfloat16] [--shard 128]

Runs in the engine environment, batched. Each shard is one file, written under a temporary name and renamed, so a
stopped run goes on where it was. Half of the answers are greedy, half sampled at temperature 0.7: at inference the
draft has to follow both.

A shard (``.npz``): ``prompt_ids`` and ``output_ids`` (uint16, concatenated), ``prompt_len``, ``output_len`` (int32),
``top_ids`` (uint16, [tokens, 20]) and ``top_logprobs`` (float16, [tokens, 20], natural log at temperature 1).
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
import prompts as p

TOP = 20


def pack(outputs: list[Any]) -> dict[str, np.ndarray]:
    """vLLM's request outputs as the arrays of one shard."""
    prompt_ids, output_ids, prompt_len, output_len, ids, lps = [], [], [], [], [], []
    for request in outputs:
        answer = request.outputs[0]
        prompt_ids += request.prompt_token_ids
        output_ids += answer.token_ids
        prompt_len.append(len(request.prompt_token_ids))
        output_len.append(len(answer.token_ids))
        for position in answer.logprobs:
            # The sampled token is listed beyond the 20 best when it is not one of them.
            best = sorted(position.items(), key=lambda item: item[1].rank)[:TOP]
            ids.append([token for token, _ in best])
            lps.append([max(entry.logprob, -60000.0) for _, entry in best])
    return {
        "prompt_ids": np.array(prompt_ids, np.uint16),
        "output_ids": np.array(output_ids, np.uint16),
        "prompt_len": np.array(prompt_len, np.int32),
        "output_len": np.array(output_len, np.int32),
        "top_ids": np.array(ids, np.uint16),
        "top_logprobs": np.array(lps, np.float16),
    }


def texts(outputs: list[Any]) -> list[str]:
    """The answers as text, used as passages by stage two."""
    return [request.outputs[0].text for request in outputs]


def save(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write whole or not at all."""
    half = path.with_suffix(".half.npz")
    np.savez(half, **arrays)
    half.replace(path)


def main() -> None:
    """Generate every missing shard."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--demo", type=Path, default=Path(__file__).parents[2] / "assets" / "prompts")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--shard", type=int, default=128)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--limit", type=int, default=None, help="stop after this many shards")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")

    from vllm import LLM, SamplingParams  # heavy, and only now are the variables above set

    # No seed per request: on CPU vLLM 0.32 rewinds a seeded generator after a partial prefill, which torch refuses there.
    llm = LLM(
        model=str(args.model),
        dtype=args.dtype,
        max_model_len=1024,
        max_num_seqs=128,
        enforce_eager=True,
        seed=args.seed,
        disable_log_stats=True,
    )
    demo = list(p.demo_prompts(args.demo))
    one = p.disjoint(p.stage_one(args.seed), demo)
    work = [(f"one-greedy-{i:04d}", one[i : i + args.shard], 0.0) for i in range(0, len(one), args.shard)]
    work = [
        item
        for pair in zip(work, [(n.replace("greedy", "warm"), q, 0.7) for n, q, _ in work], strict=True)
        for item in pair
    ]
    done_shards, passages, began, tokens = 0, {}, time.monotonic(), 0

    def run(name: str, questions: list[str], temperature: float) -> None:
        nonlocal done_shards, tokens
        path, words = args.out / f"{name}.npz", args.out / f"{name}.txt"
        if not path.exists():
            if args.limit is not None and done_shards >= args.limit:
                return
            sampling = SamplingParams(temperature=temperature, max_tokens=args.max_tokens, logprobs=TOP)
            chats = [[{"role": "user", "content": question}] for question in questions]
            outputs = llm.chat(chats, sampling, use_tqdm=False)
            words.write_text("\x1e".join(texts(outputs)), encoding="utf-8")
            save(path, pack(outputs))
            done_shards += 1
            tokens += sum(len(o.outputs[0].token_ids) for o in outputs)
            print(f"{name}: {tokens} tokens, {tokens / (time.monotonic() - began):.0f} tokens/s", flush=True)
        if temperature > 0:
            passages[name] = words.read_text(encoding="utf-8").split("\x1e") if words.exists() else []

    for name, questions, temperature in work:
        run(name, questions, temperature)
    texts_in_order = [text for name in sorted(passages) for text in passages[name]]
    two = p.disjoint(p.stage_two(args.seed, texts_in_order), demo)
    for i in range(0, len(two), args.shard):
        run(f"two-{i:05d}", two[i : i + args.shard], 0.0 if (i // args.shard) % 2 else 0.7)


if __name__ == "__main__":
    main()
