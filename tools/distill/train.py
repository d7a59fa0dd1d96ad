"""Distil a small draft model from the target's recorded answers.

    python train.py --target FOLDER --data FOLDER --out FOLDER --hidden 128 --layers 2 [--epochs 12] [--seed 0]

Loss at each answer position: cross-entropy with the target's own 20-best distribution, mixed with its first choice,
which is what greedy drafts are compared with. A checkpoint after every epoch makes a run resumable; the best epoch on
held-out prompts is exported. ``--minutes`` stops after the epoch in which that time runs out (start again to go on).
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import Batches, Example, load, occurring, tokens_per_step
from model import HeadLoss, Shape, Student, export, project, teach_copying
from plain import windows
from safetensors import safe_open
from tqdm import tqdm

HARD = 0.5
"""Weight of the target's first choice beside its whole distribution."""

DEPTHS = (1, 2, 3, 4, 5)


def rate(step: int, steps: int, warm: int = 60) -> float:
    """Learning rate factor: a short rise, then half a cosine down to 3 %."""
    if step < warm:
        return (step + 1) / warm
    return 0.03 + 0.97 * 0.5 * (1 + math.cos(math.pi * min((step - warm) / max(steps - warm, 1), 1.0)))


def adam(model: Student, lr: float) -> torch.optim.AdamW:
    """The embeddings start well and move a third as fast as the rest."""
    rest = [p for name, p in model.named_parameters() if name != "embedding"]
    return torch.optim.AdamW(
        [{"params": [model.embedding], "lr": lr / 3, "base": lr / 3}, {"params": rest, "lr": lr, "base": lr}],
        betas=(0.9, 0.98), weight_decay=0.01, fused=True,
    )  # fmt: skip


def update(model: Student, optimiser: torch.optim.AdamW, factor: float, loss: torch.Tensor) -> None:
    """One step at ``factor`` of the base rates."""
    for group in optimiser.param_groups:
        group["lr"] = group["base"] * factor
    optimiser.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()


