"""Two benchmarks side by side: do their speedups agree? Pure."""

from __future__ import annotations

from specdemo.bench.record import BenchRecord
from specdemo.bench.report.blocks import Block, Cell, Document, Section, Table, Text
from specdemo.bench.report.numbers import factor, times
from specdemo.bench.report.words import Speaker as Say
from specdemo.bench.report.words import speaker
from specdemo.bench.statistics import Interval
from specdemo.bench.summary import Result, Summary


def comparison(first: BenchRecord, second: BenchRecord, *, language: str = "en") -> Document:
    """One table of suite, workloads and levels with both intervals, and whether they overlap."""
    say = speaker(language)
    summaries = (first.summary(), second.summary())
    pairs = _pairs(*summaries)
    rows = tuple(_row(name, a, b, say) for name, a, b in pairs)
    head = ("", say("first"), say("interval"), say("second"), say("interval"), say("result"))
    words = [_agree(a.speedup, b.speedup) for _, a, b in pairs]
    apart = words.count(False)
    unknown, unlike = words.count(None), _unlike(first, second)
    mood = "good" if words and not apart and not unknown else "warn"
    told = say("compare_lead", n=len(pairs), apart=apart) + (
        f" {say('not_enough_data')}: {unknown}." if unknown else ""
    )
    blocks: list[Block] = [
        Text(told, mood, lead=True),
        *([Text(say("compare_differs", list=", ".join(map(say, unlike))), "warn")] if unlike else []),
        Table(head, rows),
        Text(f"{say('first')}: {first.header.id}. {say('second')}: {second.header.id}."),
    ]
    return Document(say("comparison"), language, (Section(say("comparison"), tuple(blocks)),))


def _unlike(first: BenchRecord, second: BenchRecord) -> list[str]:
    """Keys of the words for what differs, beside the speculation that a comparison is usually about."""
    plans = first.header.plan, second.header.plan
    asked = [frozenset((p.messages, p.text, p.token_ids) for p in plan.prompts) for plan in plans]
    ways = [(plan.sampling, plan.rate, plan.null) for plan in plans]
    engines = [(facts.model, facts.dtype) if facts else None for facts in (first.facts[0], second.facts[0])]
    found = ["differ_prompts"] if asked[0] != asked[1] else []
    found += ["differ_ways"] if ways[0] != ways[1] else []
    return found + (["differ_engines"] if None not in engines and engines[0] != engines[1] else [])


def _pairs(a: Summary, b: Summary) -> list[tuple[str, Result, Result]]:
    """Results that both have: suite, workloads by name, levels by concurrency."""
    listed = [
        {(r.scope, r.name): r for r in (*([s.suite] if s.suite else []), *s.workloads, *s.levels)} for s in (a, b)
    ]
    return [
        (name or scope, found, listed[1][scope, name])
        for (scope, name), found in listed[0].items()
        if (scope, name) in listed[1]
    ]


def _agree(a: Interval | None, b: Interval | None) -> bool | None:
    if a is None or b is None or a.low is None or b.low is None or a.high is None or b.high is None:
        return None
    return a.low <= b.high and b.low <= a.high


def _row(name: str, a: Result, b: Result, say: Say) -> tuple[Cell, ...]:
    agree = _agree(a.speedup, b.speedup)
    words = {True: "overlap", False: "apart"}
    return (
        Cell(name if a.scope != "level" else f"{say('level')} {name}"),
        factor(a.speedup.estimate if a.speedup else None),
        _bounds(a.speedup),
        factor(b.speedup.estimate if b.speedup else None),
        _bounds(b.speedup),
        Cell("–") if agree is None else Cell(say(words[agree]), None, "" if agree else "warn"),
    )


def _bounds(found: Interval | None) -> Cell:
    if found is None or found.low is None or found.high is None:
        return Cell("–")
    return Cell(f"{times(found.low)} – {times(found.high)}")
