"""Yes or no for CI: is the speedup shown, does nothing differ? Decided on the interval's bound, not the point. Pure.

pass   every check holds
fail   a check is violated, or could not be shown by this much data (the reason says which of the two)
error  there is no data to decide on (an engine failed)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from specdemo.bench.statistics import Interval
from specdemo.bench.summary import FAILURE_SHARE, Summary

Estimator = Literal["geometric", "totals"]


@dataclass(frozen=True, slots=True)
class GateRule:
    """What is demanded; None demands nothing. ``estimator`` chooses the suite's headline."""

    min_speedup: float | None = None
    max_mismatch: int | None = 0
    max_failed_share: float = FAILURE_SHARE
    estimator: Estimator = "geometric"


@dataclass(frozen=True, slots=True)
class GateCheck:
    """One demand, whether it holds, and why in one sentence."""

    name: str
    passed: bool
    reason: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """The decision. ``exit_code``: 0 pass, 1 fail, 3 no data."""

    word: Literal["pass", "fail", "error"]
    reason: str
    checks: tuple[GateCheck, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """What the process ends with."""
        return {"pass": 0, "fail": 1, "error": 3}[self.word]


def decide(summary: Summary, rule: GateRule, *, engine_lost: str | None = None) -> GateResult:
    """Judge a benchmark. ``engine_lost`` is the reason if its last session ended by a lost engine."""
    notes = tuple(summary.why_not_certified)
    if summary.done < summary.planned:
        notes = (f"{summary.done} of {summary.planned} planned requests were made", *notes)
    if summary.null:
        reason = "No decision: this is a null test, which never asks the speculative engine."
        return GateResult("error", reason, (), notes)
    if engine_lost is not None:
        return GateResult("error", f"No decision: {engine_lost}", (), notes)
    if summary.suite is None or summary.suite.speedup is None:
        return GateResult("error", "No decision: no prompt was measured on both engines.", (), notes)
    checks = [_failures(summary, rule)]
    if rule.min_speedup is not None:
        interval = summary.suite.speedup if rule.estimator == "geometric" else summary.suite.totals
        checks.append(_speed(interval, rule.min_speedup))
    if rule.max_mismatch is not None:
        checks.append(_identity(summary, rule.max_mismatch))
    failed = [check for check in checks if not check.passed]
    word: Literal["pass", "fail"] = "fail" if failed else "pass"
    reason = " ".join(check.reason for check in failed or checks)
    return GateResult(word, reason, tuple(checks), notes)


def _speed(interval: Interval | None, wanted: float) -> GateCheck:
    name = f"speedup at least {wanted:g}x"
    if interval is None or interval.low is None or interval.high is None:
        why = "their times differ too much" if interval and interval.n > 1 else "at least two prompts are needed"
        return GateCheck(name, False, f"The speedup has no interval: {why}.")
    found = f"{interval.estimate:.3f}x, 95 % interval {interval.low:.3f} to {interval.high:.3f}, {interval.n} prompts"
    if interval.low >= wanted:
        return GateCheck(name, True, f"Speedup of at least {wanted:g}x is shown ({found}).")
    if interval.high < wanted:
        return GateCheck(name, False, f"Speedup is below {wanted:g}x ({found}).")
    return GateCheck(name, False, f"Speedup of at least {wanted:g}x is not shown by this much data ({found}).")


def _identity(summary: Summary, most: int) -> GateCheck:
    name = f"at most {most} mismatches"
    identity = summary.identity
    if identity.word in ("not_comparable", "not_tested"):
        return GateCheck(name, False, f"Identity could not be judged: {identity.reason}")
    counts = dict(identity.classes)
    bad = sum(counts.get(kind, 0) for kind in ("mismatch", "suspicious", "unexplained"))
    found = f"{bad} of {identity.prompts} prompts differ by more than a near tie"
    if identity.mismatch_bound is not None and bad == 0:
        found += f", so at most {identity.mismatch_bound:.1%} of such prompts would (95 %)"
    return GateCheck(name, bad <= most, f"{found[0].upper()}{found[1:]}.")


def _failures(summary: Summary, rule: GateRule) -> GateCheck:
    """Over every level and the control: an engine that fails under load has failed."""
    name = f"at most {rule.max_failed_share:.0%} of requests fail"
    counted = summary.reliability
    levels = any(one.level > 1 for one in counted)
    over = [one for one in counted if one.over(rule.max_failed_share)]
    if over:
        texts = []
        for one in over:
            reasons = ", ".join(f"{count} {reason}" for reason, count in one.failures)
            where = one.where("engine", levels=levels)
            texts.append(f"{one.failed} of {one.requests} requests failed {where} ({reasons}).")
        return GateCheck(name, False, " ".join(texts))
    total = sum(one.failed for one in counted)
    return GateCheck(name, True, "No request failed." if not total else f"{total} requests failed, within the limit.")


def junit(result: GateResult, *, seconds: float, name: str = "specdemo gate") -> str:
    """JUnit XML: one test case a check; an error case when there was nothing to decide on."""
    cases = [
        f"  <testcase classname={quoteattr(name)} name={quoteattr(_clean(check.name))}>"
        + (
            f"<system-out>{escape(_clean(check.reason))}</system-out>"
            if check.passed
            else f"<failure message={quoteattr(_clean(check.reason))}/>"
        )
        + "</testcase>"
        for check in result.checks
    ]
    if result.word == "error":
        cases.append(
            f'  <testcase classname={quoteattr(name)} name="data"><error message={quoteattr(_clean(result.reason))}/>'
            "</testcase>"
        )
    failures = sum(not check.passed for check in result.checks)
    head = (
        f'<testsuite name={quoteattr(name)} tests="{len(cases)}" failures="{failures}" '
        f'errors="{int(result.word == "error")}" time="{seconds:.3f}">'
    )
    return "\n".join(['<?xml version="1.0" encoding="UTF-8"?>', head, *cases, "</testsuite>", ""])


def _clean(text: str) -> str:
    """Without the characters that XML 1.0 does not allow at all."""
    spans = ((" ", "\ud7ff"), ("\ue000", "\ufffd"), ("\U00010000", "\U0010ffff"))
    return "".join(c for c in text if c in "\t\n\r" or any(low <= c <= high for low, high in spans))
