"""Where each output token came from: an accepted draft, or the target model's own choice.

One step delivers its accepted drafts and then one token of the target, so a chunk of n tokens is n-1 drafts and one own
token, except that a stop or length limit may cut the last step. With the engine's accepted tokens per step that is
decided exactly; the recorded steps are laid along the chunks one step per chunk, and if that does not fit, chunks may
hold several steps (search bounded). When nothing fits, or layouts that fit equally well disagree, the origin is
"unknown" rather than guessed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from specdemo.core import odd
from specdemo.core.events import Event, RequestSpeculation, Side
from specdemo.core.outcome import Outcome, collect
from specdemo.core.results import Provenance, Step, TokenOrigin

DRAFT: TokenOrigin = "draft"
OWN: TokenOrigin = "target"
UNKNOWN: TokenOrigin = "unknown"

SEARCH_LIMIT = 200_000
"""Most step placements that the search for merged chunks tries."""


def live_origins(size: int, *, first: bool) -> tuple[TokenOrigin, ...]:
    """Origins of a chunk of ``size`` tokens while the stream runs; the first chunk begins with the prefill's token."""
    if not size:
        return ()
    if first:
        return (OWN, *live_origins(size - 1, first=False))
    return (*_drafts(size - 1), OWN)


def _drafts(count: int) -> tuple[TokenOrigin, ...]:
    one: tuple[TokenOrigin, ...] = (DRAFT,)
    return one * count


def provenance(events: Iterable[Event], side: Side, *, plain: bool | None = None) -> Provenance:
    """Provenance of one side's tokens from its events; empty (with the reason) when the server sends no ids.

    ``plain`` says that this engine never drafts; by default that is the standard side.
    """
    return of_outcome(collect(events, side), plain=plain)


def of_outcome(outcome: Outcome, *, plain: bool | None = None) -> Provenance:
    """As :func:`provenance`, from a side already gathered."""
    chunks = [(len(chunk.ids), chunk.at) for chunk in outcome.chunks if chunk.ids]
    if not chunks:
        reason = "No token has arrived." if outcome.ids is not None else "The server sends no token ids."
        return Provenance(reason=reason)
    spec = outcome.finished.speculation if outcome.finished else None
    if spec is not None and not odd.sound_request(spec):
        spec = None
    if spec is None and (outcome.side is Side.STANDARD if plain is None else plain):
        return _all_target(chunks)
    if spec is None:
        if outcome.state == "running":
            reason = "Assigned from chunk sizes while the stream runs."
        else:
            reason = "The engine sent no numbers per step: assigned from chunk sizes."
        return _by_size(chunks, reason)
    taken = spec.accepted_per_step
    if taken is None and spec.accepted > 0 and spec.steps != 0:
        return _from_totals(chunks, spec)
    taken = taken or ()
    offered: Sequence[int | None] = spec.drafted_per_step or ()
    if len(offered) != len(taken):
        offered = (None,) * len(taken)
    placed = _one_step_per_chunk(chunks, taken, offered)
    if placed is not None:
        return placed
    layouts = _search([size for size, _ in chunks], taken)
    if layouts is None:
        return _unknown(chunks, "The engine's steps do not fit the chunks that arrived.")
    late, early = (_from_layout(chunks, layout, taken, offered) for layout in layouts)
    origins = tuple(one if one == other else UNKNOWN for one, other in zip(late.origins, early.origins, strict=True))
    steps = tuple(
        replace(step, drafted=None, accepted=None, truncated=False)
        if UNKNOWN in origins[step.first : step.first + step.tokens]
        else step
        for step in late.steps
    )
    return replace(late, origins=origins, steps=steps)


def _all_target(chunks: Sequence[tuple[int, float]]) -> Provenance:
    steps: list[Step] = []
    origins: list[TokenOrigin] = []
    for size, at in chunks:
        for _ in range(size):
            steps.append(Step(len(origins), 1, at, 0, 0))
            origins.append(OWN)
    return Provenance(origins=tuple(origins), steps=tuple(steps), exact=True)


