"""Evidence of both arms → one corrected verdict: consistent, differs, or not enough data. Pure.

differs      three violations or more, or a component that is significant (Holm over components and settings, family
             level 1 %) and whose effect is large; or the engine died
consistent   nothing of the kind, enough tokens, every temperature interval within 5 %, every top-1 interval within 3
             points, and drafts tried at 30 % of the tokens or more
else         not enough data: twice as many draws may decide

Both must be met because engines in half precision differ by rounding, which is significant at some sample size but
never large. The standard arm is scored too: if it fails, the reference or this test is wrong and arm B gets no verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from specdemo.bench.distributions import holm
from specdemo.bench.sampling.duplicates import Duplicates
from specdemo.bench.sampling.scoring import ArmScore, Component
from specdemo.bench.sampling.tree import TreeTest

Word = Literal["consistent", "differs", "not_enough_data", "invalid"]

LARGE = {"temperature": 0.03, "top1": 0.015, "pit": 0.03, "leak": 0.02}
"""Effects above these are large: relative temperature, points of probability, Cramer's V, points of probability."""
TEMPERATURE_WITHIN = 0.05
TOP1_WITHIN = 0.03
DRAFTED_SHARE = 0.30
MOST_VIOLATIONS = 2
CERTIFYING_TOKENS = 5_000
"""Fewer scored tokens per setting than this can find a fault but never certify."""

POWER_TOKENS = (1_280, 2_560, 5_120, 10_240, 20_480)
POWER: dict[str, tuple[float, float, float, float, float]] = {
    "temperature x 0.95": (0.08, 0.50, 0.92, 1.0, 1.0),
    "temperature x 0.9": (0.83, 1.0, 1.0, 1.0, 1.0),
    "temperature x 1.1": (0.52, 0.88, 1.0, 1.0, 1.0),
    "top_p ignored": (1.0, 1.0, 1.0, 1.0, 1.0),
    "top_k ignored": (1.0, 1.0, 1.0, 1.0, 1.0),
    "residual keeps the draft": (1.0, 1.0, 1.0, 1.0, 1.0),
    "acceptance +10 %": (0.37, 0.73, 1.0, 1.0, 1.0),
    "acceptance +5 %": (0.05, 0.13, 0.42, 0.35, 0.25),
    "no fault (false alarm)": (0.01, 0.03, 0.01, 0.01, 0.0),
}
"""Simulated share of "differs" by tokens an arm, drafts known and tried at half of the tokens; next-token
distributions of a small model at temperature 0.8, top_p 0.95, top_k 50. An acceptance 5 % too high lies below the
2-point tolerance by design."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One component of one setting after correction. ``decides``: significant and large."""

    config: str
    component: Component
    adjusted_p: float | None
    decides: bool


@dataclass(frozen=True, slots=True)
class SamplingVerdict:
    """The word, one sentence, and all that it rests on. ``controls`` are the standard arm's findings."""

    word: Word
    sentence: str
    findings: tuple[Finding, ...] = ()
    controls: tuple[Finding, ...] = ()
    missing: tuple[str, ...] = ()
    power: tuple[tuple[str, float], ...] = ()


def power_at(tokens: int) -> tuple[tuple[str, float], ...]:
    """The named defects with their power at the largest tabulated size that ``tokens`` reaches (empty below all)."""
    column = max((i for i, size in enumerate(POWER_TOKENS) if tokens >= size), default=None)
    return () if column is None else tuple((name, row[column]) for name, row in POWER.items())


def findings(arms: Sequence[ArmScore], alpha: float) -> tuple[Finding, ...]:
    """Every component of every setting, corrected as one family."""
    listed = [(arm.config, component) for arm in arms for component in arm.components if component.p is not None]
    adjusted = holm([component.p for _, component in listed if component.p is not None])
    return tuple(
        Finding(config, component, p, p < alpha and abs(component.effect or 0.0) > LARGE[component.name])
        for (config, component), p in zip(listed, adjusted, strict=True)
    )


def judge(
    standard: Sequence[ArmScore],
    speculative: Sequence[ArmScore],
    *,
    alpha: float = 0.01,
    died: str | None = None,
    repeats: Sequence[Duplicates] = (),
    drafted: Mapping[str, float] | None = None,
) -> SamplingVerdict:
    """The verdict by reference scoring.

    ``died`` is the last line of a speculative engine that was lost on the way. ``drafted`` is the engine's own share of
    tokens at which a draft was tried, by setting, for methods whose drafts can't be recomputed.
    """
    control, tested = findings(standard, alpha), findings(speculative, alpha)
    tokens = min((arm.tokens for arm in speculative), default=0)
    word, text, missing = _decide(standard, speculative, (control, tested), died, repeats, drafted or {})
    return SamplingVerdict(word, text, tested, control, missing, power_at(tokens))


