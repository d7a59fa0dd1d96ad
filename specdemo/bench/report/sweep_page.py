"""The document of a k and method sweep. Pure."""

from __future__ import annotations

from specdemo.bench.report import charts
from specdemo.bench.report.blocks import Block, Cell, Document, Figure, Section, Table, Text
from specdemo.bench.report.numbers import factor, plain, share, times
from specdemo.bench.report.words import Speaker as Say
from specdemo.bench.report.words import speaker
from specdemo.bench.sweep import Sweep, SweepPoint

COLOURS = ("#1f5fbf", "#0b6e4f", "#b3261e", "#8a5300", "#6a3fa0")


def sweep_document(found: Sweep, *, language: str = "en") -> Document:
    """Best setting first, then speedup and acceptance against k with the textbook line, then the table."""
    say = speaker(language)
    blocks: list[Block] = [_lead(found, say)]
    if found.as_good:
        blocks.append(Text(say("sweep_as_good", list=", ".join(found.as_good)), "warn"))
    speed = charts.lines(_speedups(found, say), say("sweep"), "k", say("speedup"), one=True)
    taken = charts.lines(_acceptances(found, say), say("sweep"), "k", say("tokens_per_step"))
    blocks += [Figure(speed, say("sweep_why")), Figure(taken, "")]
    head = (
        say("sweep_point"), say("speedup"), say("interval"), say("result"), say("textbook"), say("predicted"),
        say("tokens_per_step"), say("coverage"), say("rate"), say("per_token"),
    )  # fmt: skip
    blocks.append(Table(head, tuple(_row(point, say) for point in found.points)))
    return Document(say("sweep"), language, (Section(say("sweep"), tuple(blocks)),))


def _lead(found: Sweep, say: Say) -> Text:
    best = found.best
    if best is None or best.speedup is None:
        return Text(say("lead_none"), "warn", lead=True)
    if found.next is None or found.lead is None or found.lead.low is None or found.lead.high is None:
        return Text(say("sweep_one", best=best.label, ratio=times(best.speedup.estimate)), lead=True)
    return Text(
        say(
            "sweep_lead",
            best=best.label,
            ratio=times(best.speedup.estimate),
            next=found.next.label,
            lead=times(found.lead.estimate),
            low=times(found.lead.low),
            high=times(found.lead.high),
        ),
        "good" if found.lead.low > 1.0 else "warn",
        lead=True,
    )


def _by_method(found: Sweep) -> list[tuple[str, str, list[SweepPoint]]]:
    methods = list(dict.fromkeys(point.method for point in found.points))
    return [
        (method, COLOURS[i % len(COLOURS)], [p for p in found.points if p.method == method])
        for i, method in enumerate(methods)
    ]


def _speedups(found: Sweep, say: Say) -> list[charts.Line]:
    lines = []
    for method, colour, points in _by_method(found):
        measured = tuple((float(p.k), p.speedup.estimate, p.speedup.low, p.speedup.high) for p in points if p.speedup)
        theory = tuple((float(p.k), p.textbook, None, None) for p in points if p.textbook is not None)
        lines.append(charts.Line(f"{method}: {say('measured')}", colour, measured))
        if theory:
            lines.append(charts.Line(f"{method}: {say('textbook')}", colour, theory, dashed=True))
    return lines


def _acceptances(found: Sweep, say: Say) -> list[charts.Line]:
    lines = []
    for method, colour, points in _by_method(found):
        steps = tuple(
            (float(p.k), p.acceptance.tokens_per_step, None, None)
            for p in points
            if p.acceptance.tokens_per_step is not None
        )
        lines.append(charts.Line(f"{method}: {say('tokens_per_step')}", colour, steps))
    return lines


def _row(point: SweepPoint, say: Say) -> tuple[Cell, ...]:
    speed, pool = point.speedup, point.acceptance
    bounds = Cell("–")
    if speed is not None and speed.low is not None and speed.high is not None:
        bounds = Cell(f"{times(speed.low)} – {times(speed.high)}")
    return (
        Cell(point.label),
        factor(speed.estimate if speed else None),
        bounds,
        Cell(say(point.verdict.word)),
        factor(point.textbook),
        factor(pool.predicted),
        plain(pool.tokens_per_step),
        share(pool.coverage),
        share(pool.rate),
        plain(pool.per_token),
    )
