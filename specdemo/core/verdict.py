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
from specdemo.core.comparability import other_prompts
from specdemo.core.compare import OWN_END, Comparison, LiveVerdict, common_prefix, compare_ids, compare_text
from specdemo.core.gap import Gap
from specdemo.core.outcome import Outcome, chunk_tokens
from specdemo.core.prompt import Prompt
from specdemo.core.results import Acceptance, Check, Verdict, VerdictClass, VerdictToken
from specdemo.core.run import Probe
from specdemo.core.sentences import sentence
from specdemo.core.tolerance import Tolerance, tolerance

__all__ = ["LiveVerdict", "judge"]

Level = Literal["ids", "text"]

SUSPICIOUS = 2.0
"""A gap of up to this many tolerances is a difference that a repeat may explain; beyond it, none will."""


MERGED = 2
"""More gathered tokens than so many times the standard side's are drafts: a busy server merges steps on both."""


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
    speculating: bool | None = None,
    others: bool = False,
) -> Verdict:
    """The verdict on one pair. ``acceptance`` (of the speculative side) tells whether anything was drafted.

    A "block" among ``checks`` forbids the claim. ``limit`` is the near-tie tolerance; by default that of an unknown
    number format. ``control`` means that both sides are the standard engine. ``speculating`` is what the speculative
    engine says of itself, None if it says nothing. ``others``: it served other requests meanwhile.
    """
    drafted = _drafted(standard, speculative, acceptance, speculating, others=others)
    pair = _Pair(standard, speculative, prompt, probe, limit or tolerance(None), drafted, control)
    verdict = _refused(pair, checks) or _compared(pair)
    return replace(verdict, remarks=(*verdict.remarks, *_recheck(probe)))


def _drafted(
    standard: Outcome,
    speculative: Outcome,
    acceptance: Acceptance | None,
    speculating: bool | None,
    *,
    others: bool = False,
) -> bool | None:
    """Whether the target had any draft to judge. None if nothing tells.

    Bursts tell it, unless the engine says that it does not speculate or the standard one sent nearly as many: a server
    that falls behind its engine puts the tokens of several steps into one chunk. Counters of the whole engine tell it
    only where nobody else drafted.
    """
    counted = None
    if acceptance is not None:
        counted = acceptance.drafted if acceptance.drafting_steps is None else acceptance.drafting_steps
        if counted is not None and acceptance.source == "request":
            return counted > 0
    if speculating is not False and _gathered(speculative) > MERGED * _gathered(standard):
        return True
    if counted and others:
        return None
    if counted is not None:
        return counted > 0
    return False if speculating is False else None


def _gathered(side: Outcome) -> int:
    """Tokens beyond one a chunk."""
    return sum(max(0, chunk_tokens(chunk) - 1) for chunk in side.chunks)


# ---------------------------------------------------------------- no verdict possible


def _refused(pair: _Pair, checks: Sequence[Check]) -> Verdict | None:
    """Why no identity claim can be made, in order of weight."""
    at = _shared(pair.standard, pair.speculative)
    for check in checks:
        if check.level == "block":
            return _not_comparable(
                sentence("not_comparable", why=check.detail), compared=at, position=_parting(pair, at)
            )
    if not pair.prompt.greedy:
        return _not_comparable(sentence("random", temperature=pair.prompt.sampling.temperature))
    different = other_prompts(pair.standard, pair.speculative)
    if different is not None:
        return _not_comparable(different, compared=at, position=_parting(pair, at))
    return _unfinished(pair)


def _parting(pair: _Pair, at: int) -> int | None:
    """Where two greedy outputs part, if they do: a fact that stands even where no claim is made of it."""
    left, right = pair.standard, pair.speculative
    if not pair.prompt.greedy or at >= min(len(left.ids or ()), len(right.ids or ())):
        return None
    if left.state != "finished" or right.state != "finished":
        return at
    told = compare_ids(left, right, limit=pair.prompt.sampling.max_tokens)
    return at if told.kind == "split" and not (left.ids_lost or right.ids_lost) else None


def _not_comparable(
    reason: str, *, compared: int = 0, level: Level = "ids", position: int | None = None, remarks: tuple[str, ...] = ()
) -> Verdict:
    return Verdict("not_comparable", reason, position=position, compared=compared, level=level, remarks=remarks)


