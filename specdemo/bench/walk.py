"""A recorded run as a walk: what was proposed in each step, what the target took, what it wrote itself. Pure.

An engine tells how many tokens a step drafted and how many it took, not which ones it refused. With n-gram the drafts
follow from the token ids: they are recomputed, and used only if they give the engine's own counts in every step. A
refused token of a draft model stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specdemo.bench.sampling.drafts import Lookup
from specdemo.core.assess import assess
from specdemo.core.events import RequestSpeculation, Side, Tokens
from specdemo.core.outcome import Outcome, collect
from specdemo.core.run import RunRecord

ALWAYS = frozenset({"draft_model", "eagle", "eagle3", "mtp"})
"""Methods that draft in every decode step."""

LOOKUP = (2, 4)
"""Shortest and longest n-gram of specdemo's preset. A record does not say them; the check above does."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """One proposed token. ``text`` None: which one it was is unknown. ``taken`` None: the run ended before it."""

    text: str | None
    taken: bool | None


@dataclass(frozen=True, slots=True)
class WalkStep:
    """One pass of the target: proposals in order, then the token that it wrote itself (None: the run ended before)."""

    proposed: tuple[Proposed, ...]
    own: str | None


@dataclass(frozen=True, slots=True)
class Walk:
    """The whole run. ``start`` is the answer's first token; ``known`` tells whether refused tokens are known."""

    method: str | None
    k: int | None
    start: str
    steps: tuple[WalkStep, ...]
    known: bool


@dataclass(frozen=True, slots=True)
class _Pass:
    """One pass: index of its first output token, how many were drafted and taken, and which if that is known."""

    first: int
    drafted: int
    taken: int
    draft: tuple[int, ...] | None = None


def walk(record: RunRecord) -> Walk | None:
    """The walk; None where the record does not tell each step for certain, or nothing was drafted."""
    side = collect(record.events, Side.SPECULATIVE)
    facts = record.header.facts[1]
    texts, spec = _texts(side), side.finished.speculation if side.finished else None
    if not texts or spec is None or not spec.steps or facts is None:
        return None
    looked_up = facts.method == "ngram" and facts.k is not None
    passes = (
        _looked_up(side, spec, facts.k)
        if facts.method == "ngram" and facts.k is not None
        else _reported(record, facts.method, spec, len(texts))
    )
    if passes is None:
        return None
    names = _names(record)
    steps = tuple(_step(one, texts, names) for one in passes)
    return Walk(facts.method, facts.k, texts[0], steps, known=looked_up)


def _step(one: _Pass, texts: Sequence[str], names: Mapping[int, str]) -> WalkStep:
    shown = min(one.taken, len(texts) - one.first)
    cut = one.first + one.taken >= len(texts)
    taken = tuple(Proposed(texts[one.first + place], True) for place in range(shown))
    rest = tuple(
        Proposed(names.get(one.draft[place]) if one.draft is not None else None, None if cut else False)
        for place in range(shown, one.drafted)
    )
    return WalkStep((*taken, *rest), None if cut else texts[one.first + one.taken])


def _texts(side: Outcome) -> list[str] | None:
    """The text of each output token; None where a burst was recorded as one piece."""
    texts: list[str] = []
    for chunk in side.chunks:
        if chunk.pieces is not None and len(chunk.pieces) == len(chunk.ids):
            texts.extend(chunk.pieces)
        elif len(chunk.ids) == 1:
            texts.append(chunk.text)
        elif chunk.ids:
            return None
    return texts


def _names(record: RunRecord) -> dict[int, str]:
    """Texts of all ids that the record shows, on either side."""
    known: dict[int, str] = {}
    for event in record.events:
        if isinstance(event, Tokens) and event.pieces is not None:
            known.update((token, text) for token, text in zip(event.ids, event.pieces, strict=False) if text)
    return known


def _looked_up(side: Outcome, spec: RequestSpeculation, k: int) -> list[_Pass] | None:
    """All passes of an n-gram run from its ids; None unless they give the engine's counts, step by step."""
    prompt = side.finished.prompt_token_ids if side.finished else None
    ids = side.ids
    if not prompt or not ids or spec.accepted_per_step is None or spec.drafted_per_step is None:
        return None
    lookup, passes, at = Lookup(k, *LOOKUP), [], 1
    while at < len(ids):
        draft = lookup.draft((*prompt, *ids[:at]))
        rest = ids[at : at + len(draft)]
        taken = next((place for place, token in enumerate(rest) if token != draft[place]), len(rest))
        passes.append(_Pass(at, len(draft), taken, draft))
        at += taken + 1
    drafting = [one for one in passes if one.drafted]
    counts = [(one.drafted, one.taken) for one in drafting]
    told = list(zip(spec.drafted_per_step, spec.accepted_per_step, strict=False))
    # The engine counts drafts behind a cut; what was delivered is all that is known here.
    if counts and drafting[-1].first + counts[-1][1] >= len(ids) and len(told) == len(counts):
        last = told[-1]
        told[-1] = (last[0], min(last[1], counts[-1][1]))
    return passes if counts == told else None


def _reported(record: RunRecord, method: str | None, spec: RequestSpeculation, size: int) -> list[_Pass] | None:
    """All passes as the engine reported them; None where their place in the text is not certain."""
    origin = assess(record).speculative.provenance
    steps = [step for step in origin.steps[1:] if step.tokens]
    if origin.exact and not any(step.drafted is None or step.accepted is None for step in steps):
        return [_Pass(step.first, step.drafted or 0, step.accepted or 0) for step in steps]
    return _counted(spec, size) if method in ALWAYS else None


def _counted(spec: RequestSpeculation, size: int) -> list[_Pass] | None:
    """The passes of a method that drafts in each: its counts alone tell where each began, whatever came merged."""
    passes, at = [], 1
    for drafted, taken in zip(spec.drafted_per_step or (), spec.accepted_per_step or (), strict=False):
        if at >= size:
            return None
        passes.append(_Pass(at, drafted, taken))
        at += taken + 1
    return passes if passes and at >= size else None
