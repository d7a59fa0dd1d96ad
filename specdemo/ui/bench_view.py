"""What the Benchmark tab shows: a running job's progress, a result's verdict, tables, drawings and files, as markup."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from specdemo.bench.estimate import Estimate
from specdemo.bench.record import BenchRecord
from specdemo.bench.report import html as report_html
from specdemo.bench.report.blocks import Document
from specdemo.bench.report.compare import comparison
from specdemo.bench.report.content import document, lead
from specdemo.bench.report.numbers import times
from specdemo.bench.report.sweep_page import sweep_document
from specdemo.bench.report.words import speaker
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.summary import Result, Summary
from specdemo.bench.sweep import Sweep
from specdemo.bench.workloads import shipped
from specdemo.runs.bench_job import BenchJob, SweepJob
from specdemo.runs.jobs import Job
from specdemo.runs.kept import Kept
from specdemo.ui import plots
from specdemo.ui.i18n import Lang, say, tell

Drawings = tuple[plots.Spec | None, plots.Spec | None, plots.Spec | None]
"""By workload; speedup over load or draft length; throughput or tokens a step."""
NOTHING: Drawings = (None, None, None)
LONGEST_NOTE = 400
"""Characters of an error sentence that the tabs show."""


def spell(seconds: float, lang: Lang) -> str:
    """A length of time in words: 45 s, 3 min 20 s, 1 h 5 min."""
    whole = max(0, round(seconds))
    if whole < 60:
        return say(lang, "bench_s", s=whole)
    if whole < 3600:
        return say(lang, "bench_min", m=whole // 60, s=whole % 60)
    return say(lang, "bench_h", h=whole // 3600, m=whole % 3600 // 60)


def plan_line(found: Estimate, lang: Lang) -> str:
    """How large a plan is and how long it will take."""
    parts = [say(lang, "bench_plan_size", requests=f"{found.requests:,}", tokens=f"{found.tokens:,}")]
    if found.low_s is None or found.high_s is None:
        parts.append(say(lang, "bench_plan_unknown"))
    elif found.high_s < 1.1 * found.low_s + 1:
        parts.append(say(lang, "bench_plan_time", time=spell(found.high_s, lang)))
    else:
        parts.append(say(lang, "bench_plan_range", low=spell(found.low_s, lang), high=spell(found.high_s, lang)))
    if found.cut:
        parts.append(say(lang, "bench_plan_cut"))
    return paragraph(" ".join(parts))


def told(error: Exception | str, lang: Lang) -> str:
    """A sentence of ours in the visitor's language; an engine's words stay as they are."""
    return tell(lang, str(error))


def paragraph(text: str, kind: str = "info") -> str:
    """One sentence as markup."""
    role = "alert" if kind == "error" else "status"
    return f'<p class="sd-status" data-kind="{kind}" role="{role}" dir="auto">{html.escape(text)}</p>'


def standing(job: Job | None, busy: Job | None, lang: Lang, *, said: str, own: str) -> str:
    """What stands above a tab's result: an error that was ``said``, then what has the engines, or its ``own`` job."""
    parts = [paragraph(told(said[:LONGEST_NOTE], lang), "error")] if said else []
    if busy is not None and busy is not job:
        parts.append(paragraph(told(busy.sentence(), lang), "warn"))
    elif job is not None:
        parts.append(own)
    return "".join(parts)


def progress(job: Job, lang: Lang, *, mine: bool) -> str:
    """How far a job is, with a bar and the time left; a last word when it is over."""
    share, words = _how_far(job, lang)
    if not job.live:
        return paragraph(words, "error" if job.error else "done")
    if not mine:
        words += " " + say(lang, "bench_not_yours")
    value = "" if share is None else f' value="{share:.4f}"'
    label = html.escape(words)
    return (
        f'<div class="sd-job" data-state="{job.state}"><progress max="1"{value} aria-label="{label}"></progress>'
        f'<p role="status" dir="auto">{label}</p></div>'
    )