def _shared(standard: Outcome, speculative: Outcome) -> int:
    """Leading tokens that are equal; 0 where a side has no ids."""
    return common_prefix(standard.ids or (), speculative.ids or ())


def _unfinished(pair: _Pair) -> Verdict | None:
    sides = [side for side in (pair.standard, pair.speculative) if side.state != "finished"]
    if not sides:
        return None
    said = " and ".join(_ending(side) for side in sides)
    if pair.standard.ids is None or pair.speculative.ids is None:
        return _not_comparable(sentence("unfinished_text", said=said), level="text")
    at = _shared(pair.standard, pair.speculative)
    if at < min(len(pair.standard.ids), len(pair.speculative.ids)):
        reason = sentence("unfinished_parted", said=said, position=at + 1)
        return _not_comparable(reason, compared=at, position=at)
    return _not_comparable(sentence("unfinished_match", said=said, count=at), compared=at)


def _ending(side: Outcome) -> str:
    after = sentence("part_after", count=len(side.ids)) if side.ids is not None else ""
    broken = side.failure is not None and side.failure.kind == "interrupted"
    return sentence(f"part_{'interrupted' if broken else side.state}", side=side.side, after=after)


# ---------------------------------------------------------------- a finished, greedy pair


def _compared(pair: _Pair) -> Verdict:
    left, right = pair.standard, pair.speculative
    if left.ids is None or right.ids is None:
        return _by_text(pair, _why_text(pair))
    result = compare_ids(left, right, limit=pair.prompt.sampling.max_tokens)
    if result.kind in ("split", "ended") and (left.ids_lost or right.ids_lost):
        return _by_text(pair, (*_lost(pair), sentence("so_by_text")))
    if result.kind in ("split", "ended") and (left.unnumbered or right.unnumbered) and _same_text(pair):
        # Surplus ids behind a stop can hide from the count that others are missing.
        return _by_text(pair, (sentence("ids_lost"), sentence("so_by_text")))
    remarks = (*result.remarks, *_lost(pair), *_finish_reasons(pair))
    if result.kind == "equal" and (_unseen(left) or _unseen(right)):
        return _not_comparable(sentence("unseen", equal=result.at), compared=result.at, remarks=remarks)
    if result.kind == "equal":
        shown = () if _same_text(pair) else (sentence("same_tokens"),)  # a server cut the text at another place
        return _equal(pair, result.at, "tokens", (*remarks, *shown))
    if result.kind == "short":
        return _shorter(pair, result.at, remarks)
    return _split(pair, result, remarks)


def _unseen(side: Outcome) -> bool:
    """Whether more is missing than the id of the stop token, which some servers count and do not send."""
    return side.ids_lost > (1 if side.finish_reason in OWN_END else 0)


def _why_text(pair: _Pair) -> tuple[str, ...]:
    """Why texts are compared: no ids at all on a side, or not all of them."""
    without = [side for side in (pair.standard, pair.speculative) if side.ids is None]
    if any(not side.received for side in without):
        return (sentence("by_text"),)
    return (*_lost(pair), sentence("ids_lost"), sentence("so_by_text"))


def _lost(pair: _Pair) -> tuple[str, ...]:
    return tuple(
        sentence(
            "delivered_less", side=side.side, reported=side.finished.usage.completion_tokens, received=side.received
        )
        for side in (pair.standard, pair.speculative)
        if side.ids_lost and side.finished and side.finished.usage
    )


def _finish_reasons(pair: _Pair) -> tuple[str, ...]:
    left, right = pair.standard.finish_reason, pair.speculative.finish_reason
    if left == right:
        return ()
    return (sentence("finish_reasons", left=left or "none", right=right or "none"),)


def _equal(pair: _Pair, count: int, unit: str, remarks: tuple[str, ...]) -> Verdict:
    level: Level = "ids" if unit == "tokens" else "text"
    compared = count if unit == "tokens" else 0
    if not count:
        return _verdict("not_tested", sentence("both_empty"), compared, level, remarks)
    if pair.drafted is False and not pair.control:
        reason = sentence(f"empty_test_{unit}", count=count)
        return _verdict("not_tested", reason, compared, level, remarks)
    if pair.drafted is None and not pair.control:
        remarks = (*remarks, sentence("drafts_unknown"))
    if {pair.standard.finish_reason, pair.speculative.finish_reason} == {"length"}:
        reason = sentence(f"limit_{unit}", count=count)
        return _verdict("identical_to_limit", reason, compared, level, remarks)
    return _verdict("identical", sentence(f"equal_{unit}", count=count), compared, level, remarks)


