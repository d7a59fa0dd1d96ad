"""A benchmark record → the report's document, the verdict first. Pure; every number comes from the summary."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from specdemo.bench.arms import ArmTotals
from specdemo.bench.record import BenchRecord
from specdemo.bench.report import charts
from specdemo.bench.report.blocks import Block, Cell, Document, Figure, Section, Table, Text
from specdemo.bench.report.evidence import (
    claims,
    commands,
    engines,
    failures,
    how,
    identity,
    limits,
    sampling,
    sign_off,
)
from specdemo.bench.report.load import reach
from specdemo.bench.report.numbers import factor, plain, share, times, whole
from specdemo.bench.report.words import Speaker as Say
from specdemo.bench.report.words import speaker
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.statistics import Percentile
from specdemo.bench.summary import FAILURE_SHARE, Result, Summary
from specdemo.bench.workloads import Workload


def document(
    record: BenchRecord,
    summary: Summary,
    *,
    language: str = "en",
    validation: ValidationResult | None = None,
    workloads: Sequence[Workload] = (),
) -> Document:
    """The whole report in one language. ``workloads`` give titles and reasons of the shipped ones."""
    say = speaker(language)
    titles = {w.name: w.title_zh if language == "zh" else w.title_en for w in workloads}
    sections = [
        _verdict(record, summary, say),
        _numbers(record, summary, say),
        _by_workload(summary, say, titles, workloads, language),
        _load(summary, say),
        identity(summary, say),
        sampling(validation, say),
        _acceptance(summary, say, titles),
        claims(summary, say, titles),
        how(record, summary, say),
        engines(record, say),
        commands(record, say),
        failures(summary, say),
        limits(summary, say, validated=validation is not None),
        sign_off(say),
    ]
    started = datetime.fromtimestamp(record.header.started_at, UTC).strftime("%Y-%m-%d %H:%M")
    footer = say("footer", version=record.header.version or "?", id=record.header.id, date=started)
    title = record.header.plan.title or say("title")
    return Document(title, language, tuple(s for s in sections if s is not None), footer)


def lead(summary: Summary, say: Say) -> tuple[str, str]:
    """(the one sentence, its mood)."""
    suite = summary.suite
    if suite is None or suite.speedup is None:
        return say("lead_none"), "warn"
    interval = suite.speedup
    if interval.low is None or interval.high is None:
        return say("lead_point" if interval.n == 1 else "lead_apart", ratio=times(interval.estimate)), "warn"
    word = _word(suite, say)
    mood = word.mood or "warn"
    if summary.null:
        mood = "good" if summary.null_passed else "bad"
    text = say(
        "lead_null" if summary.null else "lead_speed",
        ratio=times(interval.estimate),
        word=word.text,
        low=times(interval.low),
        high=times(interval.high),
        n=interval.n,
    )
    return text, mood


def _verdict(record: BenchRecord, summary: Summary, say: Say) -> Section:
    text, mood = lead(summary, say)
    found = summary.identity
    counts = dict(found.classes)
    bad = sum(counts.get(kind, 0) for kind in ("suspicious", "mismatch", "unexplained"))
    same = say(
        f"identity_{found.word}",
        n=found.prompts,
        tokens=f"{found.tokens:,}",
        bound=share(found.mismatch_bound).text,
        ties=counts.get("near_tie", 0),
        bad=bad,
    )
    moods = {"identical": "good", "identical_up_to_near_ties": "good", "mismatch": "bad"}
    blocks: list[Block] = [Text(text, mood, lead=True), Text(same, moods.get(found.word, "warn"))]
    if summary.certified:
        blocks.append(Text(say("certified"), "good"))
    else:
        blocks.append(Text(say("not_certified", why="; ".join(map(say.told, summary.why_not_certified))), "warn"))
    if not record.finished:
        reason = record.endings[-1].reason if record.endings else "…"
        blocks.append(
            Text(say("unfinished", done=summary.done, planned=summary.planned, reason=say.told(reason)), "warn")
        )
    return Section(say("verdict"), tuple(blocks))


def _numbers(record: BenchRecord, summary: Summary, say: Say) -> Section | None:
    suite = summary.suite
    if suite is None:
        return None
    memory = record.sessions[-1].memory_bytes if record.sessions else (None, None)
    names = ("standard", "standard" if summary.null else "speculative")
    rows = []
    for name, arm, held in zip(names, (suite.arm_a, suite.arm_b), memory, strict=True):
        rows.append(
            (
                Cell(say(name)),
                whole(arm.tokens),
                plain(arm.seconds if arm.seconds > 0.0 else None),
                plain(arm.tokens_per_s),
                whole(arm.requests),
                whole(arm.failed, mood="bad" if arm.failed else ""),
                _tail(arm.ttft, 0.5),
                _tail(arm.tpot, 0.5),
                _tail(arm.tpot, 0.99),
                Cell("–" if held is None else f"{held / 2**30:.2f} GiB", held),
            )
        )
    keys = ("arm", "total_tokens", "elapsed", "tokens_per_s", "requests", "failed", "ttft", "tpot", "tpot99", "memory")
    table = Table(tuple(say(key) for key in keys), tuple(rows))
    rate = record.header.plan.rate  # at an open rate nothing has its engine to itself
    why = say("numbers_why", level=suite.level) if rate is None else say("how_open", rate=f"{rate:g}")
    blocks: list[Block] = [Text(why), table]
    if suite.speedup is not None:
        line = f"{say('speedup')}: {factor(suite.speedup.estimate).text}"
        if suite.totals is not None:
            line += " · " + _totals(suite, say)
        blocks.append(Text(line))
    return Section(say("numbers"), tuple(blocks))


def _totals(result: Result, say: Say) -> str:
    totals = result.totals
    if totals is None:
        return ""
    mix = say("mix") if result.depends_on_mix else ""
    low, high = factor(totals.low), factor(totals.high)
    return say("totals_line", ratio=times(totals.estimate), low=low.text, high=high.text, mix=mix).strip()


def _tail(found: Sequence[Percentile], q: float) -> Cell:
    """A percentile; in brackets with its sample size where the sample can't carry it."""
    one = next((p for p in found if p.q == q), None)
    if one is None or one.value is None:
        return Cell("–")
    if one.enough:
        return Cell(f"{one.value:.3g}", one.value)
    return Cell(f"({one.value:.3g}, n={one.n})", one.value, "faint")


