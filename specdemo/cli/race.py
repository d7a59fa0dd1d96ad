"""``specdemo race``: one prompt on both engines, then the numbers and the verdict."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import typer

from specdemo.cli.loop import STOPPED, run_until_stopped
from specdemo.cli.output import print_json, stderr, stdout
from specdemo.cli.progress import wait_until_ready
from specdemo.cli.prompts import build_prompt, read_prompt
from specdemo.cli.table import result, texts
from specdemo.cli.together import check_target
from specdemo.cli.watch import watch
from specdemo.compose import Deployment, open_deployment
from specdemo.core.assess import assess
from specdemo.core.contract import contract
from specdemo.core.events import SIDES, Side
from specdemo.core.prompt import Sampling
from specdemo.core.run import Assessment, RunPlan
from specdemo.errors import EngineUnavailable
from specdemo.runs import stored
from specdemo.runs.log import RunLog
from specdemo.runs.race import run
from specdemo.runs.request import check_request
from specdemo.settings import Loaded

_SAMPLING = "Sampling"
_CHECKING = "Checking"


def race(
    loaded: Loaded,
    prompt: Annotated[str | None, typer.Argument(help="The prompt, or - to read it from stdin.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Read the prompt from a file.")] = None,
    mode: Annotated[
        Literal["race", "measure"],
        typer.Option("--mode", help="race: both at once. measure: one at a time after a warm-up; for numbers."),
    ] = "measure",
    system: Annotated[str, typer.Option("--system", help="System message of the chat.")] = "",
    plain: Annotated[
        bool, typer.Option("--plain", help="Plain completion on both sides, without chat template.")
    ] = False,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", help="Most output tokens.", rich_help_panel=_SAMPLING)
    ] = 256,
    temperature: Annotated[
        float,
        typer.Option(
            "--temperature", help="0 is greedy, the only case with an identity verdict.", rich_help_panel=_SAMPLING
        ),
    ] = 0.0,
    top_p: Annotated[float, typer.Option("--top-p", help="1 is off.", rich_help_panel=_SAMPLING)] = 1.0,
    top_k: Annotated[int, typer.Option("--top-k", help="0 is off.", rich_help_panel=_SAMPLING)] = 0,
    min_p: Annotated[float, typer.Option("--min-p", help="0 is off.", rich_help_panel=_SAMPLING)] = 0.0,
    presence_penalty: Annotated[float, typer.Option("--presence-penalty", rich_help_panel=_SAMPLING)] = 0.0,
    frequency_penalty: Annotated[float, typer.Option("--frequency-penalty", rich_help_panel=_SAMPLING)] = 0.0,
    repetition_penalty: Annotated[float, typer.Option("--repetition-penalty", rich_help_panel=_SAMPLING)] = 1.0,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Same draws on one engine.", rich_help_panel=_SAMPLING)
    ] = None,
    stop: Annotated[
        list[str] | None, typer.Option("--stop", help="Stop string; up to 4.", rich_help_panel=_SAMPLING)
    ] = None,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos", help="Go on to the most output tokens.", rich_help_panel=_SAMPLING)
    ] = False,
    logprobs: Annotated[
        int | None,
        typer.Option("--logprobs", help="Log-probabilities of so many candidates.", rich_help_panel=_SAMPLING),
    ] = None,
    control: Annotated[
        bool, typer.Option("--control", help="The standard engine against itself.", rich_help_panel=_CHECKING)
    ] = False,
    recheck: Annotated[
        bool,
        typer.Option(
            "--recheck",
            help="Is every speculative token the standard engine's first choice?",
            rich_help_panel=_CHECKING,
        ),
    ] = False,
    first: Annotated[
        Literal["standard", "speculative"] | None,
        typer.Option("--first", help="Which side is measured first; by lot when not given.", rich_help_panel=_CHECKING),
    ] = None,
    warmup: Annotated[
        bool, typer.Option("--warmup/--no-warmup", help="Warm both engines up first.", rich_help_panel=_CHECKING)
    ] = True,
    save: Annotated[
        Path | None, typer.Option("--save", help="Keep the run in this file; the page can play it.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep/--no-keep", help="Keep the run for the page's Runs tab, if runs are kept at all.")
    ] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Send one prompt to both engines and compare what comes back.

    Engines: two addresses (--standard-url, --speculative-url), else those of a running `specdemo serve`, else two of
    our own, started for this run. Ctrl-C keeps and prints what has arrived.

    Exit codes: 0 identical, or no claim applies · 1 a real difference · 2 wrong use · 3 an engine failed · 130 stopped.
    """
    sampling = Sampling(
        max_tokens=max_tokens, temperature=temperature, top_p=top_p, top_k=top_k, min_p=min_p,
        presence_penalty=presence_penalty, frequency_penalty=frequency_penalty, repetition_penalty=repetition_penalty,
        seed=seed, stop=tuple(stop or ()), ignore_eos=ignore_eos,
    )  # fmt: skip
    request = build_prompt(read_prompt(prompt, file), system=system, plain=plain, sampling=sampling, logprobs=logprobs)
    check_request(request)
    check_target(save)
    plan = RunPlan(request, mode=mode, order=_order(first, seed), warmup=warmup, control=control, recheck=recheck)
    return run_until_stopped(_race(loaded, plan, save, keep=keep, as_json=as_json))


