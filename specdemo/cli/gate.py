"""``specdemo gate``: yes or no for CI, on a fresh benchmark or on a kept one."""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from specdemo.bench.gate import GateResult, GateRule, decide, junit
from specdemo.bench.jsonable import jsonable
from specdemo.bench.plan import BenchPlan, check_plan
from specdemo.bench.record import BenchRecord
from specdemo.cli.bench_common import gather_prompts, new_file, run_session, seconds, write
from specdemo.cli.loop import STOPPED, run_until_stopped
from specdemo.cli.output import calm, print_json, stderr, stdout
from specdemo.cli.together import alone, check_target
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError
from specdemo.runs.bench_store import load
from specdemo.settings import Loaded


def gate(
    loaded: Loaded,
    min_speedup: Annotated[
        float | None, typer.Option("--min-speedup", help="The interval's lower bound must reach this.")
    ] = None,
    max_mismatch: Annotated[
        int | None, typer.Option("--max-mismatch", min=0, help="Prompts that may differ by more than a near tie.")
    ] = None,
    estimator: Annotated[
        Literal["geometric", "totals"], typer.Option("--estimator", help="Geometric mean, or ratio of total times.")
    ] = "geometric",
    workload: Annotated[list[str] | None, typer.Option("--workload", help="Shipped workload; again for more.")] = None,
    dataset: Annotated[Path | None, typer.Option("--dataset", help="Own prompts.")] = None,
    accept_refused: Annotated[bool, typer.Option("--accept-refused")] = False,
    prompts: Annotated[int | None, typer.Option("--prompts", min=2, help="Prompts of each workload.")] = None,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=2)] = 128,
    budget: Annotated[str | None, typer.Option("--budget", help="Longest time, such as 5m.")] = None,
    seed: Annotated[int, typer.Option("--seed")] = 1,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait while other programs use the cores.")] = True,
    result: Annotated[Path | None, typer.Option("--result", help="Decide on a kept benchmark file instead.")] = None,
    junit_file: Annotated[Path | None, typer.Option("--junit", help="Write JUnit XML here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")] = False,
) -> int:
    """Decide whether speculation is fast enough and changes nothing.

    Decided on the bound of the 95 % interval, never on the point: what this much data can't show does not pass.

    Exit codes: 0 pass · 1 fail · 2 wrong use · 3 an engine failed or there is no data · 130 stopped.
    """
    given = dict(locals())
    if min_speedup is None and max_mismatch is None:
        raise UsageError("Say what is demanded: --min-speedup 1.2, --max-mismatch 0, or both.")
    if min_speedup is not None and not 0 < min_speedup < math.inf:
        raise UsageError("The least speedup is a number above 0.")
    check_target(junit_file)
    rule = GateRule(min_speedup, max_mismatch, estimator=estimator)
    if result is not None:
        kept = ("min_speedup", "max_mismatch", "estimator", "junit_file", "wait", "as_json")
        alone(gate, given, "--result", but=kept)
        return _tell(load(result), rule, junit_file, 0.0, as_json=as_json)
    plan = BenchPlan(
        prompts=gather_prompts(
            workload or [], dataset, languages=[], limit=prompts, accept_refused=accept_refused, console=stderr()
        ),
        sampling=Sampling(max_tokens=max_tokens, ignore_eos=True),
        budget_s=seconds(budget),
        seed=seed,
    )
    check_plan(plan)
    return run_until_stopped(_gate(loaded, plan, rule, dataset, junit_file, wait=wait, as_json=as_json))


async def _gate(
    loaded: Loaded,
    plan: BenchPlan,
    rule: GateRule,
    dataset: Path | None,
    junit_file: Path | None,
    *,
    wait: bool,
    as_json: bool,
) -> int:
    began = time.monotonic()
    record, ending, path = await run_session(
        loaded, lambda deployment: new_file(loaded, plan, None, dataset, deployment.around.hardware), wait=wait
    )
    stderr().print(f"Samples: {path}", markup=False)
    if ending.state == "stopped":
        if as_json:
            stopped = GateResult("error", f"No decision: {ending.reason}", ())
            print_json({"schema": 1, "kind": "gate", **_plain(stopped), "exit_code": STOPPED})
        return STOPPED
    return _tell(record, rule, junit_file, time.monotonic() - began, as_json=as_json)


def _tell(record: BenchRecord, rule: GateRule, junit_file: Path | None, spent: float, *, as_json: bool) -> int:
    lost = record.endings[-1].reason if record.endings and record.endings[-1].state == "engine_lost" else None
    decision = decide(record.summary(), rule, engine_lost=lost)
    if junit_file is not None:
        write(junit_file, junit(decision, seconds=spent))
    if as_json:
        print_json({"schema": 1, "kind": "gate", "exit_code": decision.exit_code, **_plain(decision)})
    else:
        out = stdout()
        out.print(calm(f"{decision.word}: {decision.reason}"), markup=False)
        for note in decision.notes:
            out.print(calm(f"note: {note}"), markup=False)
    return decision.exit_code


def _plain(decision: GateResult) -> dict[str, object]:
    found = jsonable(decision)
    return found if isinstance(found, dict) else {}
