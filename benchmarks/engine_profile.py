"""Decode tokens/s of both engines under each choice of the CPU profile: the shipped defaults were chosen by this.

    python benchmarks/engine_profile.py                       all choices
    python benchmarks/engine_profile.py --choice as-shipped    one of them; --list names all
    python benchmarks/engine_profile.py --append FILE          adds the table to a file

For each choice it starts a real pair, times the start, then sends the same prompts (one or two of each shipped
workload) to one engine at a time and, at last, to both at once. Decode tokens/s = (tokens - 1) / time from first to
last token, by the engine's own clock, so this program's load does not enter. Each prompt runs ``--repeat`` times in
alternating order and its best run counts: on a shared machine the best is the least disturbed. Ratios are only formed
inside one choice's run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import httpx

from specdemo.bench.workloads import shipped
from specdemo.core.events import SIDES, Side
from specdemo.engines import environment as engine_environment
from specdemo.engines.cores import same_cores, split_cores, usable_cores
from specdemo.engines.models import resolve_model
from specdemo.engines.profiles import Tuning, build, default_speculation
from specdemo.engines.speculation import parse_speculation
from specdemo.engines.supervisor import Supervisor, vllm_launcher


@dataclass(frozen=True)
class Choice:
    """One way to run the pair; everything not named is as shipped."""

    name: str
    what: str
    tuning: Tuning = field(default_factory=Tuning)
    k: int | None = None
    environment: tuple[tuple[str, str], ...] = ()
    parallel: bool = True


def choices() -> tuple[Choice, ...]:
    both = same_cores()
    return (
        Choice("as-shipped", "the profile `cpu` as it is"),
        Choice("own-cores", f"each engine on its own cores {split_cores()}", Tuning(cores=split_cores())),
        Choice("all-cores", f"each engine on all cores {both[0]}", Tuning(cores=both)),
        Choice("no-preload", "without the preloaded OpenMP library", environment=(("LD_PRELOAD", ""),)),
        Choice("bfloat16", "weights and arithmetic in bfloat16", Tuning(dtype="bfloat16")),
        Choice("compiled", "compiled by inductor, not eager", Tuning(enforce_eager=False)),
        Choice("k4", "n-gram k=4", k=4),
        Choice("k8", "n-gram k=8", k=8),
        Choice("k12", "n-gram k=12", k=12),
        Choice("one-by-one", "engines started one after the other", parallel=False),
    )


@dataclass(frozen=True)
class Run:
    """One answer: tokens, decode tokens/s, time to the first token (ms), ids."""

    tokens: int
    rate: float
    ids: tuple[int, ...]
    accepted: int = 0
    drafted: int = 0


async def ask(client: httpx.AsyncClient, url: str, prompt: str, limit: int) -> Run:
    body = {
        "model": "bench", "messages": [{"role": "user", "content": prompt}], "max_tokens": limit, "temperature": 0,
        "return_token_ids": True,
    }  # fmt: skip
    answer = await client.post(f"{url}/v1/chat/completions", json=body)
    answer.raise_for_status()
    data: dict[str, Any] = answer.json()
    ids = tuple(data["choices"][0]["token_ids"])
    spec = data["metrics"].get("speculative_decoding") or {}
    seconds = data["metrics"]["generation_time_ms"] / 1000
    rate = (len(ids) - 1) / seconds if len(ids) > 1 and seconds > 0 else float("nan")
    return Run(len(ids), rate, ids, spec.get("num_accepted_draft_tokens", 0), spec.get("num_draft_tokens", 0))


def prompts(args: argparse.Namespace, per_workload: int) -> list[tuple[str, str, int]]:
    """(workload, text, token budget), the first ones of each shipped workload that was asked for."""
    return [
        (workload.name, prompt.shown, min(workload.max_tokens, prompt.max_tokens or 96))
        for workload in shipped()
        if not args.workload or workload.name in args.workload
        for prompt in workload.prompts[:per_workload]
    ]


async def measure(choice: Choice, python: Path, version: str | None, model: str, args: argparse.Namespace) -> list[str]:
    pair = build(
        "cpu",
        model=model,
        served_name="bench",
        speculation=parse_speculation("ngram", k=choice.k) if choice.k else default_speculation("cpu", model),
        tuning=choice.tuning,
    )
    extra = choice.environment
    standard = replace(pair.standard, environment=extra)
    speculative = replace(pair.speculative, environment=extra)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        supervisor = Supervisor(
            standard, speculative, state_dir=Path(folder), launcher=vllm_launcher(python, version=version),
            parallel=choice.parallel, version=version,
        )  # fmt: skip
        async with supervisor, httpx.AsyncClient(timeout=600) as client:
            await supervisor.start_all()
            await supervisor.wait_ready(600)
            ready = time.monotonic() - started
            urls = {side: supervisor.base_url(side) or "" for side in SIDES}
            rows = await solo(client, urls, args)
            raced = await race(client, urls, args)
    k = speculative.speculation.k if speculative.speculation is not None else None
    where = f"cores {standard.cores} and {speculative.cores}, {standard.dtype}, k={k}"
    return [f"{choice.name}: {choice.what} ({where})", f"  start of both: {ready:.0f} s", *table(rows, raced), ""]


Rows = dict[str, dict[Side, list[Run]]]


async def solo(client: httpx.AsyncClient, urls: dict[Side, str], args: argparse.Namespace) -> Rows:
    rows: Rows = {}
    for number, (workload, text, limit) in enumerate(prompts(args, args.prompts)):
        best: dict[Side, Run] = {}
        for repetition in range(args.repeat):
            order = SIDES if (number + repetition) % 2 == 0 else tuple(reversed(SIDES))
            for side in order:
                run = await ask(client, urls[side], text, limit)
                best[side] = max(best.get(side, run), run, key=lambda found: found.rate)
        for side in SIDES:
            rows.setdefault(workload, {}).setdefault(side, []).append(best[side])
    return rows


async def race(client: httpx.AsyncClient, urls: dict[Side, str], args: argparse.Namespace) -> dict[Side, float]:
    """Median decode tokens/s while both engines work on the same prompt at the same time."""
    rates: dict[Side, list[float]] = {side: [] for side in SIDES}
    for _, text, limit in prompts(args, 1):
        runs = await asyncio.gather(*(ask(client, urls[side], text, limit) for side in SIDES))
        for side, run in zip(SIDES, runs, strict=True):
            rates[side].append(run.rate)
    return {side: median(found) for side, found in rates.items()}


def table(rows: Rows, raced: dict[Side, float]) -> list[str]:
    lines = ["  workload            standard  speculative   ratio  accepted  same ids"]
    ratios = []
    for workload, sides in rows.items():
        plain, fast = sides[Side.STANDARD], sides[Side.SPECULATIVE]
        ratio = geometric_mean(b.rate / a.rate for a, b in zip(plain, fast, strict=True))
        ratios.append(ratio)
        drafted = sum(run.drafted for run in fast)
        share = f"{sum(run.accepted for run in fast) / drafted:7.0%}" if drafted else "      -"
        same = sum(a.ids == b.ids for a, b in zip(plain, fast, strict=True))
        lines.append(
            f"  {workload:<18}{median(r.rate for r in plain):>10.1f}{median(r.rate for r in fast):>13.1f}"
            f"{ratio:>7.2f}x{share:>10}{same:>7}/{len(plain)}"
        )
    every = [run.rate for sides in rows.values() for run in sides[Side.STANDARD]]
    lines.append(
        f"  best {max(ratios):.2f}x, geometric mean {geometric_mean(ratios):.2f}x; standard median {median(every):.1f}"
    )
    lines.append(
        f"  both at once (median of {len(rows)} prompts): standard {raced[Side.STANDARD]:.1f}, "
        f"speculative {raced[Side.SPECULATIVE]:.1f} tokens/s"
    )
    return lines


def heading(version: str | None) -> list[str]:
    cores = len(usable_cores())
    return [
        (
            f"{datetime.now(UTC):%Y-%m-%d}, {cores} cores, {platform.machine()}, vLLM {version}, "
            f"load before {os.getloadavg()[0]:.1f}"
        ),
        "decode tokens/s by the engine's clock, one request at a time; best of the repetitions, median of the prompts",
        "",
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choice", action="append", help="a choice by name; may be given again")
    parser.add_argument("--list", action="store_true", help="print the choices' names")
    parser.add_argument("--workload", action="append", help="a shipped workload by name; may be given again")
    parser.add_argument("--prompts", type=int, default=1, help="prompts of each workload")
    parser.add_argument("--repeat", type=int, default=2, help="runs of each prompt on each engine; the best counts")
    parser.add_argument("--append", type=Path, help="also add the tables to this file")
    args = parser.parse_args(arguments)
    known = {choice.name: choice for choice in choices()}
    if args.list:
        for choice in known.values():
            print(f"{choice.name:<12} {choice.what}")
        return
    python = engine_environment.find_engine_python()
    if python is None:
        parser.error("there is no engine environment; run `make setup`")
    version = engine_environment.inspect(python).version
    model = resolve_model("embedded", engine_python=python).reference
    lines = heading(version)
    print("\n".join(lines))
    for name in args.choice or known:
        if name not in known:
            parser.error(f"unknown choice {name}; there are {', '.join(known)}")
        found = asyncio.run(measure(known[name], python, version, model, args))
        print("\n".join(found), flush=True)
        lines += found
    if args.append is not None:
        with args.append.open("a", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