def _by_size(chunks: Sequence[tuple[int, float]], reason: str, *, cut: bool = False) -> Provenance:
    """One step per chunk by size alone; ``cut`` says that the last step lost its own token."""
    origins: list[TokenOrigin] = []
    steps: list[Step] = []
    for index, (size, at) in enumerate(chunks):
        start = len(origins)
        origins.extend(live_origins(size, first=index == 0))
        if index == 0:
            steps.append(Step(start, 1, at, 0, 0))
        room = size - (index == 0)
        if room:  # a single token may or may not have had a draft that was refused
            steps.append(Step(start + size - room, room, at, None, room - 1 or None))
    if cut and len(chunks) > 1:
        last = steps[-1]
        origins[last.first :] = [DRAFT] * last.tokens
        steps[-1] = Step(last.first, last.tokens, last.at, None, last.tokens, truncated=True)
    return Provenance(tuple(origins), tuple(steps), exact=False, reason=reason)


def _from_totals(chunks: Sequence[tuple[int, float]], spec: RequestSpeculation) -> Provenance:
    """Only totals are known: drafts accepted but not seen in the stream were cut from the last step."""
    total = sum(size for size, _ in chunks)
    unseen = spec.accepted - (total - len(chunks))
    reason = "Assigned from chunk sizes and the engine's totals."
    return _by_size(chunks, reason, cut=unseen > 0)


def _unknown(chunks: Sequence[tuple[int, float]], reason: str) -> Provenance:
    steps: list[Step] = []
    origins: list[TokenOrigin] = []
    for size, at in chunks:
        steps.append(Step(len(origins), size, at, None, None))
        origins += [UNKNOWN] * size
    return Provenance(tuple(origins), tuple(steps), exact=False, reason=reason)


def _one_step_per_chunk(
    chunks: Sequence[tuple[int, float]], taken: Sequence[int], offered: Sequence[int | None]
) -> Provenance | None:
    """The usual case, in one pass: every burst is the next recorded step that accepted something; None if not so.

    Recorded steps that accepted nothing look like steps without a draft: one token each. Between two bursts only their
    number is known, so unless all or none of the single tokens there had a draft, ``drafted`` stays None for them.
    """
    if chunks[0][0] != 1:
        return None
    origins: list[TokenOrigin] = [OWN]
    steps = [Step(0, 1, chunks[0][1], 0, 0)]
    used = 0  # recorded steps laid so far
    bursts = deque(index for index, accepted in enumerate(taken) if accepted)
    singles: list[tuple[int, float]] = []  # single tokens since the last burst: (index of the token, arrival)
    for index in range(1, len(chunks)):
        size, at = chunks[index]
        last = index == len(chunks) - 1
        burst = bursts[0] if bursts else -1
        # The last chunk is the last recorded step if that one accepted more than is left of it.
        cut = last and burst == len(taken) - 1 and burst >= 0 and taken[burst] >= size
        if size == 1 and not cut:
            singles.append((len(origins), at))
            origins.append(OWN)
            continue
        if burst < 0 or not (cut or taken[burst] + 1 == size) or not _lay_singles(steps, singles, offered, used, burst):
            return None
        drafts = size if cut else size - 1
        steps.append(Step(len(origins), size, at, offered[burst], drafts, truncated=cut))
        origins.extend(_drafts(drafts))
        if not cut:
            origins.append(OWN)
        bursts.popleft()
        used, singles = burst + 1, []
    if bursts or not _lay_singles(steps, singles, offered, used, len(taken)):
        return None
    return Provenance(tuple(origins), tuple(steps), exact=True)


def _lay_singles(
    steps: list[Step], singles: Sequence[tuple[int, float]], offered: Sequence[int | None], used: int, end: int
) -> bool:
    """Lay the recorded steps ``used`` to ``end``, which accepted nothing, on single tokens; False if too many."""
    refused = end - used
    if refused > len(singles):
        return False
    for place, (first, at) in enumerate(singles):
        drafted = 0 if not refused else offered[used + place] if refused == len(singles) else None
        steps.append(Step(first, 1, at, drafted, 0))
    return True


