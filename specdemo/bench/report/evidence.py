"""The report's sections on identity, sampling, claims, method, engines and limits. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from specdemo.bench.record import BenchRecord
from specdemo.bench.report.blocks import Block, Cell, Code, Items, Section, SignOff, Table, Text
from specdemo.bench.report.load import claimed
from specdemo.bench.report.numbers import factor, plain, points, share, whole
from specdemo.bench.report.words import Speaker as Say
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.summary import Summary
from specdemo.core.engine import EngineFacts

MOST_SPLITS = 20


def identity(summary: Summary, say: Say) -> Section:
    """Classes, controls, and each split with its tokens."""
    found = summary.identity
    blocks: list[Block] = [Text(say.told(found.reason))]
    if found.classes:
        rows = tuple((Cell(say.told(kind.replace("_", " "))), whole(count)) for kind, count in found.classes)
        blocks.append(Table((say("class"), say("count")), rows))
        nats = f"{found.tolerance_nats:g}" if found.tolerance_nats is not None else "–"
        blocks.append(Text(say("tolerance", nats=nats, a=found.a_repeats_differ, b=found.b_repeats_differ)))
    if found.under_load is not None:
        y, m = found.batch_control or (0, 0)
        blocks.append(Text(say("under_load", x=found.under_load[0], n=found.under_load[1], y=y, m=m)))
    splits = tuple(
        f"{split.prompt_id} ({say.told(kind.replace('_', ' '))}): "
        + say(
            "split",
            position=split.position + 1,
            a=split.standard_text or split.standard_id,
            b=split.speculative_text or split.speculative_id,
            gap="–" if split.gap_nats is None else f"{split.gap_nats:.3g} nats",
        )
        for split, kind in found.splits[:MOST_SPLITS]
    )
    if splits:
        blocks.append(Items(splits))
    return Section(say("identity"), tuple(blocks))


def sampling(result: ValidationResult | None, say: Say) -> Section:
    """Both arms under each setting, and the verdict; or that it was not tested."""
    if result is None:
        return Section(say("sampling"), (Text(say("sampling_none"), "warn"),))
    mood = {"consistent": "good", "differs": "bad"}.get(result.verdict.word, "warn")
    rows = []
    for name, arms in (("standard", result.standard), ("speculative", result.speculative)):
        for arm in arms:
            relative = arm.relative_temperature
            reach = "" if arm.temperature.half_width is None else f" ± {arm.temperature.half_width:.3f}"
            rows.append(
                (
                    Cell(arm.config),
                    Cell(say(name)),
                    whole(arm.tokens),
                    Cell("–" if relative is None else f"{relative:.3f}{reach}", relative),
                    points(arm.top1.effect, arm.top1.half_width),
                    points(arm.leak.effect, arm.leak.half_width),
                    plain(arm.pit.p),
                    whole(arm.violations),
                    share(dict(result.drafted_share).get(arm.config) if name == "speculative" else None),
                )
            )
    keys = ("setting", "arm", "tokens", "t_eff", "top1", "leak", "pit", "violations", "coverage")
    blocks: list[Block] = [Text(say.told(result.verdict.sentence), mood)]
    if rows:
        blocks.append(Table(tuple(say(key) for key in keys), tuple(rows)))
    if result.started_at:
        when = datetime.fromtimestamp(result.started_at, UTC).strftime("%Y-%m-%d %H:%M")
        blocks.append(Text(say("sampling_when", date=when, rounds=result.rounds, draws=result.plan.draws)))
    if result.lookup:
        blocks.append(Text(say.told(result.lookup)))
    if result.verdict.power:
        listed = ", ".join(f"{say.told(name)} {value:.0%}" for name, value in result.verdict.power)
        blocks.append(Text(say("power", list=listed)))
    return Section(say("sampling"), tuple(blocks))


def claims(summary: Summary, say: Say, titles: dict[str, str]) -> Section | None:
    """The source article's numbers beside those measured here."""
    results = {result.name: result for result in summary.workloads}
    rows = []
    for name, key, value in (
        ("code_generation", "claim_code", "a 72 %, 1.9x"),
        ("open_chat", "claim_chat", "a 65 %, 1.7x"),
        ("rag_qa", "claim_rag", "80 %"),
    ):
        result = results.get(name)
        if result is None or result.speedup is None:
            continue
        a, speed = result.acceptance.per_token, factor(result.speedup.estimate).text
        shown = f"{titles.get(name, name)}: {'a ' + share(a).text + ', ' if a is not None else ''}{speed}"
        rows.append((Cell(say(key)), Cell(value), Cell(shown)))
    if len(summary.levels) > 1:
        rows.append((Cell(say("claim_batch")), Cell(say("claim_batch_value")), Cell(claimed(summary, say))))
    if not rows:
        return None
    table = Table((say("claim"), say("claimed"), say("here")), tuple(rows))
    return Section(say("claims"), (table, Text(say("claim_note"))))


