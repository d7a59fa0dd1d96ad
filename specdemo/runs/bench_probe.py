"""After a benchmark: ask the standard engine about each prompt's first difference, so that near ties are told apart."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from specdemo.bench.identity import Split, split_of, weigh
from specdemo.bench.plan import BenchPlan
from specdemo.bench.sample import Sample, latest
from specdemo.core.prompt import Prompt
from specdemo.errors import EngineError
from specdemo.runs.ports import Engine

MOST = 100
"""Splits looked at; the others stay unexplained."""


async def probe_splits(
    plan: BenchPlan, samples: Iterable[Sample], standard: Engine, known: Iterable[str]
) -> list[Split]:
    """One entry for each prompt at level 1 whose outputs part and that is not ``known`` yet; none at an open rate."""
    if plan.rate is not None:
        return []  # its requests shared their engine, so nothing is judged by them
    firsts: dict[tuple[str, str], Sample] = {}
    for sample in latest(samples):
        if sample.place.level == 1 and sample.place.kind == "measure" and sample.ok and sample.token_ids:
            firsts.setdefault((sample.place.prompt_id, sample.place.arm), sample)
    seen = set(known)
    found: list[Split] = []
    for prompt in plan.prompts:
        a, b = firsts.get((prompt.id, "A")), firsts.get((prompt.id, "B"))
        if a is None or b is None or prompt.id in seen:
            continue
        split = split_of(prompt.id, a.token_ids or (), b.token_ids or ())
        if split is not None and len(found) < MOST:
            found.append(await _look(split, a, prompt.ask(plan.sampling), standard))
    return found


async def _look(split: Split, a: Sample, prompt: Prompt, standard: Engine) -> Split:
    wanted = [token for token in (split.standard_id, split.speculative_id) if token is not None]
    try:
        ids = a.prompt_ids or await standard.tokenize(prompt)
        if ids is None:
            return replace(split, error="the engine tells no prompt token ids")
        best = await standard.candidates([*ids, *(a.token_ids or ())[: split.position]], wanted=wanted)
    except EngineError as error:
        return replace(split, error=str(error))
    return weigh(split, best)