def _interval(result: Result) -> Cell:
    found = result.speedup
    if found is None or found.low is None or found.high is None:
        return Cell("–")
    return Cell(f"{times(found.low)} – {times(found.high)}")


def _word(result: Result, say: Say) -> Cell:
    """The verdict's word; where too many requests failed it speaks of the others only, and is no praise (D12)."""
    word = result.verdict.word
    if word != "not_enough_data" and any(_failing(arm) for arm in (result.arm_a, result.arm_b)):
        return Cell(say("word_of_rest", word=say(word)), None, "warn")
    return Cell(say(word), None, {"faster": "good", "slower": "bad"}.get(word, ""))


def _failing(arm: ArmTotals) -> bool:
    return arm.failed > FAILURE_SHARE * arm.requests


def _failed(arm: ArmTotals) -> Cell:
    """Failed of all requests, such as 25 of 64."""
    return Cell(f"{arm.failed:,} / {arm.requests:,}", arm.failed, "bad" if arm.failed else "")


def _bar(result: Result, label: str) -> charts.Bar | None:
    found = result.speedup
    if found is None:
        return None
    return charts.Bar(label, found.estimate, found.low, found.high, tuple(ratio for _, ratio in result.points))


def _by_workload(
    summary: Summary, say: Say, titles: dict[str, str], workloads: Sequence[Workload], language: str
) -> Section | None:
    if not summary.workloads or summary.suite is None:
        return None
    results = [*summary.workloads, summary.suite]
    names = [titles.get(r.name, r.name) if r.scope == "workload" else say("suite") for r in results]
    bars = [bar for result, name in zip(results, names, strict=True) if (bar := _bar(result, name)) is not None]
    rows = tuple(
        (
            Cell(name),
            factor(result.speedup.estimate if result.speedup else None),
            _interval(result),
            whole(result.prompts),
            _word(result, say),
            plain(result.acceptance.tokens_per_step),
            factor(result.acceptance.predicted),
        )
        for result, name in zip(results, names, strict=True)
    )
    keys = ("workload", "speedup", "interval", "prompts", "result", "tokens_per_step", "predicted")
    blocks: list[Block] = [
        Figure(charts.forest(bars, say("by_workload"), say("axis_speedup")), say("by_workload_why")),
        Table(tuple(say(key) for key in keys), rows),
    ]
    present = {result.name for result in summary.workloads}
    reasons = tuple(
        (Cell(titles[w.name]), Cell(w.why_zh if language == "zh" else w.why_en)) for w in workloads if w.name in present
    )
    if reasons:
        blocks.append(Table((say("workload"), say("why_help")), reasons))
    return Section(say("by_workload"), tuple(blocks))


