"""Draft models in real engines: acceptance by position, step costs and speedup, by workload and draft length.

    python tools/distill/measure.py --draft h192x2=FOLDER --k 1,2,3,4,5 [--ngram 8] [--prompts 1] [--json FILE]

Runs in the application's environment with engines that specdemo starts itself, as the CPU profile does, one request at
a time. The standard engine answers each shipped prompt first; then the speculative engine is restarted for each draft
and k and answers the same prompts. Rates are the engine's own: (tokens - 1) / time from first to last token.
The cost of drafting follows from them: what a step takes beyond the standard step, in standard steps.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import geometric_mean
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import httpx

from specdemo.bench.workloads import shipped
from specdemo.core.engine import Speculation
from specdemo.core.events import SIDES, Side
from specdemo.engines import environment
from specdemo.engines.models import resolve_model
from specdemo.engines.profiles import build
from specdemo.engines.speculation import parse_speculation
from specdemo.engines.supervisor import Supervisor, vllm_launcher


@dataclass(frozen=True)
class Answer:
    """``seconds`` from first to last token; ``accepted``/``drafted`` are those of each step that had drafts."""

    ids: tuple[int, ...]
    seconds: float
    accepted: tuple[int, ...]
    drafted: tuple[int, ...]

    @property
    def rate(self) -> float:
        return (len(self.ids) - 1) / self.seconds


Rows = dict[str, list[Answer]]
"""Workload → answers in the order of its prompts."""


async def ask(client: httpx.AsyncClient, url: str, prompt: str, limit: int) -> Answer:
    body = {
        "model": "draft-test", "messages": [{"role": "user", "content": prompt}], "max_tokens": limit,
        "temperature": 0, "return_token_ids": True,
    }  # fmt: skip
    reply = await client.post(f"{url}/v1/chat/completions", json=body)
    reply.raise_for_status()
    found: dict[str, Any] = reply.json()
    told = found["metrics"].get("speculative_decoding") or {}
    return Answer(
        tuple(found["choices"][0]["token_ids"]),
        found["metrics"]["generation_time_ms"] / 1000,
        tuple(told.get("per_step_accepted") or ()),
        tuple(told.get("per_step_drafted") or ()),
    )


async def answers(client: httpx.AsyncClient, url: str, args: argparse.Namespace) -> Rows:
    """The first prompts of every shipped workload; each is asked ``--repeat`` times, and its quickest answer counts."""
    rows: Rows = {}
    for workload in shipped():
        for prompt in workload.prompts[args.skip : args.skip + args.prompts]:
            limit = min(workload.max_tokens, prompt.max_tokens or 96, args.max_tokens)
            runs = [await ask(client, url, prompt.shown, limit) for _ in range(args.repeat)]
            if len(runs[0].ids) > 4:
                rows.setdefault(workload.name, []).append(min(runs, key=lambda run: run.seconds))
    return rows


def judged(standard: Rows, fast: Rows, k: int | None) -> dict[str, Any]:
    """One configuration's figures: whole and by workload."""
    table: dict[str, Any] = {}
    for name, plain in standard.items():
        table[name] = {
            "speedup": round(geometric_mean(b.rate / a.rate for a, b in zip(plain, fast[name], strict=True)), 3),
            "accepted_share": _share(fast[name]),
            "same_ids": sum(a.ids == b.ids for a, b in zip(plain, fast[name], strict=True)),
            "answers": len(plain),
        }
    every = [answer for rows in fast.values() for answer in rows]
    plain = [answer for rows in standard.values() for answer in rows]
    steps = sum(len(answer.drafted) for answer in every)
    base = sum(a.seconds for a in plain) / sum(len(a.ids) - 1 for a in plain)
    offered = [sum(d > i for a in every for d in a.drafted) for i in range(k or 0)]
    right = [sum(n > i for a in every for n in a.accepted) for i in range(k or 0)]
    undrafted = sum(len(a.ids) - 1 - len(a.accepted) - sum(a.accepted) for a in every)
    step = (sum(a.seconds for a in every) - max(undrafted, 0) * base) / max(steps, 1)
    return {
        "speedup": round(geometric_mean(row["speedup"] for row in table.values()), 3),
        "standard_step_ms": round(base * 1000, 2),
        "drafting_step_ms": round(step * 1000, 2),
        "cost_per_draft": round((step / base - 1) / k, 3) if k else None,
        "acceptance_by_position": [round(r / o, 4) if o else None for r, o in zip(right, offered, strict=True)],
        "tokens_per_step": round(1 + sum(right) / max(steps, 1), 3),
        "workloads": table,
    }


