"""A run's numbers and verdict as text: every number beside the name of its formula (definitions: docs/metrics.md)."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from specdemo.cli.output import calm
from specdemo.core.glossary import GLOSSARY
from specdemo.core.results import Acceptance, SideMetrics, Speedup, Theory, Verdict
from specdemo.core.run import Assessment, RunRecord, SideResult

Row = tuple[str, str, Callable[[SideMetrics], str]]

_BADGES = {
    "race_shared": "Race on a shared device, for show: both engines slowed each other, so no ratio here is measured.",
    "race_separate": "Race on separate devices.",
    "measured": "Measured: one engine at a time, after a warm-up, prefix cache defeated.",
    "recorded": "Recorded earlier.",
}
_VERDICT_STYLE = {
    "identical": "bold green",
    "identical_to_limit": "bold green",
    "near_tie": "bold yellow",
    "different": "bold red",
}


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


def _seconds(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value * 1000:.1f} ms" if value < 1 else f"{value:.2f} s"


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def _positions(taken: Acceptance) -> str:
    return " ".join(f"{100 * share:.0f}" for share in taken.per_position) + " %" if taken.per_position else "–"


_SHOWN: tuple[tuple[str, Callable[[SideMetrics], str]], ...] = (
    ("prompt_tokens", lambda m: _count(m.prompt_tokens)),
    ("output_tokens", lambda m: _count(m.output_tokens) + _source(m)),
    ("ttft_s", lambda m: _seconds(m.ttft_s)),
    ("tpot_s", lambda m: _seconds(m.tpot_s)),
    ("e2el_s", lambda m: _seconds(m.e2el_s)),
    ("decode_tokens_per_s", lambda m: _rate(m.decode_tokens_per_s)),
    ("tokens_per_s", lambda m: _rate(m.tokens_per_s)),
    ("longest_stall_s", lambda m: _seconds(m.longest_stall_s)),
    ("steps", lambda m: _count(m.steps)),
    ("tokens_per_step", lambda m: _rate(m.tokens_per_step)),
    ("acceptance.rate", lambda m: _share(m.acceptance.rate)),
    ("acceptance.mean_length", lambda m: _rate(m.acceptance.mean_length)),
    ("acceptance.drafted", lambda m: _count(m.acceptance.drafted)),
    ("acceptance.accepted", lambda m: _count(m.acceptance.accepted)),
    ("drafting_steps", lambda m: _count(m.acceptance.drafting_steps)),
    ("acceptance.per_position", lambda m: _positions(m.acceptance)),
)

ROWS: tuple[Row, ...] = tuple((GLOSSARY[key].short, GLOSSARY[key].words, shown) for key, shown in _SHOWN)
"""Name, formula in words, and the number as text."""


def _source(metrics: SideMetrics) -> str:
    return "" if metrics.count_source in ("ids", "none") else f" ({metrics.count_source})"


def numbers(assessment: Assessment) -> Table:
    """Both sides' numbers, one a row."""
    table = Table(box=None, pad_edge=False)
    for title, justify in (("", "left"), ("formula", "left"), ("standard", "right"), ("speculative", "right")):
        table.add_column(title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    pair = (assessment.standard.metrics, assessment.speculative.metrics)
    for name, formula, shown in ROWS:
        left, right = (shown(metrics) for metrics in pair)
        if (left, right) != ("–", "–"):
            table.add_row(name, Text(formula, "dim"), left, right)
    return table


def result(record: RunRecord, assessment: Assessment) -> RenderableType:
    """The table, the speedup, the theory, the verdict, and all that must stand beside them."""
    lines: list[RenderableType] = [numbers(assessment), Text("")]
    lines += [Text.assemble((f"{label:<12} ", "bold"), text) for label, text in _lines(record, assessment)]
    return Group(*lines)


def _lines(record: RunRecord, assessment: Assessment) -> Iterator[tuple[str, Text]]:
    yield "how", Text(_BADGES.get(assessment.badge, assessment.badge))
    yield "acceptance", Text(_acceptance(assessment.speculative.metrics.acceptance))
    yield "speedup", Text(_speedup(assessment.speedup))
    theory = _theory(assessment.theory)
    if theory:
        yield "theory", Text(theory)
    yield "verdict", verdict_text(assessment.verdict)
    for remark in assessment.verdict.remarks:
        yield "", Text(calm(remark))
    if record.probe is not None and record.probe.error:
        yield "probe", Text(calm(record.probe.error))
    for check in assessment.checks:
        if check.level != "ok":
            yield (
                "comparable?",
                Text(calm(f"{check.check}: {check.detail}"), "red" if check.level == "block" else "yellow"),
            )
    notes: dict[str, list[str]] = {}
    for note in assessment.notes:
        notes.setdefault(note.message, []).extend([str(note.side)] if note.side else [])
    for message, sides in notes.items():
        yield "note", Text(calm(f"{' and '.join(sides)}: {message}" if sides else message))
    for side in (assessment.standard, assessment.speculative):
        if side.error_message:
            name = "standard" if side is assessment.standard else "speculative"
            yield "failed", Text(calm(f"{name}: {side.error_message}"), "red")


def verdict_text(verdict: Verdict) -> Text:
    """The class in words and colour, then its reason."""
    words = verdict.cls.replace("_", " ")
    return Text.assemble((words, _VERDICT_STYLE.get(verdict.cls, "bold")), f": {calm(verdict.reason)}")


def _acceptance(taken: Acceptance) -> str:
    match taken.source:
        case "request":
            return "exact for this request"
        case "engine":
            return "whole engine: its counters include any other request"
        case _:
            return taken.reason or "none measured"


def _speedup(ratios: Speedup) -> str:
    named = (("decode", ratios.decode), ("end to end", ratios.e2e), ("TTFT", ratios.ttft))
    shown = ", ".join(f"{name} {value:.2f}x" for name, value in named if value is not None)
    return f"{shown or 'none'} (standard / speculative). {ratios.basis}"


def _theory(line: Theory) -> str:
    if line.a is None or line.textbook_speedup is None:
        return ""
    parts = [f"a = {line.a:.2f}"]
    if line.c is not None:
        parts.append(f"c = {line.c:.2f}")
    parts.append(f"textbook {line.textbook_speedup:.2f}x")
    if line.corrected_speedup is not None:
        parts.append(f"corrected {line.corrected_speedup:.2f}x")
    if line.measured_speedup is not None:
        parts.append(f"measured {line.measured_speedup:.2f}x")
    return ", ".join(parts) + (f". {line.cause}" if line.cause else "")


def texts(assessment: Assessment) -> RenderableType:
    """Both outputs, one after the other, as plain text."""
    blocks: list[RenderableType] = []
    for name, side in (("standard", assessment.standard), ("speculative", assessment.speculative)):
        blocks += [Text(f"{name} ({_ending(side)})", "bold"), Text(textwrap.indent(shown_text(side), "  ") + "\n")]
    return Group(*blocks)


def shown_text(side: SideResult) -> str:
    """Reasoning, if there was any, then the answer."""
    return calm(f"[reasoning] {side.reasoning}\n{side.text}" if side.reasoning else side.text)


def _ending(side: SideResult) -> str:
    return calm(f"{side.state}: {side.finish_reason}") if side.finish_reason else side.state