def read(model: Student, texts: np.ndarray, seen: torch.Tensor, args: argparse.Namespace) -> None:
    """The first stage: next-token prediction on plain text, once over. Rare tokens are passed over as targets."""
    place = np.full(65536, -1, np.int64)
    place[seen.numpy()] = np.arange(len(seen))
    ids, rows = place[texts], max(args.batch_tokens // texts.shape[1], 1)
    ids = ids[np.random.default_rng(args.seed).permutation(len(ids))]
    optimiser, steps = adam(model, args.lr), len(ids) // rows
    bar = tqdm(range(steps), desc="plain text", mininterval=5)
    for step in bar:
        batch = torch.from_numpy(ids[step * rows : (step + 1) * rows])
        kept = batch[:, 1:] >= 0
        states = model(batch.clamp(min=0))[:, :-1][kept]
        wanted = batch[:, 1:][kept][:, None]
        loss, choice = HeadLoss.apply(states, model.embedding, wanted, torch.ones(wanted.shape))
        update(model, optimiser, rate(step, steps), loss)
        bar.set_postfix(
            loss=f"{loss.item():.3f}", right=f"{(choice == wanted[:, 0]).float().mean():.3f}", refresh=False
        )


@torch.no_grad()
def resume(model: Student, seen: torch.Tensor, kept: dict[str, Any]) -> torch.Tensor:
    """The first stage's weights, also where the answers have grown since: tokens new to it begin at their start."""
    start: torch.Tensor = kept["start"]
    whole = start.clone()
    whole[kept["seen"]] = kept["model"]["embedding"]
    model.load_state_dict({**kept["model"], "embedding": whole[seen]})
    return start


@torch.no_grad()
def judge(model: Student, examples: list[Example], seen: torch.Tensor) -> dict[str, object]:
    """Agreement with the target's first choice, and tokens a step for each draft length, on greedy answers.

    The choice is among the seen tokens; the others are shrunk and all but never win (measured in vLLM in the end).
    """
    model.eval()
    greedy = [e for e in examples if e.greedy] or examples
    work, hits = Batches(greedy, seen, 8192, 0.0), []
    for group, batch in zip(work.groups, work.epoch(None), strict=True):
        states = model(batch.ids).flatten(0, 1)[batch.positions]
        choice = torch.cat([(part @ model.embedding.T).argmax(1) for part in states.split(1024)]).numpy()
        first = np.concatenate([work.place[greedy[i].top_ids[:, 0]] for i in group])
        ends = np.cumsum([len(greedy[i].top_ids) for i in group])
        hits += np.split(choice == first, ends[:-1])
    model.train()
    gains = {str(k): round(tokens_per_step(hits, k)[0], 3) for k in DEPTHS}
    _, positions = tokens_per_step(hits, DEPTHS[-1])
    return {
        "agreement": round(float(np.concatenate(hits).mean()), 4),
        "tokens_per_step": gains,
        "acceptance_by_position": [round(p, 4) for p in positions],
    }


def main() -> None:
    """Train, resume, export."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("target", "data", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--hidden", type=int, required=True)
    parser.add_argument("--layers", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument(
        "--text-tokens", type=int, default=1_000_000, help="plain text of the first stage; 0 leaves it out"
    )
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument(
        "--plain-start", action="store_true", help="leave out the copying start, to measure what it does"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_flush_denormal(True)
    train, valid = load(args.data)
    config = json.loads((args.target / "config.json").read_text("utf-8"))
    with safe_open(args.target / "model.safetensors", "pt") as tensors:
        target = tensors.get_tensor("model.embed_tokens.weight")
    texts = windows(args.target / "tokenizer.json", args.seed, args.text_tokens)
    counts = np.bincount(texts.ravel(), minlength=config["vocab_size"])
    seen = torch.unique(
        torch.cat([occurring(train, config["vocab_size"]), torch.from_numpy(np.flatnonzero(counts >= 4))])
    )
    shape = Shape(args.hidden, args.layers)
    start = project(target, seen, args.hidden)
    model = Student(shape, start[seen])
    if not args.plain_start:
        teach_copying(model, torch.Generator().manual_seed(args.seed))
    first_stage = args.out.with_name(args.out.name + ".texts.pt")
    if len(texts) and not first_stage.exists():
        read(model, texts, seen, args)
        args.out.parent.mkdir(parents=True, exist_ok=True)
        torch.save({"model": model.state_dict(), "seen": seen, "start": start}, first_stage)
    if first_stage.exists():
        start = resume(model, seen, torch.load(first_stage, weights_only=True))
    print(json.dumps({"before": judge(model, valid, seen)}), flush=True)
    work = Batches(train, seen, args.batch_tokens, HARD)
    answers, steps = sum(len(e.top_ids) for e in train), args.epochs * len(work)
    print(f"{len(train)} answers of {answers} tokens, {len(valid)} held out, {len(seen)} tokens of the vocabulary")
    optimiser = adam(model, args.lr)
    kept_at, first, history, step = args.out.with_name(args.out.name + ".checkpoint.pt"), 0, [], 0
    if kept_at.exists():
        kept = torch.load(kept_at, weights_only=True)
        model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
        first, history, step = kept["epoch"], kept["history"], kept["step"]
    began = time.monotonic()
    for epoch in range(first, args.epochs):
        rng, epoch_began, hit, count = np.random.default_rng([args.seed, epoch]), time.monotonic(), 0, 0
        torch.manual_seed(args.seed * 1000 + epoch)
        bar = tqdm(work.epoch(rng), total=len(work), desc=f"epoch {epoch + 1}/{args.epochs}", mininterval=5)
        for batch in bar:
            states = model(batch.ids).flatten(0, 1)[batch.positions]
            states = torch.nn.functional.dropout(states, args.dropout)
            loss, choice = HeadLoss.apply(states, model.embedding, batch.index, batch.weight)
            update(model, optimiser, rate(step, steps), loss)
            step += 1
            hit, count = hit + int((choice == batch.index[:, 0]).sum()), count + len(choice)
            bar.set_postfix(loss=f"{loss.item():.3f}", agree=f"{hit / count:.3f}", refresh=False)
        history.append({"epoch": epoch + 1, "train_agreement": round(hit / count, 4), **judge(model, valid, seen),
                        "seconds": round(time.monotonic() - epoch_began)})  # fmt: skip
        print(json.dumps(history[-1]), flush=True)
        if history[-1]["agreement"] == max(h["agreement"] for h in history):
            size = export(model, start, seen, config, args.out)
            facts = {"hidden": args.hidden, "layers": args.layers, "parameters": size, "seed": args.seed,
                     "answers": len(train), "answer_tokens": answers, "held_out_answers": len(valid),
                     "vocabulary_seen": len(seen), "learning_rate": args.lr, "batch_tokens": args.batch_tokens,
                     "copying_start": not args.plain_start, "text_tokens": int(texts.size), "best": history[-1], "epochs": history}  # fmt: skip
            (args.out / "training.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        state = {"model": model.state_dict(), "optimiser": optimiser.state_dict(), "epoch": epoch + 1,
                 "history": history, "step": step}  # fmt: skip
        torch.save(state, kept_at.with_suffix(".half"))
        kept_at.with_suffix(".half").replace(kept_at)
        if time.monotonic() - began > 60 * args.minutes:
            break


if __name__ == "__main__":
    main()
