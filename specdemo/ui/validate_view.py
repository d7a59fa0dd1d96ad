"""What the Validate tab shows: power before, evidence while it grows, the corrected verdict after."""

from __future__ import annotations

import html
from collections.abc import Sequence
from urllib.parse import quote

from specdemo.bench.estimate import Estimate
from specdemo.bench.report import html as report_html
from specdemo.bench.report.words import speaker
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.scoring import ArmScore, Component
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.bench.sampling.verdict import (
    CERTIFYING_TOKENS,
    TEMPERATURE_WITHIN,
    TOP1_WITHIN,
    power_at,
)
from specdemo.runs.validation_job import ValidationJob
from specdemo.ui import plots
from specdemo.ui.bench_view import files, paragraph, plan_line, spell, told
from specdemo.ui.i18n import Lang, say
from specdemo.ui.results import validation_document

Drawings = tuple[plots.Spec | None, plots.Spec | None]
"""Effective temperature, and top-1 share, both relative to what was asked for."""


def plan(found: Estimate, asked: ValidationPlan, lang: Lang) -> str:
    """Size and time, and what so many draws can find."""
    parts = [plan_line(found, lang)]
    tokens = asked.tokens_per_arm
    key, kind = ("validate_can", "info") if tokens >= CERTIFYING_TOKENS else ("validate_cannot", "warn")
    parts.append(paragraph(say(lang, key, tokens=f"{tokens:,}", needed=f"{CERTIFYING_TOKENS:,}"), kind))
    power = power_at(tokens)
    if power:
        rows = "".join(
            f"<li><span>{html.escape(say(lang, _fault(name)))}</span><b>{share:.0%}</b></li>" for name, share in power
        )
        head = html.escape(say(lang, "validate_power"))
        parts.append(f'<details class="sd-power"><summary>{head}</summary><ul>{rows}</ul></details>')
    return "".join(parts)


def _fault(name: str) -> str:
    """The key of a named defect's words."""
    plain = "".join(c if c.isalnum() else "_" for c in name.lower())
    return "validate_fault_" + "_".join(part for part in plain.split("_") if part)


def progress(job: ValidationJob, lang: Lang, *, mine: bool) -> str:
    """How far it is."""
    if not job.live:
        if job.error:
            return paragraph(told(job.error, lang), "error")
        done = job.result.rounds if job.result else 0
        return paragraph(say(lang, "validate_done", rounds=done, of=job.plan.draws), "done")
    known = job.progress
    if job.state == "waiting" or known is None:
        words, value = say(lang, "bench_waiting" if job.state == "waiting" else "validate_beginning"), ""
    else:
        words = say(
            lang, "validate_progress", rounds=known.rounds, of=known.planned, sequences=f"{known.sequences:,}",
            elapsed=spell(known.elapsed_s, lang),
        )  # fmt: skip
        value = f' value="{known.rounds / known.planned:.4f}"'
        if job.left_s is not None:
            words += " " + say(lang, "bench_left", time=spell(job.left_s, lang))
        if job.state == "stopping":
            words = say(lang, "validate_stopping") + " " + words
    if not mine:
        words += " " + say(lang, "bench_not_yours")
    label = html.escape(words)
    return (
        f'<div class="sd-job" data-state="{job.state}"><progress max="1"{value} aria-label="{label}"></progress>'
        f'<p role="status" dir="auto">{label}</p></div>'
    )


def result(found: ValidationResult, name: str, lang: Lang) -> str:
    """The verdict, the evidence behind it, and the files to take home."""
    links = files(f"validations/{quote(name)}/report", ("html", "md", "json"), lang)
    body = report_html.fragment(validation_document(found, lang))
    mood = {"consistent": "good", "differs": "bad"}.get(found.verdict.word, "warn")
    word = html.escape(say(lang, f"validate_word_{found.verdict.word}"))
    missing = "".join(f"<li>{html.escape(speaker(lang).told(text))}</li>" for text in found.verdict.missing)
    how = say(
        lang, "validate_how", rounds=found.rounds, of=found.plan.draws, prompts=len(found.plan.prompts),
        tokens=found.plan.tokens, seed=found.plan.seed, time=spell(found.seconds, lang),
        method=say(lang, f"validate_method_{found.method}"),
    )  # fmt: skip
    lacking = f"<ul>{missing}</ul>" if missing else ""
    return (
        f'<article class="sd-report" data-verdict="{found.verdict.word}"><p class="lead {mood}">{word}</p>{body}'
        f'{lacking}<p class="sd-foot">{html.escape(how)}</p>{links}</article>'
    )


def drawings(standard: Sequence[ArmScore], speculative: Sequence[ArmScore], lang: Lang) -> Drawings:
    """Both engines under each setting, with what is tolerated as a band."""
    heat, top = [], []
    for side, arms, colour in (
        ("standard", standard, plots.STANDARD),
        ("speculative", speculative, plots.SPECULATIVE),
    ):
        for arm in arms:
            name = f"{say(lang, f'validate_setting_{arm.config}')} · {say(lang, f'side_{side}')}"
            heat += _bar(name, arm.temperature, colour)
            top += _bar(name, arm.top1, colour)
    return (
        plots.forest(
            sorted(heat, key=lambda bar: bar.label), say(lang, "validate_plot_temperature"),
            say(lang, "validate_axis_temperature"), log=False,
            band=(1 - TEMPERATURE_WITHIN, 1 + TEMPERATURE_WITHIN),
        ),
        plots.forest(
            sorted(top, key=lambda bar: bar.label), say(lang, "validate_plot_top1"), say(lang, "validate_axis_top1"),
            log=False,
            band=(1 - TOP1_WITHIN, 1 + TOP1_WITHIN),
        ),
    )  # fmt: skip


def _bar(name: str, found: Component, colour: str) -> list[plots.Bar]:
    if found.effect is None or found.half_width is None:
        return []
    value = 1 + found.effect
    low, high = value - found.half_width, value + found.half_width
    return [plots.Bar(name, value, low, high, f"{value:.3f} ({low:.3f} – {high:.3f})", colour)]
