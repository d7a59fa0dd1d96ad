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

_CALLS = frozenset({"tool_calls", "function_call"})
"""Ends after which ids without text are no surplus: they are the call, which is not read."""


def common_prefix(left: Sequence[object], right: Sequence[object]) -> int:
    """How many leading items are equal."""
    if left == right:
        return len(left)
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


@dataclass(slots=True)
class _Stream:
    """One side's sequence so far; ``behind`` is what the other side has not matched yet."""

    items: list[int] = field(default_factory=list)
    unnumbered: bool = False  # text came without ids: what follows has no certain place


class LiveVerdict:
    """Whether both streams agree so far. Feed events in log order; each token is looked at once.

    ``compared`` leading tokens are equal on both sides; ``position`` is the first token (from 0) that differs, None
    while none does. ``level`` is "text" once a side sends text without ids, be it in one chunk: then ``compared`` stays
    and no position is claimed.
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
            claimed = self.position
            stream.unnumbered = stream.unnumbered or bool(event.text or event.reasoning)
            return self.position != claimed
        if self.level == "text":
            return False
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
        return self._position if self.level == "ids" else None

    @property
    def level(self) -> str:
        """What can be compared: "ids", or "text" when a side sends text without ids."""
        return "text" if any(stream.unnumbered for stream in self._streams.values()) else "ids"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two finished outputs compare.

    ``kind``: "equal", "split" (both go on, differently), "ended" (one stopped by itself where the other goes on),
    "short" (one was cut before the other, by a limit or because ids did not arrive). ``at`` is the first token or
    character that is not shared.
    """

    kind: Literal["equal", "split", "ended", "short"]
    at: int
    remarks: tuple[str, ...] = ()


def compare_ids(standard: Outcome, speculative: Outcome, *, limit: int | None) -> Comparison:
    """Compare token ids, forgiving only what is no choice of a model: surplus ids behind a stop or behind the limit.

    ``limit`` is max_tokens. Both outcomes must have ids. A side that was counted more tokens than arrived is "short"
    where its ids end, however it ended.
    """
    remarks: list[str] = []
    left = _within(standard, limit, remarks)
    right = _within(speculative, limit, remarks)
    at = common_prefix(left, right)
    if at == len(left) == len(right):
        return Comparison("equal", at, tuple(remarks))
    if at < min(len(left), len(right)):
        if not _stopped_before(standard, speculative, at):
            return Comparison("split", at, tuple(remarks))
        for side, count in ((standard, len(left) - at), (speculative, len(right) - at)):
            remarks.append(sentence("surplus_after_stop", side=side.side, count=count))
        return Comparison("equal", at, tuple(remarks))
    shorter, longer = (standard, speculative) if len(left) < len(right) else (speculative, standard)
    extra = abs(len(left) - len(right))
    if shorter.finish_reason not in OWN_END:
        return Comparison("short", at, tuple(remarks))
    if _same_text(standard, speculative):
        whole = _whole(standard, speculative)
        # The text is complete with the shorter side's ids, so the others have none: the end-of-text id, or what was
        # left of a burst with the stop inside. A length limit can hide that stop, but leaves no more than a burst.
        if extra == 1 and longer.finish_reason in OWN_END:
            remarks.append(sentence("stop_id", side=longer.side))
            return Comparison("equal", at, tuple(remarks))
        if whole and (longer.finish_reason in OWN_END or extra <= longer.largest_chunk):
            remarks.append(sentence("surplus_after_stop", side=longer.side, count=extra))
            return Comparison("equal", at, tuple(remarks))
    return Comparison("short" if _lost_some(shorter, longer) else "ended", at, tuple(remarks))


def _stopped_before(standard: Outcome, speculative: Outcome, at: int) -> bool:
    """Whether the split at ``at`` lies behind the stop on both sides, among ids that a server left there.

    Both must have ended by themselves with the same text, which the common tokens make up already. A side that sends
    single tokens leaves none over: what it sent last is a choice of its model.
    """
    sides = standard, speculative
    if not _whole(*sides) or any(side.finish_reason not in OWN_END for side in sides):
        return False
    if any(side.largest_chunk < 2 and not _counted(side, at) for side in sides):
        return False
    words = [side.last_words() for side in sides]
    if any(end <= at for _, end in words):
        return True
    if any(start >= at for start, _ in words):
        return False  # text came with the other tokens
    return all(_written(side, start, at) is not False for side, (start, _) in zip(sides, words, strict=True))


def _written(side: Outcome, start: int, at: int) -> bool | None:
    """Whether the tokens from ``start`` to ``at`` make up all text of their chunk; None if their texts are unknown."""
    found = side.locate(start)
    texts = [side.token_text(index) for index in range(start, at)]
    if found is None or None in texts:
        return None
    return "".join(text or "" for text in texts).startswith(found[0].reasoning + found[0].text)


def _whole(standard: Outcome, speculative: Outcome) -> bool:
    """Whether both show the same text and it is all that they said: then ids without text say nothing."""
    calls = any(side.finish_reason in _CALLS for side in (standard, speculative))
    return _same_text(standard, speculative) and bool(standard.text or standard.reasoning) and not calls


def _counted(side: Outcome, at: int) -> bool:
    """Whether the server's own count says that tokens from ``at`` on are surplus."""
    usage = side.finished.usage if side.finished else None
    return usage is not None and usage.completion_tokens <= at


def _lost_some(shorter: Outcome, longer: Outcome) -> bool:
    """Whether the shorter side may be short because tokens did not arrive.

    Servers that count the end-of-text token without sending its id lack exactly one on both sides.
    """
    unlisted = shorter.ids_lost == longer.ids_lost == 1 and longer.finish_reason in OWN_END
    return shorter.ids_lost > 0 and not unlisted


def _lost_text(shorter: Outcome, longer: Outcome) -> bool:
    """Whether the side with less text was counted no fewer tokens: then text of it did not arrive."""
    counts = [side.finished.usage.completion_tokens if side.finished and side.finished.usage else None
              for side in (shorter, longer)]  # fmt: skip
    return counts[0] is not None and counts[1] is not None and counts[0] >= counts[1]


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
    shorter, longer = (standard, speculative) if len(left) < len(right) else (speculative, standard)
    if at < min(len(left), len(right)):
        # Tokens that never arrived take their text with them: the rest of it is then what follows in the other text.
        rest = min(left[at:], right[at:], key=len)
        gap = len(left) != len(right) and _lost_some(shorter, longer) and max(left, right, key=len).endswith(rest)
        return Comparison("short" if gap else "split", before + at)
    ended = shorter.finish_reason in OWN_END and not (_lost_some(shorter, longer) or _lost_text(shorter, longer))
    return Comparison("ended" if ended else "short", before + at)