def _how_far(job: Job, lang: Lang) -> tuple[float | None, str]:
    if not job.live:
        return 1.0, told(job.error, lang) if job.error else _ended(job, lang)
    if job.state == "waiting":
        return None, say(lang, "bench_waiting")
    known = job.progress if isinstance(job, (BenchJob, SweepJob)) else None
    if known is None:
        point = job.point.name if isinstance(job, SweepJob) and job.point else ""
        return None, say(lang, "bench_loading_point", point=point) if point else say(lang, "bench_beginning")
    share = known.done / known.planned if known.planned else None
    state = "paused" if job.state == "paused" else "stopping" if job.state == "stopping" else known.state
    words = say(
        lang,
        "bench_progress",
        state=say(lang, f"bench_state_{state}"),
        done=f"{known.done:,}",
        planned=f"{known.planned:,}",
        level=known.level,
        elapsed=spell(known.elapsed_s, lang),
    )
    if isinstance(job, SweepJob):
        number = say(lang, "bench_point", n=job.at + 1, of=len(job.points), name=job.point.name if job.point else "")
        words = f"{number} {words}"
        share = None if share is None else (job.at + share) / len(job.points)
    if job.left_s is not None:
        words += " " + say(lang, "bench_left", time=spell(job.left_s, lang))
    if known.failed:
        words += " " + say(lang, "bench_failed", n=known.failed)
    return share, words


def _ended(job: Job, lang: Lang) -> str:
    if isinstance(job, BenchJob) and job.ending is not None:
        known = job.progress
        done, planned = (known.done, known.planned) if known else (0, 0)
        key = f"bench_end_{job.ending.state}"
        return say(lang, key, done=f"{done:,}", planned=f"{planned:,}", reason=told(job.ending.reason, lang))
    if isinstance(job, SweepJob) and job.failed:
        reasons = "; ".join(f"{one.point.name}: {told(one.reason, lang)}" for one in job.failed)
        return say(lang, "bench_sweep_partly", n=len(job.records), reasons=reasons)
    if isinstance(job, SweepJob):
        return say(lang, "bench_sweep_done", n=len(job.records))
    return say(lang, "bench_end_complete")


# ------------------------------------------------------------------ results


Page = tuple[str, str]
"""What stands above the plots (verdict, files), and what stands below (tables)."""


def so_far(summary: Summary, lang: Lang) -> str:
    """The headline while it runs, marked as such."""
    if summary.suite is None or summary.suite.speedup is None:
        return ""
    text, _ = lead(summary, speaker(lang))
    return f'<p class="sd-so-far" dir="auto"><b>{html.escape(say(lang, "bench_so_far"))}</b> {html.escape(text)}</p>'


def result(
    record: BenchRecord, summary: Summary, name: str, lang: Lang, validation: ValidationResult | None = None
) -> Page:
    """Verdict first, then the report's own tables, with the files to take home between them."""
    made = document(record, summary, language=lang, validation=validation, workloads=shipped())
    forms = ("html", "md", "json", "csv", "samples.csv")
    return _page(made, f"benchmarks/{quote(name)}/report", forms, lang)


def swept(found: Sweep, name: str, lang: Lang) -> Page:
    """A sweep: best setting first, and its table."""
    made = sweep_document(found, language=lang)
    return _page(made, f"benchmarks/{quote(name)}/report", ("html", "md", "json"), lang)


def compared(first: BenchRecord, second: BenchRecord, names: tuple[str, str], lang: Lang) -> Page:
    """Two benchmarks side by side."""
    made = comparison(first, second, language=lang)
    return _page(made, f"benchmarks/{quote(names[0])}/versus/{quote(names[1])}", ("html", "md"), lang)


def _page(made: Document, stem: str, forms: Sequence[str], lang: Lang) -> Page:
    first, rest = replace(made, sections=made.sections[:1]), replace(made, sections=made.sections[1:])
    foot = f'<p class="sd-foot">{html.escape(made.footer)}</p>' if made.footer else ""
    head = f'<article class="sd-report">{report_html.fragment(first)}{files(stem, forms, lang)}</article>'
    return head, f'<article class="sd-report">{report_html.fragment(rest)}{foot}</article>'


def files(stem: str, forms: Sequence[str], lang: Lang) -> str:
    """Links to a result's files; addresses are relative, so right under any sub-path."""
    links = "".join(
        f'<a class="sd-file" href="{stem}.{form}?lang={lang}" download target="_blank" rel="noopener">'
        f"{html.escape(say(lang, 'bench_form_' + form.replace('.', '_')))}</a>"
        for form in forms
    )
    return f'<nav class="sd-files" aria-label="{html.escape(say(lang, "bench_download"))}">{links}</nav>'