def _load(summary: Summary, say: Say) -> Section | None:
    if len(summary.levels) < 2:
        return None
    rows = tuple(
        (
            whole(result.level),
            factor(result.speedup.estimate if result.speedup else None),
            _interval(result),
            _word(result, say),
            _failed(result.arm_a),
            _failed(result.arm_b),
            plain(result.arm_a.tokens_per_s),
            plain(result.arm_b.tokens_per_s),
            plain(result.arm_a.steady_tokens_per_s),
            plain(result.arm_b.steady_tokens_per_s),
            plain(result.acceptance.tokens_per_step),
            factor(result.acceptance.predicted),
        )
        for result in summary.levels
    )
    a, b = say("standard"), say("speculative")
    head = (
        say("level"), say("speedup"), say("interval"), say("result"), f"{say('failed')}, {a}", f"{say('failed')}, {b}",
        f"{say('tokens_per_s')}, {a}", f"{say('tokens_per_s')}, {b}", f"{say('steady')}, {a}", f"{say('steady')}, {b}",
        say("tokens_per_step"), say("predicted"),
    )  # fmt: skip
    note = " ".join(reach(summary, say))
    blocks: list[Block] = [
        Text(say("load_why", n=summary.levels[0].prompts)),
        Figure(charts.lines(_speedups(summary, say), say("load"), say("level"), say("speedup"), one=True), note),
        Figure(charts.lines(_throughputs(summary, say), say("load"), say("level"), say("tokens_per_s")), ""),
        Table(head, rows),
    ]
    if summary.steps_flat is False:
        blocks.append(Text(say("steps_not_flat"), "warn"))
    return Section(say("load"), tuple(blocks))


def _speedups(summary: Summary, say: Say) -> list[charts.Line]:
    measured = tuple(
        (float(r.level), r.speedup.estimate, r.speedup.low, r.speedup.high) for r in summary.levels if r.speedup
    )
    predicted = tuple(
        (float(r.level), r.acceptance.predicted, None, None) for r in summary.levels if r.acceptance.predicted
    )
    found = [charts.Line(say("measured"), charts.ARM_B, measured)]
    if predicted:
        found.append(charts.Line(say("predicted"), charts.ARM_A, predicted, dashed=True))
    return found


def _throughputs(summary: Summary, say: Say) -> list[charts.Line]:
    series = []
    for key, colour in (("standard", charts.ARM_A), ("speculative", charts.ARM_B)):
        points = []
        for result in summary.levels:
            arm = result.arm_a if key == "standard" else result.arm_b
            if arm.tokens_per_s is not None:
                points.append((float(result.level), arm.tokens_per_s, None, None))
        series.append(charts.Line(say(key), colour, tuple(points)))
    return series


def _acceptance(summary: Summary, say: Say, titles: dict[str, str]) -> Section | None:
    if summary.null or summary.suite is None:
        return None
    rows = []
    for result in (*summary.workloads, summary.suite):
        pool = result.acceptance
        name = titles.get(result.name, result.name) if result.scope == "workload" else say("suite")
        rows.append(
            (
                Cell(name),
                plain(pool.tokens_per_step),
                share(pool.coverage),
                share(pool.rate) if pool.rate is not None else Cell(say.told(pool.reason or "–")),
                plain(pool.mean_length),
                plain(pool.per_token),
                factor(pool.predicted),
                factor(result.speedup.estimate if result.speedup else None),
            )
        )
    keys = (
        "workload",
        "tokens_per_step",
        "coverage",
        "rate",
        "length",
        "per_token",
        "predicted",
        "measured",
    )
    return Section(
        say("acceptance"), (Text(say("acceptance_why")), Table(tuple(say(key) for key in keys), tuple(rows)))
    )
