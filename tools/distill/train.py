"""Distil a small draft model from the target's recorded answers.

    python train.py --target FOLDER --data FOLDER --out FOLDER --hidden 128 --layers 1 [--epochs 3] [--seed 0]

A Llama-shaped student with the target's tokenizer and vocabulary. Its embeddings (shared with the output head) start
as the target's, projected onto their leading principal directions: tokens that mean the same stay neighbours.
Loss at each answer position: cross-entropy with the target's own 20-best distribution, plus cross-entropy with its
first choice (greedy drafts are compared with that one), plus a little for the prompt's own tokens, which teaches copying.

The softmax runs over the tokens that occur in the data plus a random sample of the others; the others are shrunk at
the start so that they do not win by accident. A checkpoint after every epoch makes the run resumable.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path

import numpy as np
import torch
from data import Batch, Example, batches, load
from torch.nn import functional
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

COPY_WEIGHT = 0.2
HARD_WEIGHT = 0.5
NEGATIVES = 2048
COPIED = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "chat_template.jinja",
    "vocab.json",
    "merges.txt",
)


def student(target: LlamaForCausalLM, hidden: int, layers: int, seen: torch.Tensor) -> LlamaForCausalLM:
    """A fresh student; embeddings from the target's principal directions, unseen tokens shrunk."""
    c = target.config
    heads = max(hidden // 64, 1)
    config = LlamaConfig(
        vocab_size=c.vocab_size,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3 // 32 * 32,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        head_dim=64,
        max_position_embeddings=c.max_position_embeddings,
        rms_norm_eps=c.rms_norm_eps,
        rope_parameters=getattr(c, "rope_parameters", None),
        tie_word_embeddings=True,
        bos_token_id=c.bos_token_id,
        eos_token_id=c.eos_token_id,
        pad_token_id=c.pad_token_id,
    )
    model = LlamaForCausalLM(config).float()
    with torch.no_grad():
        e = target.get_input_embeddings().weight.float()
        centred = e - e[seen].mean(0)
        _, _, v = torch.linalg.svd(centred[seen], full_matrices=False)
        small = centred @ v[:hidden].T
        small *= 0.05 / small[seen].std()
        unseen = torch.ones(len(e), dtype=torch.bool)
        unseen[seen] = False
        small[unseen] *= 0.25
        model.get_input_embeddings().weight.copy_(small)
    model.tie_weights()
    return model


def loss(
    model: LlamaForCausalLM, batch: Batch, columns: torch.Tensor, place: torch.Tensor
) -> tuple[torch.Tensor, float, int]:
    """The loss of a batch, and how often the student's first choice is the target's: (loss, hits, positions).

    ``columns`` are the vocabulary ids in this softmax, ``place[id]`` their index in it.
    """
    with torch.autocast("cpu", torch.bfloat16):
        states = model.model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state.flatten(0, 1)
        head = model.get_input_embeddings().weight[columns]
        logits = states[batch.positions] @ head.T
        copy_logits = states[batch.copy_positions] @ head.T
    log_q = functional.log_softmax(logits.float(), dim=-1)
    weights = batch.top_logprobs.exp()
    weights = weights / weights.sum(1, keepdim=True)
    best = place[batch.top_ids]
    soft = -(weights * log_q.gather(1, best)).sum(1).mean()
    hard = functional.nll_loss(log_q, best[:, 0])
    copy = functional.cross_entropy(copy_logits.float(), place[batch.copy_targets])
    hits = (log_q.argmax(1) == best[:, 0]).sum().item()
    return soft + HARD_WEIGHT * hard + COPY_WEIGHT * copy, hits, len(best)


def occurring(examples: list[Example], vocabulary: int) -> torch.Tensor:
    """Ids that occur in prompts, answers or among the target's 20 best, most of the time: at least 3 times."""
    counts = np.zeros(vocabulary, np.int64)
    for e in examples:
        np.add.at(counts, e.ids, 3)
        np.add.at(counts, e.top_ids[:, :5].ravel(), 1)
        np.add.at(counts, e.top_ids[:, 5:].ravel(), 0)
    return torch.from_numpy(np.flatnonzero(counts >= 3))


def columns_of(
    batch: Batch, seen: torch.Tensor, vocabulary: int, generator: torch.Generator
) -> tuple[torch.Tensor, torch.Tensor]:
    """This batch's softmax: seen tokens, whatever the batch holds, and random negatives."""
    extra = torch.randint(vocabulary, (NEGATIVES,), generator=generator)
    columns = torch.unique(torch.cat([seen, batch.top_ids.flatten(), batch.copy_targets, extra]))
    place = torch.zeros(vocabulary, dtype=torch.long)
    place[columns] = torch.arange(len(columns))
    return columns, place


@torch.no_grad()
def agreement(model: LlamaForCausalLM, examples: list[Example], vocabulary: int) -> float:
    """Share of held-out answer positions at which the student's first choice, of the whole vocabulary, is the target's."""
    model.eval()
    every = torch.arange(vocabulary)
    hits = total = 0
    for batch in batches(examples, 4096, None):
        _, h, n = loss(model, batch, every, every)
        hits += h
        total += n
    model.train()
    return hits / max(total, 1)


def save(model: LlamaForCausalLM, target: Path, out: Path, facts: dict[str, object]) -> None:
    """The student as a model folder in bfloat16 with the target's tokenizer, whole or not at all."""
    half = out.with_name(out.name + ".half")
    shutil.rmtree(half, ignore_errors=True)
    copy = LlamaForCausalLM(model.config).to(torch.bfloat16)
    copy.load_state_dict(model.state_dict())
    copy.tie_weights()
    copy.save_pretrained(half)
    for name in COPIED:
        if (target / name).exists():
            shutil.copy(target / name, half / name)
    (half / "training.json").write_text(json.dumps(facts, indent=1), encoding="utf-8")
    shutil.rmtree(out, ignore_errors=True)
    half.rename(out)


def main() -> None:
    """Train one shape."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("target", "data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    train, valid = load(args.data)
    target = AutoModelForCausalLM.from_pretrained(args.target, dtype=torch.bfloat16)
    vocabulary = target.config.vocab_size
    seen = occurring(train, vocabulary)
    model = student(target, args.hidden, args.layers, seen)
    del target
    answers = sum(len(e.top_ids) for e in train)
    size = sum(p.numel() for p in model.parameters())
    print(
        f"{len(train)} answers, {answers} tokens, {len(seen)} tokens of the vocabulary, {size / 1e6:.1f} M parameters",
        flush=True,
    )
    steps = args.epochs * sum(1 for _ in batches(train, args.batch_tokens, None))
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, betas=(0.9, 0.98), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, args.lr, total_steps=steps, pct_start=0.08)
    checkpoint = args.out.with_name(args.out.name + ".checkpoint.pt")
    first, history = 0, []
    if checkpoint.exists():
        kept = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
        schedule.load_state_dict(kept["schedule"])
        first, history = kept["epoch"], kept["history"]
    for epoch in range(first, args.epochs):
        rng = np.random.default_rng([args.seed, epoch])
        generator = torch.Generator().manual_seed(args.seed * 1000 + epoch)
        began, hits, total = time.monotonic(), 0.0, 0
        for step, batch in enumerate(batches(train, args.batch_tokens, rng)):
            columns, place = columns_of(batch, seen, vocabulary, generator)
            value, h, n = loss(model, batch, columns, place)
            optimiser.zero_grad(set_to_none=True)
            value.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            schedule.step()
            hits, total = hits * 0.98 + h, total * 0.98 + n
            if step % 20 == 0:
                pace = time.monotonic() - began
                print(
                    f"epoch {epoch + 1}/{args.epochs} step {step} loss {value.item():.3f} agree {hits / total:.3f} {pace:.0f} s",
                    flush=True,
                )
        held = agreement(model, valid, vocabulary)
        history.append(
            {"epoch": epoch + 1, "held_out_agreement": round(held, 4), "seconds": round(time.monotonic() - began)}
        )
        print(history[-1], flush=True)
        torch.save(
            {
                "model": model.state_dict(),
                "optimiser": optimiser.state_dict(),
                "schedule": schedule.state_dict(),
                "epoch": epoch + 1,
                "history": history,
            },
            checkpoint,
        )
        facts = {
            "hidden": args.hidden,
            "layers": args.layers,
            "parameters": size,
            "answer_tokens": answers,
            "seed": args.seed,
            "epochs": history,
        }
        save(model, args.target, args.out, facts)


if __name__ == "__main__":
    main()