def how(record: BenchRecord, summary: Summary, say: Say) -> Section:
    """The method in a few lines, and the controls' outcome."""
    plan = record.header.plan
    lines = [
        say("how_order", seed=plan.seed),
        say("how_cache"),
        say("how_warm", n=plan.warmup),
        say("how_equal" if plan.sampling.ignore_eos else "how_unequal", n=plan.sampling.max_tokens),
        say("how_time"),
        say("how_stats"),
    ]
    if plan.rate is not None:
        lines.append(say("how_open", rate=f"{plan.rate:g}"))
    control = summary.control
    if control.interval is None or control.interval.half_width is None:
        lines.append(say("control_none"))
    else:
        key = "control_passed" if control.passed else "control_failed"
        width = f"{control.interval.half_width:.1%}"
        lines.append(say(key, ratio=f"{control.interval.estimate:.3f}", width=width, n=control.interval.n))
    lines.append(say("noise", a=share(control.sigma_a).text, b=share(control.sigma_b).text))
    lines.append(say("reruns", n=summary.reruns, w=sum(ending.busy_waits for ending in record.endings)))
    return Section(say("how"), (Items(tuple(lines)),))


def engines(record: BenchRecord, say: Say) -> Section:
    """What both engines say of themselves, side by side, and what differs."""
    rows = []
    facts = record.facts
    for name in ("model", "version", "method", "k", "dtype", "max_model_len", "device"):
        values = [_fact(one, name) for one in facts]
        if any(value is not None for value in values):
            shown = [Cell("–" if value is None else str(value)) for value in values]
            rows.append((Cell(name), *shown))
    settings = [dict(one.settings) if one else {} for one in facts]
    for name in sorted(set(settings[0]) | set(settings[1])):
        a, b = settings[0].get(name), settings[1].get(name)
        rows.append((Cell(name), Cell(a or "–"), Cell(b or "–", None, "warn" if a != b else "")))
    if record.header.hardware:
        rows.append((Cell("hardware"), Cell(record.header.hardware), Cell(record.header.hardware)))
    blocks: list[Block] = [Table(("", say("standard"), say("speculative")), tuple(rows))] if rows else []
    checks = record.sessions[-1].checks if record.sessions else ()
    doubtful = tuple(f"{check.check}: {say.told(check.detail)}" for check in checks if check.level != "ok")
    blocks.append(Items(doubtful) if doubtful else Text(say("all_equal")))
    return Section(say("engines"), tuple(blocks))


def _fact(facts: EngineFacts | None, name: str) -> object:
    return getattr(facts, name) if facts is not None else None


def commands(record: BenchRecord, say: Say) -> Section | None:
    """Exact command lines of managed engines."""
    found = [text for session in record.sessions[-1:] for text in session.commands if text]
    return Section(say("commands"), tuple(Code(text) for text in found)) if found else None


def failures(summary: Summary, say: Say) -> Section:
    """What failed, by reason, and remarks on data quality."""
    texts = list(summary.suite.caveats) if summary.suite else []
    for result in summary.levels:
        texts += [
            f"{say('level')} {result.level}: {say.told(caveat)}" for caveat in result.caveats if caveat not in texts
        ]
    shown = {result.level for result in summary.levels}
    texts += [
        f"{one.failed} of {one.requests} requests failed {one.where('arm', levels=True)}"
        for one in summary.reliability
        if one.failed and (one.kind == "control" or one.level not in shown)
    ]
    told = [say.told(text) for text in texts]
    told += [_remark(kind, count, say) for kind, count in summary.notes]
    block: Block = Items(tuple(told)) if told else Text(say("no_failures"))
    return Section(say("failures"), (block,))


def _remark(kind: str, count: int, say: Say) -> str:
    """A kind of note in words; a file from elsewhere may have kinds that this version does not know."""
    key = f"remark_{kind}"
    return say(key, count=count) if say.knows(key) else f"{kind.replace('_', ' ')}: {count}"


def limits(summary: Summary, say: Say, *, validated: bool) -> Section:
    """What this evidence does not say."""
    texts = [say("limit_population"), say("limit_identity", n=summary.identity.prompts)]
    if not validated:
        texts.append(say("limit_sampling"))
    if summary.levels:
        texts.append(say("limit_load", level=summary.levels[-1].level))
    texts.append(say("limit_host"))
    return Section(say("limits"), (Items(tuple(texts)),))


def sign_off(say: Say) -> Section:
    """Lines for those who decide."""
    keys = ("sign_name", "sign_role", "sign_date", "sign_decision")
    return Section(say("sign_off"), (SignOff(tuple(say(key) for key in keys)),))
