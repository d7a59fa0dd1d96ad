"""``specdemo validate``: is sampling at temperature > 0 still the model's own distribution?"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from specdemo.bench.jsonable import jsonable
from specdemo.bench.report.blocks import Document
from specdemo.bench.report.evidence import sampling as sampling_section
from specdemo.bench.report.words import speaker
from specdemo.bench.sampling.drafts import Lookup
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.settings import PLAIN, TRUNCATED, SamplingConfig, ValidationPlan, check_validation
from specdemo.bench.sampling.verdict import CERTIFYING_TOKENS, power_at
from specdemo.bench.workloads import sampling_prompts
from specdemo.cli.bench_common import clock, gather_prompts, seconds
from specdemo.cli.document import shown
from specdemo.cli.loop import STOPPED, run_until_stopped
from specdemo.cli.output import print_json, stderr, stdout
from specdemo.cli.progress import wait_until_ready
from specdemo.cli.together import check_target
from specdemo.compose import folders, open_deployment
from specdemo.core.events import Side
from specdemo.errors import EngineUnavailable, UsageError
from specdemo.runs.kept import new_name, validations_folder
from specdemo.runs.validate import ValidationAround, ValidationProgress
from specdemo.runs.validate import validate as run_validation
from specdemo.runs.validation_store import save_validation
from specdemo.settings import Loaded

DRAWS = 80
QUICK_PROMPTS, QUICK_DRAWS = 5, 32


def validate(
    loaded: Loaded,
    temperature: Annotated[
        float | None, typer.Option("--temperature", help="Test this setting instead of the two usual ones.")
    ] = None,
    top_p: Annotated[float, typer.Option("--top-p", help="With --temperature; 1 is off.")] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", help="With --temperature; 0 is off.")] = 0,
    draws: Annotated[
        int | None, typer.Option("--draws", min=2, help="Sequences a prompt, engine and setting; 80, or 32 if quick.")
    ] = None,
    tokens: Annotated[int, typer.Option("--tokens", min=2, help="Tokens of a sequence.")] = 16,
    quick: Annotated[
        bool, typer.Option("--quick", help="5 prompts x 32 draws: finds gross faults, never passes.")
    ] = False,
    dataset: Annotated[Path | None, typer.Option("--dataset", help="Own prompts; short and repetitive ones.")] = None,
    concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Requests in flight an engine.")] = 4,
    listed: Annotated[int, typer.Option("--listed", min=1, help="Candidates a position (max-logprobs).")] = 20,
    lookup_min: Annotated[int, typer.Option("--lookup-min", min=1, help="n-gram: prompt_lookup_min.")] = 2,
    lookup_max: Annotated[int, typer.Option("--lookup-max", min=1, help="n-gram: prompt_lookup_max.")] = 4,
    budget: Annotated[str | None, typer.Option("--budget", help="Longest time, such as 5m.")] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of all draws.")] = 1,
    save: Annotated[
        Path | None, typer.Option("--save", help="File that keeps the result; one in the data folder when not given.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Draw from both engines and let the standard one score every token: do both sample the same distribution?

    Runs last in a series: a broken speculative engine may die of it, which is then the finding.

    Exit codes: 0 consistent · 1 differs · 2 wrong use · 3 an engine failed, or not enough data · 130 stopped.
    """
    if temperature is None and (top_p != 1.0 or top_k != 0):
        raise UsageError("--top-p and --top-k belong to a setting of your own; give its --temperature too.")
    if lookup_min > lookup_max:
        raise UsageError("prompt_lookup_min is at most prompt_lookup_max.")
    check_target(save)
    configs = (PLAIN, TRUNCATED)
    if temperature is not None:
        configs = (SamplingConfig("own", temperature, top_k, top_p),)  # type: ignore[assignment]
    prompts = sampling_prompts()
    if dataset is not None:
        prompts = gather_prompts([], dataset, languages=[], limit=None, accept_refused=False, console=stderr())
    plan = ValidationPlan(
        prompts=prompts[:QUICK_PROMPTS] if quick else prompts,
        configs=configs,
        draws=draws or (QUICK_DRAWS if quick else DRAWS),
        tokens=tokens,
        seed=seed,
        concurrency=concurrency,
        budget_s=seconds(budget),
        listed=listed,
    )
    check_validation(plan)
    return run_until_stopped(_validate(loaded, plan, (lookup_min, lookup_max), save, as_json=as_json))


async def _validate(
    loaded: Loaded, plan: ValidationPlan, lengths: tuple[int, int], save: Path | None, *, as_json: bool
) -> int:
    console = stderr()
    stopped = asyncio.Event()
    _tell_power(plan, console)
    async with open_deployment(loaded.settings) as deployment:
        await wait_until_ready(deployment, console, loaded.settings.engine.ready_timeout_s)
        if deployment.engines is None:
            raise EngineUnavailable(deployment.reason)
        facts = await deployment.engines[Side.SPECULATIVE].facts()
        lookup = Lookup(facts.k or 4, *lengths) if facts.method == "ngram" else None
        around = ValidationAround(lookup=lookup, on_progress=_teller(console), stopped=stopped)
        work = asyncio.ensure_future(run_validation(plan, deployment.engines, around))
        try:
            result = await asyncio.shield(work)
        except asyncio.CancelledError:
            stopped.set()
            result = await work
    path = save or validations_folder(folders(loaded.settings).data) / f"{new_name(result.started_at)}.json"
    save_validation(path, result)
    console.print(f"Kept in {path}.", markup=False)
    if as_json:
        print_json({"kind": "validation", "exit_code": result.exit_code, **_plain(result)})
    else:
        stdout().print(shown(Document("", "en", (sampling_section(result, speaker("en")),))))
    return STOPPED if stopped.is_set() else result.exit_code


def _tell_power(plan: ValidationPlan, console: Console) -> None:
    """What so many draws can find, before anything is drawn."""
    tokens = plan.tokens_per_arm
    able = "enough to certify" if tokens >= CERTIFYING_TOKENS else f"too few to certify ({CERTIFYING_TOKENS:,} needed)"
    console.print(f"plan: {tokens:,} tokens an engine and setting, {able}", markup=False)
    power = power_at(tokens)
    if power:
        listed = ", ".join(f"{name} {share:.0%}" for name, share in power)
        console.print(f"simulated chance to find: {listed}", markup=False)


def _teller(console: Console) -> Any:
    def say(progress: ValidationProgress) -> None:
        if progress.rounds in (1, progress.planned) or progress.rounds % 5 == 0:
            left = progress.elapsed_s / progress.rounds * (progress.planned - progress.rounds)
            done = f"round {progress.rounds} of {progress.planned}, {progress.sequences} sequences"
            console.print(f"{done}, about {clock(left)} left", markup=False)

    return say


def _plain(result: ValidationResult) -> dict[str, object]:
    found = jsonable(result)
    return found if isinstance(found, dict) else {}
