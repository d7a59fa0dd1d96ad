"""Where two outputs part, at the level of token ids or of text; and the same while both still stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from specdemo.core.events import Event, Side, Tokens
from specdemo.core.outcome import Outcome
from specdemo.core.sentences import sentence

OWN_END = frozenset({"stop", "tool_calls", "function_call", "eos", "eos_token", "stop_sequence"})
"""Finish reasons by which the model itself (or a stop string) ended the text; all others cut it."""


def common_prefix(left: Sequence[object], right: Sequence[object]) -> int:
    """How many leading items are equal."""
    if left == right:
        return len(left)
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


@dataclass(slots=True)
class _Stream:
    """One side's sequence so far; ``behind`` is what the other side has not matched yet."""

    items: list[int] = field(default_factory=list)
    has_ids: bool = False
    has_text: bool = False


class LiveVerdict:
    """Whether both streams agree so far. Feed events in log order; each token is looked at once.

    ``compared`` leading tokens are equal on both sides; ``position`` is the first token (from 0) that differs, None
    while none does. ``level`` is "text" once a side sends text without ids: then ``compared`` stays and nothing is
    claimed live.
    """

    __slots__ = ("_compared", "_position", "_streams")

    def __init__(self) -> None:
        self._streams = {Side.STANDARD: _Stream(), Side.SPECULATIVE: _Stream()}
        self._compared = 0
        self._position: int | None = None

    def feed(self, event: Event) -> bool:
        """Take one event; True if ``compared`` or ``position`` changed."""
        if type(event) is not Tokens:
            return False
        stream = self._streams[event.side]
        if not event.ids:
            stream.has_text = stream.has_text or bool(event.text or event.reasoning)
            return False
        stream.has_ids = True
        stream.items.extend(event.ids)
        return self._advance()

    def _advance(self) -> bool:
        if self._position is not None:
            return False
        left, right = (self._streams[side].items for side in (Side.STANDARD, Side.SPECULATIVE))
        at = self._compared
        end = min(len(left), len(right))
        while at < end and left[at] == right[at]:
            at += 1
        changed = at != self._compared
        self._compared = at
        if at < end:
            self._position = at
            changed = True
        return changed

    @property
    def compared(self) -> int:
        """Leading tokens that are equal on both sides."""
        return self._compared

    @property
    def position(self) -> int | None:
        """The first output token (from 0) that differs, None while none does."""
        return self._position

    @property
    def level(self) -> str:
        """What can be compared: "ids", or "text" when a side sends text without ids."""
        return "text" if any(s.has_text and not s.has_ids for s in self._streams.values()) else "ids"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two finished outputs compare.

    ``kind``: "equal", "split" (both go on, differently), "ended" (one stopped by itself where the other goes on),
    "short" (one was cut by a limit before the other). ``at`` is the first token or character that is not shared.
    """

    kind: Literal["equal", "split", "ended", "short"]
    at: int
    remarks: tuple[str, ...] = ()


def compare_ids(standard: Outcome, speculative: Outcome, *, limit: int | None) -> Comparison:
    """Compare token ids, forgiving only what is no choice of a model: surplus ids behind a stop or behind the limit.

    ``limit`` is max_tokens. Both outcomes must have ids.
    """
    remarks: list[str] = []
    left = _within(standard, limit, remarks)
    right = _within(speculative, limit, remarks)
    at = common_prefix(left, right)
    if at == len(left) == len(right):
        return Comparison("equal", at, tuple(remarks))
    if at < min(len(left), len(right)):
        return Comparison("split", at, tuple(remarks))
    shorter, longer = (standard, speculative) if len(left) < len(right) else (speculative, standard)
    extra = abs(len(left) - len(right))
    if shorter.finish_reason not in OWN_END:
        return Comparison("short", at, tuple(remarks))
    if _same_text(standard, speculative):
        # Ids past a stop can only be in the burst that held the stop; the end-of-text id is one without text.
        if extra == 1 and longer.finish_reason in OWN_END:
            remarks.append(sentence("stop_id", side=longer.side))
            return Comparison("equal", at, tuple(remarks))
        if extra < longer.last_chunk_size():
            remarks.append(sentence("surplus_after_stop", side=longer.side, count=extra))
            return Comparison("equal", at, tuple(remarks))
    return Comparison("ended", at, tuple(remarks))


def _within(outcome: Outcome, limit: int | None, remarks: list[str]) -> tuple[int, ...]:
    ids = outcome.ids or ()
    if limit is None or len(ids) <= limit:
        return ids
    remarks.append(sentence("surplus_over_limit", side=outcome.side, count=len(ids) - limit, limit=limit))
    return ids[:limit]


def _same_text(left: Outcome, right: Outcome) -> bool:
    return left.text == right.text and left.reasoning == right.reasoning


def compare_text(standard: Outcome, speculative: Outcome) -> Comparison:
    """Compare texts, for servers that send no ids. ``at`` counts characters, reasoning first."""
    if _same_text(standard, speculative):
        return Comparison("equal", len(standard.reasoning) + len(standard.text))
    left, right = standard.reasoning, speculative.reasoning
    before = 0
    if left == right:
        before, left, right = len(left), standard.text, speculative.text
    at = common_prefix(left, right)
    if at < min(len(left), len(right)):
        return Comparison("split", before + at)
    shorter = standard if len(left) < len(right) else speculative
    return Comparison("ended" if shorter.finish_reason in OWN_END else "short", before + at)