@dataclass(frozen=True, slots=True)
class _Link:
    """How a state of the search was reached: chunks that hold several steps so far, and the lowest and highest state
    before it that do equally well.
    """

    merged: int
    low: int
    high: int


Layout = list[tuple[int, int]]
"""For each chunk the recorded steps that it holds, as (first, end)."""


def _search(sizes: Sequence[int], taken: Sequence[int]) -> tuple[Layout, Layout] | None:
    """Lay the recorded steps on the chunks: the layouts that use them latest and earliest; None if nothing fits.

    State after a chunk: how many recorded steps are used up. A chunk may take any next few whose tokens fit into it
    (the rest are steps without a draft); the last chunk takes all that remain, the very last step maybe cut. Layouts
    with the fewest merged chunks win. Gives up after SEARCH_LIMIT placements.
    """
    states: dict[int, _Link] = {0: _Link(0, 0, 0)}
    history: list[dict[int, _Link]] = []
    work = 0
    for index, size in enumerate(sizes):
        room = size - 1 if index == 0 else size  # the prefill's token is no recorded step
        reached: dict[int, _Link] = {}
        for used, link in states.items():
            for end, left in _placements(taken, used, room, final=index == len(sizes) - 1):
                work += 1
                held = end - used + left
                merged = link.merged + (held > 1 or (index == 0 and held > 0))
                known = reached.get(end)
                if known is None or merged < known.merged:
                    reached[end] = _Link(merged, used, used)
                elif merged == known.merged:
                    reached[end] = _Link(merged, min(known.low, used), max(known.high, used))
            if work > SEARCH_LIMIT:
                return None
        history.append(reached)
        states = reached
    if len(taken) not in states:
        return None
    late: Layout = []
    early: Layout = []
    low = high = len(taken)
    for reached in reversed(history):
        late.append((reached[low].low, low))
        early.append((reached[high].high, high))
        low, high = reached[low].low, reached[high].high
    return late[::-1], early[::-1]


def _placements(taken: Sequence[int], used: int, room: int, *, final: bool) -> Iterable[tuple[int, int]]:
    """(recorded steps used after the chunk, tokens left for steps without a draft) for every way to fill a chunk."""
    end, filled = used, 0
    while True:
        if not final or end == len(taken):
            yield end, room - filled
        if end == len(taken):
            return
        size = taken[end] + 1
        if filled + size > room:
            if final and end == len(taken) - 1 and filled < room:
                yield len(taken), 0  # the very last step, cut
            return
        filled += size
        end += 1


def _from_layout(
    chunks: Sequence[tuple[int, float]],
    layout: Sequence[tuple[int, int]],
    taken: Sequence[int],
    offered: Sequence[int | None],
) -> Provenance:
    """Origins under a layout. Where a chunk also holds steps without a draft their order is open: then "unknown"."""
    origins: list[TokenOrigin] = []
    steps: list[Step] = []
    for index, ((size, at), (used, end)) in enumerate(zip(chunks, layout, strict=True)):
        if index == 0:
            steps.append(Step(0, 1, at, 0, 0))
            origins.append(OWN)
        room = size - (index == 0)
        needed = sum(taken[used:end]) + end - used
        if needed < room and any(taken[used:end]):
            steps.append(Step(len(origins), room, at, None, None))
            origins.extend([UNKNOWN] * room)
            continue
        for which in range(used, end):
            tokens = min(taken[which] + 1, room)
            cut = tokens <= taken[which]
            drafts = tokens if cut else tokens - 1
            steps.append(Step(len(origins), tokens, at, offered[which], drafts, truncated=cut))
            origins.extend(_drafts(drafts))
            if not cut:
                origins.append(OWN)
            room -= tokens
        for _ in range(room):
            steps.append(Step(len(origins), 1, at, 0, 0))
            origins.append(OWN)
    reason = "Some chunks hold several steps; the recorded steps were fitted to the chunks."
    return Provenance(tuple(origins), tuple(steps), exact=False, reason=reason)