def _verdict(cls: VerdictClass, reason: str, compared: int, level: Level, remarks: tuple[str, ...]) -> Verdict:
    return Verdict(cls, reason, compared=compared, level=level, remarks=remarks)


def _shorter(pair: _Pair, at: int, remarks: tuple[str, ...]) -> Verdict:
    left, right = len(pair.standard.ids or ()), len(pair.speculative.ids or ())
    side, count, other = ("standard", left, right) if left < right else ("speculative", right, left)
    reason = sentence("shorter", side=side, count=count, other=other, equal=at)
    return _verdict("not_comparable", reason, at, "ids", remarks)


def _by_text(pair: _Pair, remarks: tuple[str, ...]) -> Verdict:
    result = compare_text(pair.standard, pair.speculative)
    remarks = (*remarks, *_finish_reasons(pair))
    if result.kind == "equal":
        return _equal(pair, result.at, "characters", remarks)
    if result.kind == "short":
        reason = sentence("shorter_text", equal=result.at)
        return _verdict("not_comparable", reason, 0, "text", remarks)
    reason = sentence("texts_differ", position=result.at + 1)
    return _verdict("different", reason, 0, "text", (*remarks, *_undrafted(pair)))


def _same_text(pair: _Pair) -> bool:
    left, right = pair.standard, pair.speculative
    return left.text == right.text and left.reasoning == right.reasoning


def _undrafted(pair: _Pair) -> tuple[str, ...]:
    if pair.drafted is False and not pair.control:
        return (sentence("no_drafts_no_cause"),)
    return ()


def _split(pair: _Pair, result: Comparison, remarks: tuple[str, ...]) -> Verdict:
    at = result.at
    found = gaps.measure(pair.standard, pair.speculative, at, pair.probe)
    if _same_text(pair):
        remarks = (*remarks, sentence("same_text"))
    cls, why = _weigh(found, pair.limit)
    if found.error:
        remarks = (*remarks, found.error)
    return Verdict(
        cls="near_tie" if cls == "near_tie" else "different",
        reason=sentence(
            "split_control" if pair.control else "split",
            position=at + 1,
            ours=_quoted(found.standard),
            theirs=_quoted(found.speculative),
            why=why,
        ),
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
        return sentence("part_ended")
    return sentence("part_quoted", text=token.text) if token.text else sentence("part_no_text", id=token.id)


def _weigh(found: Gap, limit: Tolerance) -> tuple[str, str]:
    """near_tie or different, with the sentence that says why."""
    span: dict[str, object] = {"limit": limit.nats, "source": limit.source}
    if found.nats is None:
        if found.at_least is not None and found.at_least > limit.nats:
            return "different", sentence("gap_at_least", nats=found.at_least, listed=found.listed, **span)
        return "different", sentence("gap_unknown")
    nats = found.nats
    if found.flipped and found.nats <= SUSPICIOUS * limit.nats:
        return "near_tie", sentence("gap_flipped", nats=nats)
    if found.flipped:
        return "different", sentence("gap_flipped_far", nats=nats, **span)
    if found.nats <= limit.nats and found.top_two:
        return "near_tie", sentence("gap_tie", nats=nats, **span)
    if found.nats <= limit.nats:
        return "different", sentence("gap_not_top", nats=nats)
    if found.nats <= SUSPICIOUS * limit.nats:
        return "different", sentence("gap_suspicious", nats=nats, **span)
    return "different", sentence("gap_real", nats=nats, **span)


def _recheck(probe: Probe | None) -> tuple[str, ...]:
    if probe is None or probe.recheck_top_share is None or probe.recheck_positions is None:
        return ()
    share, count = probe.recheck_top_share, probe.recheck_positions
    if probe.recheck_largest_gap is None:
        return (sentence("recheck", share=share, count=count),)
    return (sentence("recheck_gap", share=share, count=count, nats=probe.recheck_largest_gap),)
