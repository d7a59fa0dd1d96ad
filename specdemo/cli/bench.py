"""``specdemo bench``: a paired benchmark over workloads and load levels, kept as it goes, reported at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from specdemo.bench.plan import BenchPlan, check_plan
from specdemo.bench.report import html
from specdemo.bench.report.content import document
from specdemo.bench.report.contract import contract
from specdemo.bench.report.words import speaker
from specdemo.bench.workloads import shipped
from specdemo.cli.bench_common import gather_prompts, new_file, run_session, seconds, whole_numbers, write
from specdemo.cli.document import shown
from specdemo.cli.loop import STOPPED, run_until_stopped
from specdemo.cli.output import print_json, stderr, stdout
from specdemo.cli.sweep import check_folder, points, run_sweep
from specdemo.cli.together import alone, check_new, check_target
from specdemo.compose import Deployment
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError
from specdemo.runs.bench_store import BenchFile, load
from specdemo.settings import Loaded

_WHAT = "What is asked"
_DESIGN = "Design"
_RESULT = "Result"
_SWEEP = "Sweep (engines that specdemo starts)"
SHOWN = ("verdict", "numbers", "by_workload", "load", "acceptance", "failures")


def bench(
    loaded: Loaded,
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", help="Shipped workload; again for more. All when not given.", rich_help_panel=_WHAT),
    ] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--dataset", help="Own prompts: JSONL, JSON, CSV or text file.", rich_help_panel=_WHAT),
    ] = None,
    accept_refused: Annotated[
        bool,
        typer.Option("--accept-refused", help="Run although lines of the file can't be used.", rich_help_panel=_WHAT),
    ] = False,
    language: Annotated[
        list[str] | None,
        typer.Option("--language", help="en or zh prompts only; both when not given.", rich_help_panel=_WHAT),
    ] = None,
    prompts: Annotated[
        int | None,
        typer.Option("--prompts", min=1, help="Prompts of each workload, or of the file.", rich_help_panel=_WHAT),
    ] = None,
    max_tokens: Annotated[
        int, typer.Option("--max-tokens", min=2, help="Output tokens of a request.", rich_help_panel=_WHAT)
    ] = 128,
    levels: Annotated[
        str, typer.Option("--levels", help="Requests in flight, such as 1,2,4,8.", rich_help_panel=_DESIGN)
    ] = "1",
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Quads (4 runs) a prompt and level.", rich_help_panel=_DESIGN)
    ] = 1,
    rate: Annotated[
        float | None,
        typer.Option("--rate", help="Open mode: requests started a second.", rich_help_panel=_DESIGN),
    ] = None,
    equal_length: Annotated[
        bool,
        typer.Option(
            "--equal-length/--own-length",
            help="Ignore end-of-text, so that lengths are equal.",
            rich_help_panel=_DESIGN,
        ),
    ] = True,
    null: Annotated[
        bool,
        typer.Option(
            "--null", help="The standard engine against itself: must be no difference.", rich_help_panel=_DESIGN
        ),
    ] = False,
    control: Annotated[
        int, typer.Option("--control", min=0, help="Prompts of the A/A control.", rich_help_panel=_DESIGN)
    ] = 5,
    load_prompts: Annotated[
        int, typer.Option("--load-prompts", min=1, help="Prompts of each workload under load.", rich_help_panel=_DESIGN)
    ] = 4,
    warmup: Annotated[
        int, typer.Option("--warmup", min=0, help="Discarded requests an engine and level.", rich_help_panel=_DESIGN)
    ] = 2,
    budget: Annotated[
        str | None, typer.Option("--budget", help="Longest time, such as 10m.", rich_help_panel=_DESIGN)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of every random order.", rich_help_panel=_DESIGN)] = 1,
    wait: Annotated[
        bool,
        typer.Option("--wait/--no-wait", help="Wait while other programs use the cores.", rich_help_panel=_DESIGN),
    ] = True,
    out: Annotated[
        Path | None, typer.Option("--out", help="File that keeps the samples.", rich_help_panel=_RESULT)
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", help="Go on with an unfinished file.", rich_help_panel=_RESULT)
    ] = None,
    report: Annotated[
        Path | None, typer.Option("--report", help="Write the HTML report here.", rich_help_panel=_RESULT)
    ] = None,
    sweep_k: Annotated[
        str | None,
        typer.Option("--sweep-k", help="Draft lengths, such as 1-8 or 1,2,4; engines restart.", rich_help_panel=_SWEEP),
    ] = None,
    sweep_method: Annotated[
        list[str] | None,
        typer.Option("--sweep-method", help="Speculation preset; again for more.", rich_help_panel=_SWEEP),
    ] = None,
    report_language: Annotated[Literal["en", "zh"], typer.Option("--report-language", rich_help_panel=_RESULT)] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Compare both engines over many prompts, in alternating order, with intervals.

    Every finished request is kept at once; an unfinished benchmark goes on with --resume FILE.

    Exit codes: 0 done · 1 a null test that found a difference · 2 wrong use · 3 an engine failed · 130 stopped.
    """
    given = dict(locals())
    check_target(report)
    if resume is not None:
        alone(bench, given, "--resume", but=("report", "report_language", "wait", "as_json"))
        if load(resume).finished:
            raise UsageError("This benchmark is complete; there is nothing left to measure.")
        return run_until_stopped(
            _bench(loaded, lambda _: BenchFile.reopen(resume), (report, report_language), wait=wait, as_json=as_json)
        )
    plan = BenchPlan(
        prompts=gather_prompts(
            workload or [], dataset, languages=language or [], limit=prompts, accept_refused=accept_refused,
            console=stderr(),
        ),
        levels=whole_numbers(levels),
        repeats=repeats,
        sampling=Sampling(max_tokens=max_tokens, ignore_eos=equal_length),
        warmup=warmup,
        null=null,
        control_prompts=control,
        load_prompts=load_prompts,
        rate=rate,
        budget_s=seconds(budget),
        seed=seed,
    )  # fmt: skip
    check_plan(plan)
    if sweep_k is not None or sweep_method:
        if null:
            raise UsageError("A null test never asks the speculative engine, so it can't be swept; choose one.")
        steps = points(loaded, None if sweep_k is None else whole_numbers(sweep_k), sweep_method or [])
        check_folder(out, steps)
        return run_until_stopped(
            run_sweep(loaded, plan, steps, out, (report, report_language), wait=wait, as_json=as_json)
        )

    check_new(out)

    def make(deployment: Deployment) -> BenchFile:
        return new_file(loaded, plan, out, dataset, deployment.around.hardware)

    return run_until_stopped(_bench(loaded, make, (report, report_language), wait=wait, as_json=as_json))


async def _bench(loaded: Loaded, make: Any, written: tuple[Path | None, str], *, wait: bool, as_json: bool) -> int:
    report, language = written
    record, ending, path = await run_session(loaded, make, wait=wait)
    summary = record.summary()
    say = speaker(language)
    made = document(record, summary, language=language, workloads=shipped())
    if report is not None:
        write(report, html.render(made))
        stderr().print(f"Report: {report}", markup=False)
    stderr().print(f"Samples: {path}", markup=False)
    if as_json:
        print_json(contract(record, str(path)))
    else:
        stdout().print(shown(made, titles=tuple(say(key) for key in SHOWN)))
    if ending.state == "engine_lost":
        return 3
    if ending.state == "stopped":
        return STOPPED
    return 1 if summary.null_passed is False else 0