def _share(rows: list[Answer]) -> float | None:
    drafted = sum(sum(row.drafted) for row in rows)
    return round(sum(sum(row.accepted) for row in rows) / drafted, 4) if drafted else None


async def run(wanted: list[tuple[str, Speculation]], args: argparse.Namespace) -> None:
    """Every configuration in turn, on one pair of engines."""
    python = environment.find_engine_python()
    if python is None:
        raise SystemExit("There is no engine environment; run `make setup`.")
    version = environment.inspect(python).version
    model = resolve_model("embedded", engine_python=python).reference
    pair = build("cpu", model=model, served_name="draft-test", speculation=wanted[0][1])
    found: list[dict[str, Any]] = []
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        supervisor = Supervisor(
            pair.standard, pair.speculative, state_dir=Path(folder), launcher=vllm_launcher(python, version=version),
            version=version,
        )  # fmt: skip
        async with supervisor, httpx.AsyncClient(timeout=600) as client:
            await supervisor.start_all()
            await supervisor.wait_ready(600)
            standard = await answers(client, supervisor.base_url(SIDES[0]) or "", args)
            for number, (name, speculation) in enumerate(wanted):
                if number:
                    await supervisor.reconfigure(replace(pair.speculative, speculation=speculation))
                    await supervisor.wait_ready(600)
                fast = await answers(client, supervisor.base_url(Side.SPECULATIVE) or "", args)
                row = {"draft": name, "k": speculation.k, **judged(standard, fast, speculation.k)}
                found.append(row)
                print(line(row), flush=True)
                if args.json is not None:
                    args.json.write_text(
                        json.dumps({"load_before": load, "runs": found}, indent=1) + "\n", encoding="utf-8"
                    )


def line(row: dict[str, Any]) -> str:
    """One configuration as one line of text."""
    positions = " ".join(f"{p:.2f}" if p is not None else "-" for p in row["acceptance_by_position"])
    work = ", ".join(
        f"{name} {w['speedup']:.2f}x ({w['same_ids']}/{w['answers']} same)" for name, w in row["workloads"].items()
    )
    return (
        f"{row['draft']} k={row['k']}: {row['speedup']:.2f}x, {row['tokens_per_step']:.2f} tokens a step, "
        f"step {row['drafting_step_ms']:.1f} of {row['standard_step_ms']:.1f} ms, c={row['cost_per_draft']}, "
        f"accepted {positions} | {work}"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draft", action="append", default=[], help="NAME=FOLDER; may be given again")
    parser.add_argument("--k", default="1,2,3,4,5", help="draft lengths of each draft model")
    parser.add_argument("--ngram", type=int, help="also n-gram with this k, for comparison")
    parser.add_argument("--prompts", type=int, default=1, help="prompts of each workload")
    parser.add_argument("--skip", type=int, default=0, help="leave out this many prompts of each workload")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=128)
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args(arguments)
    wanted: list[tuple[str, Speculation]] = []
    for text in args.draft:
        name, _, folder = text.partition("=")
        for k in args.k.split(","):
            config = {"method": "draft_model", "model": str(Path(folder).resolve()), "num_speculative_tokens": int(k)}
            speculation = parse_speculation(config)
            if speculation is not None:
                wanted.append((name, speculation))
    if args.ngram and (ngram := parse_speculation("ngram", k=args.ngram)) is not None:
        wanted.append(("n-gram", ngram))
    if not wanted:
        parser.error("nothing to measure: give --draft or --ngram")
    asyncio.run(run(wanted, args))


if __name__ == "__main__":
    main()