def drawings(summary: Summary, lang: Lang) -> Drawings:
    """The plots of a benchmark, finished or not."""
    words = speaker(lang)
    titles = {w.name: w.title_zh if lang == "zh" else w.title_en for w in shipped()}
    named = [(titles.get(r.name, r.name), r) for r in summary.workloads]
    if summary.suite is not None:
        named.append((words("suite"), summary.suite))
    else:  # levels come in random order, so the lowest, which the suite is made of, may not have begun
        named = [(f"{words('level')} {r.level}", r) for r in summary.levels]
    bars = [bar for name, found in named if (bar := _bar(name, found)) is not None]
    by_workload = plots.forest(bars, words("by_workload"), words("axis_speedup"))
    if len(summary.levels) < 2:
        return by_workload, None, None
    measured = tuple(
        (float(r.level), r.speedup.estimate, r.speedup.low, r.speedup.high) for r in summary.levels if r.speedup
    )
    predicted = tuple(
        (float(r.level), r.acceptance.predicted, None, None) for r in summary.levels if r.acceptance.predicted
    )
    speed = plots.lines(
        [
            plots.Line(words("measured"), measured, plots.SPECULATIVE),
            plots.Line(words("predicted"), predicted, plots.NEUTRAL, dashed=True),
        ],
        words("load"), words("level"), words("speedup"), one=True,
    )  # fmt: skip
    rates = plots.lines(
        [
            plots.Line(words("standard"), _rates(summary.levels, "a"), plots.STANDARD),
            plots.Line(words("speculative"), _rates(summary.levels, "b"), plots.SPECULATIVE),
        ],
        words("tokens_per_s"), words("level"), words("tokens_per_s"),
    )  # fmt: skip
    return by_workload, speed, rates


def swept_drawings(found: Sweep, lang: Lang) -> Drawings:
    """The plots of a sweep: speedup with the textbook's line, and tokens a step, against k."""
    words = speaker(lang)
    methods = list(dict.fromkeys(point.method for point in found.points))
    speeds: list[plots.Line] = []
    steps: list[plots.Line] = []
    for place, method in enumerate(methods):
        colour = plots.SERIES[place % len(plots.SERIES)]
        points = [point for point in found.points if point.method == method]
        speeds.append(plots.Line(
            f"{method}: {words('measured')}",
            tuple((float(p.k), p.speedup.estimate, p.speedup.low, p.speedup.high) for p in points if p.speedup), colour,
        ))  # fmt: skip
        speeds.append(plots.Line(
            f"{method}: {words('textbook')}",
            tuple((float(p.k), p.textbook, None, None) for p in points if p.textbook is not None), colour, dashed=True,
        ))  # fmt: skip
        steps.append(plots.Line(
            f"{method}: {words('tokens_per_step')}",
            tuple(
                (float(p.k), p.acceptance.tokens_per_step, None, None)
                for p in points
                if p.acceptance.tokens_per_step is not None
            ),
            colour,
        ))  # fmt: skip
    k = say(lang, "bench_k_axis")
    return (
        None,
        plots.lines(speeds, words("speedup"), k, words("speedup"), one=True),
        plots.lines(steps, words("tokens_per_step"), k, words("tokens_per_step")),
    )


def _bar(name: str, found: Result) -> plots.Bar | None:
    speed = found.speedup
    if speed is None:
        return None
    shown = f"{times(speed.estimate)}x"
    colour = plots.NEUTRAL
    if speed.low is not None and speed.high is not None:
        shown += f" ({times(speed.low)} – {times(speed.high)})"
        colour = plots.GOOD if speed.low > 1 else plots.BAD if speed.high < 1 else plots.NEUTRAL
    return plots.Bar(name, speed.estimate, speed.low, speed.high, shown, colour, tuple(x for _, x in found.points))


def _rates(levels: Sequence[Result], arm: str) -> tuple[tuple[float, float, None, None], ...]:
    found = [(r.level, (r.arm_a if arm == "a" else r.arm_b).tokens_per_s) for r in levels]
    return tuple((float(level), rate, None, None) for level, rate in found if rate is not None)


def choices(found: Sequence[Kept], lang: Lang) -> list[tuple[str, Any]]:
    """Kept results for a menu: when, and which kind."""
    return [(_choice(kept, lang), kept.name) for kept in found]


def _choice(kept: Kept, lang: Lang) -> str:
    kind = f" · {say(lang, 'bench_kind_sweep')}" if kept.is_sweep else ""
    return f"{datetime.fromtimestamp(kept.at, UTC):%Y-%m-%d %H:%M} UTC{kind} · {kept.name}"