def _order(first: str | None, seed: int | None) -> tuple[Side, Side]:
    if first is not None:
        return SIDES if first == SIDES[0] else (SIDES[1], SIDES[0])
    return SIDES if random.Random(seed).random() < 0.5 else (SIDES[1], SIDES[0])  # noqa: S311 - a lot, not a secret


async def _race(loaded: Loaded, plan: RunPlan, save: Path | None, *, keep: bool, as_json: bool) -> int:
    log = RunLog()
    stopped = False
    async with open_deployment(loaded.settings) as deployment:
        await wait_until_ready(deployment, stderr(), loaded.settings.engine.ready_timeout_s)
        try:
            await _stream(deployment, plan, log, quiet=as_json)
        except asyncio.CancelledError:
            if log.header is None:
                raise
            stopped = True
    record = log.record()
    assessment = assess(record)
    if save is not None:
        stored.save(save, record)
        stderr().print(f"Kept in {save}.", markup=False)
    if keep and loaded.settings.store.keep:
        # The database's library takes a while to import, and most commands do without it.
        from specdemo.compose.keeping import keep_run  # noqa: PLC0415

        trouble = await asyncio.to_thread(keep_run, loaded.settings, record)
        if trouble is not None:
            stderr().print(trouble, markup=False)
    if as_json:
        print_json(contract(record, assessment))
    else:
        out = stdout()
        out.print(texts(assessment))
        out.print(result(record, assessment))
    return STOPPED if stopped else exit_code(assessment)


async def _stream(deployment: Deployment, plan: RunPlan, log: RunLog, *, quiet: bool) -> None:
    if deployment.engines is None:
        raise EngineUnavailable(deployment.reason)
    work = asyncio.ensure_future(run(plan, deployment.engines, log=log, around=deployment.around))
    viewer = asyncio.ensure_future(asyncio.sleep(0) if quiet else watch(log, stderr()))
    try:
        await work
        await viewer
    finally:
        # A Ctrl-C cancels the waiting above; the run itself still has to close both streams and its log.
        work.cancel()
        with suppress(BaseException):
            await asyncio.wait([work, viewer])
        viewer.cancel()


def exit_code(assessment: Assessment) -> int:
    """0 identical or no claim, 1 a real difference, 3 an engine failed."""
    if "failed" in (assessment.standard.state, assessment.speculative.state):
        return 3
    return 1 if assessment.verdict.cls == "different" else 0
