"""The greedy identity verdict: do both engines write the same tokens, and if not, is it rounding or a real difference?

Only a finished, greedy pair on the same prompt can be judged, and only if something was drafted. At the first split one
question to the standard engine (a probe) tells how close the two candidates were; texts are different problems after a
split, so later differences are never counted. Positions count output tokens from 0; sentences count from 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from specdemo.core import gap as gaps
from specdemo.core.compare import Comparison, LiveVerdict, common_prefix, compare_ids, compare_text
from specdemo.core.gap import Gap
from specdemo.core.outcome import Outcome
from specdemo.core.prompt import Prompt
from specdemo.core.results import Acceptance, Check, Verdict, VerdictClass, VerdictToken
from specdemo.core.run import Probe
from specdemo.core.tolerance import Tolerance, tolerance

__all__ = ["LiveVerdict", "judge"]

Level = Literal["ids", "text"]

SUSPICIOUS = 2.0
"""A gap of up to this many tolerances is a difference that a repeat may explain; beyond it, none will."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """What :func:`judge` was given, passed along."""

    standard: Outcome
    speculative: Outcome
    prompt: Prompt
    probe: Probe | None
    limit: Tolerance
    drafted: bool | None
    control: bool

    @property
    def second(self) -> str:
        """What to call the second side in a sentence."""
        return "second standard run" if self.control else "speculative engine"


def judge(
    standard: Outcome,
    speculative: Outcome,
    prompt: Prompt,
    *,
    checks: Sequence[Check] = (),
    probe: Probe | None = None,
    acceptance: Acceptance | None = None,
    limit: Tolerance | None = None,
    control: bool = False,
) -> Verdict:
    """The verdict on one pair. ``acceptance`` (of the speculative side) tells whether anything was drafted.

    A "block" among ``checks`` forbids the claim. ``limit`` is the near-tie tolerance; by default that of an unknown
    number format. ``control`` means that both sides are the standard engine.
    """
    pair = _Pair(
        standard, speculative, prompt, probe, limit or tolerance(None), _drafted(speculative, acceptance), control
    )
    verdict = _refused(pair, checks) or _compared(pair)
    return replace(verdict, remarks=(*verdict.remarks, *_recheck(probe)))


def _drafted(speculative: Outcome, acceptance: Acceptance | None) -> bool | None:
    """Whether the target had any draft to judge; a burst proves it. None if nothing tells."""
    if acceptance is not None and acceptance.drafting_steps is not None and acceptance.source == "request":
        return acceptance.drafting_steps > 0
    if any(len(chunk.ids) > 1 for chunk in speculative.chunks):
        return True
    if acceptance is not None and acceptance.drafting_steps is not None:
        return acceptance.drafting_steps > 0
    return None


# ---------------------------------------------------------------- no verdict possible


def _refused(pair: _Pair, checks: Sequence[Check]) -> Verdict | None:
    """Why no identity claim can be made, in order of weight."""
    at = _shared(pair.standard, pair.speculative)
    for check in checks:
        if check.level == "block":
            return _not_comparable(f"Not comparable: {check.detail}", compared=at, position=_parting(pair, at))
    if not pair.prompt.greedy:
        reason = (
            f"At temperature {pair.prompt.sampling.temperature:g} both engines draw at random, so equal tokens are not "
            "to be expected; compare distributions over many draws instead."
        )
        return _not_comparable(reason)
    different = _different_prompts(pair)
    if different is not None:
        return _not_comparable(different, compared=at, position=_parting(pair, at))
    return _unfinished(pair)


def _parting(pair: _Pair, at: int) -> int | None:
    """Where two greedy outputs part, if they do: a fact that stands even where no claim is made of it."""
    shorter = min(len(pair.standard.ids or ()), len(pair.speculative.ids or ()))
    return at if pair.prompt.greedy and at < shorter else None


def _not_comparable(reason: str, *, compared: int = 0, level: Level = "ids", position: int | None = None) -> Verdict:
    return Verdict("not_comparable", reason, position=position, compared=compared, level=level)


def _shared(standard: Outcome, speculative: Outcome) -> int:
    """Leading tokens that are equal; 0 where a side has no ids."""
    return common_prefix(standard.ids or (), speculative.ids or ())


def _different_prompts(pair: _Pair) -> str | None:
    left, right = pair.standard, pair.speculative
    ids = [side.finished.prompt_token_ids if side.finished else None for side in (left, right)]
    if ids[0] is not None and ids[1] is not None:
        if ids[0] == ids[1]:
            return None
        at = common_prefix(ids[0], ids[1])
        return (
            f"The engines did not see the same prompt: {len(ids[0])} and {len(ids[1])} prompt tokens, "
            f"different from prompt token {at + 1} on."
        )
    sizes = left.prompt_size, right.prompt_size
    if None not in sizes and sizes[0] != sizes[1]:
        return f"The engines did not see the same prompt: {sizes[0]} and {sizes[1]} prompt tokens."
    return None


_ENDINGS = {
    "waiting": "has not started",
    "running": "is still writing",
    "cancelled": "was stopped",
    "failed": "failed",
}


def _unfinished(pair: _Pair) -> Verdict | None:
    sides = [side for side in (pair.standard, pair.speculative) if side.state != "finished"]
    if not sides:
        return None
    said = " and ".join(_ending(side) for side in sides)
    if pair.standard.ids is None or pair.speculative.ids is None:
        return _not_comparable(f"Cannot decide: {said}.", level="text")
    at = _shared(pair.standard, pair.speculative)
    if at < min(len(pair.standard.ids), len(pair.speculative.ids)):
        reason = f"Cannot decide: {said}; the outputs part at output token {at + 1}."
        return _not_comparable(reason, compared=at, position=at)
    return _not_comparable(f"Cannot decide: {said}; the first {at} tokens match.", compared=at)


def _ending(side: Outcome) -> str:
    count = f" after {len(side.ids)} tokens" if side.ids is not None else ""
    verb = _ENDINGS[side.state]
    if side.failure is not None and side.failure.kind == "interrupted":
        verb = "was interrupted"
    return f"the {side.side} stream {verb}{count}"


# ---------------------------------------------------------------- a finished, greedy pair


def _compared(pair: _Pair) -> Verdict:
    left, right = pair.standard, pair.speculative
    if left.ids is None or right.ids is None:
        return _by_text(pair, ("A server sent no token ids: texts were compared, and no token position is claimed.",))
    result = compare_ids(left, right, limit=pair.prompt.sampling.max_tokens)
    if result.kind in ("split", "ended") and (left.ids_lost or right.ids_lost):
        return _by_text(pair, (*_lost(pair), "So texts were compared, and no token position is claimed."))
    remarks = (*result.remarks, *_lost(pair), *_finish_reasons(pair))
    if result.kind == "equal":
        return _equal(pair, result.at, "tokens", remarks)
    if result.kind == "short":
        return _shorter(pair, result.at, remarks)
    return _split(pair, result, remarks)


def _lost(pair: _Pair) -> tuple[str, ...]:
    return tuple(
        f"The {side.side} server reported {side.finished.usage.completion_tokens} tokens and delivered {len(side.ids)}."
        for side in (pair.standard, pair.speculative)
        if side.ids_lost and side.finished and side.finished.usage and side.ids is not None
    )


def _finish_reasons(pair: _Pair) -> tuple[str, ...]:
    left, right = pair.standard.finish_reason, pair.speculative.finish_reason
    if left == right:
        return ()
    return (f"Finish reasons differ: standard {left or 'none'}, speculative {right or 'none'}.",)


def _equal(pair: _Pair, count: int, unit: str, remarks: tuple[str, ...]) -> Verdict:
    level: Level = "ids" if unit == "tokens" else "text"
    compared = count if unit == "tokens" else 0
    if pair.drafted is False and not pair.control:
        reason = f"Nothing was tested: no drafts were proposed (nothing to look up). All {count} {unit} are equal."
        return _verdict("not_tested", reason, compared, level, remarks)
    if pair.drafted is None and not pair.control:
        remarks = (*remarks, "The engine does not tell whether drafts were proposed, so the test may be empty.")
    if {pair.standard.finish_reason, pair.speculative.finish_reason} == {"length"}:
        reason = f"All {count} {unit} are equal, up to the length limit."
        return _verdict("identical_to_limit", reason, compared, level, remarks)
    return _verdict("identical", f"All {count} {unit} are equal.", compared, level, remarks)


def _verdict(cls: VerdictClass, reason: str, compared: int, level: Level, remarks: tuple[str, ...]) -> Verdict:
    return Verdict(cls, reason, compared=compared, level=level, remarks=remarks)


def _shorter(pair: _Pair, at: int, remarks: tuple[str, ...]) -> Verdict:
    left, right = len(pair.standard.ids or ()), len(pair.speculative.ids or ())
    side, count, other = ("standard", left, right) if left < right else ("speculative", right, left)
    reason = f"Cannot decide: the {side} output is shorter ({count} of {other} tokens); the first {at} tokens match."
    return _verdict("not_comparable", reason, at, "ids", remarks)


def _by_text(pair: _Pair, remarks: tuple[str, ...]) -> Verdict:
    result = compare_text(pair.standard, pair.speculative)
    remarks = (*remarks, *_finish_reasons(pair))
    if result.kind == "equal":
        return _equal(pair, result.at, "characters", remarks)
    if result.kind == "short":
        reason = f"Cannot decide: one text is shorter; the first {result.at} characters match."
        return _verdict("not_comparable", reason, 0, "text", remarks)
    reason = f"The texts differ from character {result.at + 1} on; how close the choice was is unknown without ids."
    return _verdict("different", reason, 0, "text", (*remarks, *_undrafted(pair)))


def _undrafted(pair: _Pair) -> tuple[str, ...]:
    if pair.drafted is False and not pair.control:
        return ("No drafts were proposed, so speculation cannot be the cause.",)
    return ()


def _split(pair: _Pair, result: Comparison, remarks: tuple[str, ...]) -> Verdict:
    at = result.at
    found = gaps.measure(pair.standard, pair.speculative, at, pair.probe)
    if pair.standard.text == pair.speculative.text and pair.standard.reasoning == pair.speculative.reasoning:
        remarks = (*remarks, "Same text, different tokens.")
    where = (
        f"First difference at output token {at + 1}: standard {_quoted(found.standard)}, "
        f"{pair.second} {_quoted(found.speculative)}"
    )
    cls, why = _weigh(found, pair.limit)
    if found.error:
        remarks = (*remarks, found.error)
    return Verdict(
        cls="near_tie" if cls == "near_tie" else "different",
        reason=f"{where}. {why}",
        position=at,
        standard_token=_shown(found.standard),
        speculative_token=_shown(found.speculative),
        gap_nats=found.nats,
        tolerance_nats=pair.limit.nats,
        compared=at,
        remarks=(*remarks, *_undrafted(pair)),
    )


def _shown(token: VerdictToken) -> VerdictToken | None:
    """A side that ended has no token to show."""
    return None if token.id is None and not token.text else token


def _quoted(token: VerdictToken) -> str:
    if token.id is None and not token.text:
        return "ended"
    return f"“{token.text}”" if token.text else f"token {token.id} (no text)"


def _weigh(found: Gap, limit: Tolerance) -> tuple[str, str]:
    """near_tie or different, with the sentence that says why."""
    span = f"{limit.nats:g} nats ({limit.source})"
    if found.nats is None:
        if found.at_least is not None and found.at_least > limit.nats:
            return "different", (
                f"Real difference: the standard engine rates it at least {found.at_least:.3g} nats lower, "
                f"outside its best {found.listed}; the tolerance is {span}."
            )
        return "different", "The gap is unknown, so a near tie cannot be told from a real difference."
    size = f"{found.nats:.3g} nats"
    if found.flipped and found.nats <= SUSPICIOUS * limit.nats:
        return "near_tie", f"Near tie: asked again, the standard engine itself prefers the other token (by {size})."
    if found.flipped:
        return "different", (
            f"Asked again, the standard engine prefers the other token by {size}, far above the tolerance of {span}: "
            "its own streamed choice is in doubt."
        )
    if found.nats <= limit.nats and found.top_two:
        return "near_tie", f"Near tie: the two are {size} apart, within the tolerance of {span}."
    if found.nats <= limit.nats:
        return "different", f"The two are {size} apart, but the token is not among the standard engine's best two."
    if found.nats <= SUSPICIOUS * limit.nats:
        return "different", f"Suspicious: the two are {size} apart, just above the tolerance of {span}."
    return "different", f"Real difference: the two are {size} apart; the tolerance is {span}."


def _recheck(probe: Probe | None) -> tuple[str, ...]:
    if probe is None or probe.recheck_top_share is None or probe.recheck_positions is None:
        return ()
    text = (
        f"Re-check: {probe.recheck_top_share:.1%} of the {probe.recheck_positions} tokens in the speculative text are "
        "the standard engine's own first choice"
    )
    if probe.recheck_largest_gap is not None:
        text += f"; the largest gap is {probe.recheck_largest_gap:.3g} nats"
    return (text + ".",)