def _decide(
    standard: Sequence[ArmScore],
    speculative: Sequence[ArmScore],
    found: tuple[Sequence[Finding], Sequence[Finding]],
    died: str | None,
    repeats: Sequence[Duplicates],
    drafted: Mapping[str, float],
) -> tuple[Word, str, tuple[str, ...]]:
    broken = _fault(standard, found[0])
    if broken is not None:
        return "invalid", f"The standard engine fails its own check ({broken}): nothing is said about the other.", ()
    fault = _fault(speculative, found[1])
    if fault is not None:
        return "differs", f"The speculative engine samples differently: {fault}.", ()
    if died is not None:
        return "differs", f"The speculative engine died while sampling: {died}", ()
    if any(pair.suspicious for pair in repeats):
        return "invalid", "Sequences repeat too often: seeds may be shared, so the draws are no evidence.", ()
    missing = tuple(_missing(speculative, drafted))
    if missing:
        return "not_enough_data", f"No fault was found, but that is not enough to certify: {missing[0]}.", missing
    names = ", ".join(arm.config for arm in speculative)
    tokens = min(arm.tokens for arm in speculative)
    text = f"Sampling is consistent with the standard engine's distribution ({names}; {tokens:,} tokens or more each)."
    return "consistent", text, ()


def _fault(arms: Sequence[ArmScore], found: Sequence[Finding]) -> str | None:
    for arm in arms:
        if arm.violations > MOST_VIOLATIONS:
            return f"{arm.violations} of {arm.tokens:,} tokens are forbidden by top_k or top_p ({arm.config})"
    deciding = [finding for finding in found if finding.decides]
    if not deciding:
        return None
    worst = min(deciding, key=lambda finding: finding.adjusted_p if finding.adjusted_p is not None else 1.0)
    return _words(worst, next(arm for arm in arms if arm.config == worst.config))


def _words(finding: Finding, arm: ArmScore) -> str:
    component, effect = finding.component, finding.component.effect or 0.0
    size = f"z = {component.z:.1f}, corrected p = {finding.adjusted_p:.2g}, setting {finding.config}"
    if component.name == "temperature" and arm.effective_temperature is not None:
        return f"its effective temperature is {arm.effective_temperature:.3f}, {effect:+.1%} off ({size})"
    if component.name == "temperature":
        return f"its effective temperature is far above the one asked for ({size})"
    if component.name == "top1":
        return f"the likeliest token is drawn {_off(effect)} ({size})"
    if component.name == "leak":
        return f"drafted tokens are drawn {_off(effect)} ({size})"
    return f"the drawn tokens do not follow the distribution (Cramer's V {effect:.3f}; {size})"


def _off(effect: float) -> str:
    return f"{abs(effect) * 100:.1f} points too {'often' if effect > 0 else 'seldom'}"


def _missing(arms: Sequence[ArmScore], drafted: Mapping[str, float]) -> list[str]:
    found = []
    if not arms:
        return ["no setting was scored"]
    for arm in arms:
        where = f"setting {arm.config}"
        if arm.tokens < CERTIFYING_TOKENS:
            found.append(f"{arm.tokens:,} scored tokens, {CERTIFYING_TOKENS:,} are needed ({where})")
        if arm.skipped > arm.tokens:
            found.append(f"most positions could not be scored from the listed candidates ({where})")
        if not _within(arm.temperature, TEMPERATURE_WITHIN):
            found.append(f"the temperature is known to ±{_width(arm.temperature):.1%} only ({where})")
        if not _within(arm.top1, TOP1_WITHIN):
            found.append(f"the top-1 share is known to ±{_width(arm.top1):.1%} only ({where})")
        share = drafted.get(arm.config, arm.drafted_share)
        if share is None or share < DRAFTED_SHARE:
            found.append(
                f"drafts were tried at {share or 0.0:.0%} of the tokens, {DRAFTED_SHARE:.0%} are needed ({where}); "
                "use prompts that repeat themselves"
            )
    return found


def _within(component: Component, margin: float) -> bool:
    if component.effect is None or component.half_width is None:
        return False
    return abs(component.effect) + component.half_width <= margin


def _width(component: Component) -> float:
    return abs(component.effect or 0.0) + (component.half_width if component.half_width is not None else 1.0)


def judge_tree(test: TreeTest, control: TreeTest | None, *, alpha: float = 0.01) -> SamplingVerdict:
    """The verdict by the fallback. It can find a difference; it never certifies, since it has no measure of size."""
    if test.p is None:
        return SamplingVerdict("not_enough_data", "No prefix is shared often enough to compare the arms.")
    if control is not None and control.p is not None and control.p < alpha:
        text = f"The standard engine differs from itself (p = {control.p:.3g}), so nothing is said about the other."
        return SamplingVerdict("invalid", text)
    if test.p < alpha:
        worst = min(test.by_prompt, key=lambda pair: pair[1])
        text = f"The arms continue shared prefixes differently (p = {test.p:.3g} by permutation, most on {worst[0]})."
        return SamplingVerdict("differs", text)
    text = f"No difference was found (p = {test.p:.3g} by permutation over {test.nodes} shared prefixes)."
    return SamplingVerdict("not_enough_data", text, missing=("this test can find a difference but not certify",))
