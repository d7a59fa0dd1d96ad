"""What a person sees of a run: live columns or lines, then texts, numbers and verdict."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace

import pytest
from rich.console import Console

from specdemo.cli.output import calm, error_document
from specdemo.cli.race import exit_code
from specdemo.cli.table import ROWS, numbers, result, texts
from specdemo.cli.watch import watch
from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Tokens, TopToken
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan, RunRecord
from specdemo.errors import PromptError
from specdemo.runs.log import RunLog
from specdemo.runs.race import Surroundings, run
from tests.fakes.engines import FakeEngine, pair

STD, SPEC = SIDES
PLAN = RunPlan(chat("hello"), warmup=False)


async def done(engines: dict[object, FakeEngine] | None = None, plan: RunPlan = PLAN) -> RunRecord:
    both = engines or pair()
    return await run(plan, both, log=RunLog(), around=Surroundings(clock=both[STD].clock))  # type: ignore[arg-type]


def shown(*things: object, terminal: bool = False) -> str:
    console = Console(file=io.StringIO(), force_terminal=terminal, width=2000)
    console.print(*things)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


async def test_lines_without_a_terminal() -> None:
    """Each side's request, first token and end are one line, in the order in which they came."""
    console = Console(file=io.StringIO(), width=500)
    await watch(RunLog.recorded(await done(plan=replace(PLAN, mode="measure"))), console)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]

    assert [line.split(":")[0].split()[2:] for line in lines] == [
        [side, *words.split()]
        for side in ("standard", "speculative")
        for words in ("request sent", "first token", "finished (stop)")
    ]
    assert "25 % accepted" in lines[-1]


async def test_columns_in_a_terminal() -> None:
    """In a terminal both texts stand side by side while they come, whatever they contain, and the cursor comes back."""
    engines = pair()
    log = RunLog()
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=20)
    viewer = asyncio.create_task(watch(log, console))
    engines[STD].bursts = [(token,) for token in range(3)]
    await run(PLAN, engines, log=log)
    await viewer
    drawn = console.file.getvalue()  # type: ignore[attr-defined]

    assert "standard: finished (stop)" in drawn
    assert "speculative: finished (stop)" in drawn
    assert "<10><11><12>" in drawn
    assert drawn.rstrip().endswith(("\x1b[?25h", "\x1b[2K"))


async def test_a_run_that_never_began() -> None:
    """Watching a run that was refused returns at once and draws nothing."""
    log = RunLog()
    log.close()
    console = Console(file=io.StringIO(), force_terminal=True)
    await watch(log, console)

    assert console.file.getvalue() == ""  # type: ignore[attr-defined]


async def test_long_texts_show_their_end() -> None:
    """When a text is longer than its pane, the end of it is what stays in view."""
    record = await done()
    flood = tuple(
        replace(event, text="line\n" * 200 + "THE END") if isinstance(event, Tokens) else event
        for event in record.events
    )
    console = Console(file=io.StringIO(), force_terminal=True, width=80, height=20)
    await watch(RunLog.recorded(replace(record, events=flood)), console)

    assert "THE END" in console.file.getvalue()  # type: ignore[attr-defined]


async def test_every_number_has_its_formula() -> None:
    """Each row of the table names its formula, and what does not apply is a dash, never 0."""
    found = shown(numbers(assess(await done())))
    for name, formula, _ in ROWS:
        assert name
        assert formula
        if name in found:
            assert formula in found

    assert "25.0 %" in found
    acceptance = next(line for line in found.splitlines() if line.startswith("acceptance rate"))
    assert "–" in acceptance


async def test_result_says_how_it_was_obtained() -> None:
    """The badge, the speedup's basis and the verdict's reason stand in the result."""
    record = await done()
    found = shown(result(record, assess(record)))

    for words in ("for show", "exact for this request", "standard / speculative", "identical", "All 3 tokens"):
        assert words in found


async def test_failures_and_notes_are_shown() -> None:
    """A failed side's sentence and every note stand below the numbers; the partial text stays."""
    engines = pair()
    engines[SPEC].failure = ("rejected", "no chat template\x1b[31m here")
    record = await done(engines)  # type: ignore[arg-type]
    found = assess(record)
    printed = shown(result(record, found)) + shown(texts(found))

    assert "speculative: no chat template" in printed
    assert "--plain" in printed
    assert "\x1b" not in printed
    assert "speculative (failed)" in printed


@pytest.mark.parametrize(
    "change,code",
    [("same", 0), ("different", 1), ("near", 0), ("failed", 3), ("warm", 0)],
)
async def test_exit_codes(change: str, code: int) -> None:
    """0 identical, near tie or no claim; 1 a real difference; 3 a failed engine."""
    engines = pair(best=(TopToken(12, "a", -0.1), TopToken(99, "b", -0.1 if change == "near" else -4.0)))
    if change in ("different", "near"):
        engines[SPEC].bursts = ((10,), (11, 99))
    if change == "failed":
        engines[STD].failure = ("stalled", "silent")
    plan = PLAN
    if change == "warm":
        prompt = replace(PLAN.prompt, sampling=replace(PLAN.prompt.sampling, temperature=1.0))
        plan = replace(PLAN, prompt=prompt)

    assert exit_code(assess(await done(engines, plan))) == code  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text,expected",
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\r\nb", "a\nb"),
        ("\x1b[2J", "�[2J"),
        ("\x9b31m", "�31m"),
        ("a\u202eb", "a�b"),
        ("x\ud800y", "x?y"),
    ],
)
def test_calm(text: str, expected: str) -> None:
    """What steers a terminal, or cannot be encoded, is replaced; everything else stays."""
    assert calm(text) == expected


def test_error_document() -> None:
    """An error as JSON has its stable kind and its sentence."""
    assert error_document(PromptError("Empty.")) == {"schema": 1, "error": {"kind": "prompt", "message": "Empty."}}
