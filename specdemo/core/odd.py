"""Figures that cannot be right, from a server's slip or a file's: absent with a reason, never infinite or negative."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from math import isfinite
from typing import Any

from specdemo.core.events import Finished, RequestSpeculation, SpecCounters
from specdemo.core.results import Acceptance, SideMetrics
from specdemo.core.sentences import sentence

MOST = 10**12
"""A count above this, or below 0, is no measurement."""

TIMES = frozenset(
    {"tpot_s", "e2el_s", "chunk_gap_s", "longest_stall_s", "decode_tokens_per_s", "tokens_per_s", "live_tokens_per_s"}
)  # fmt: skip
"""Figures that rest on the order of the arrival times."""


def count(value: int | None) -> int | None:
    """The count, None if it cannot be one."""
    return value if value is not None and 0 <= value <= MOST else None


def prompt_tokens(finished: Finished | None) -> int | None:
    """Prompt tokens by the server's count, else by the ids that it echoed. A count of 0 says that nobody counted."""
    if finished is None:
        return None
    said = count(finished.usage.prompt_tokens) if finished.usage else None
    return said or len(finished.prompt_token_ids or ()) or None


def since(start: float | None, at: float | None) -> float | None:
    """Seconds from ``start`` to ``at``, at least 0; None unless both are real times."""
    if start is None or at is None or not isfinite(at - start):
        return None
    return max(0.0, at - start)


def quotient(above: float, below: float) -> float | None:
    """``above / below`` where it is a finite figure that is not negative."""
    if not (isfinite(below) and below > 0.0):
        return None
    made = above / below
    return made if isfinite(made) and made >= 0.0 else None


def sound_counters(counters: SpecCounters) -> bool:
    """Whether a reading holds only values that a counter can have."""
    values = [getattr(counters, spec.name) for spec in fields(counters) if spec.name != "accepted_per_position"]
    return _all_sound((*values, *counters.accepted_per_position))


def sound_request(spec: RequestSpeculation) -> bool:
    """Whether an engine's own numbers of a request are counts, and no more was accepted than drafted."""
    lists = (spec.histogram or (), spec.accepted_per_step or (), spec.drafted_per_step or ())
    numbers = (spec.steps, spec.drafted, spec.accepted, spec.max_draft, *(n for some in lists for n in some))
    return _all_sound(numbers) and spec.accepted <= spec.drafted


def _all_sound(values: Iterable[float | None]) -> bool:
    return all(value is None or 0 <= value <= MOST for value in values)


def without(found: SideMetrics, *, times: bool) -> SideMetrics:
    """The metrics without what cannot be right; ``times``: the arrival times contradict each other."""
    gone: dict[str, Any] = {
        spec.name: sentence("odd_times" if spec.name.endswith("_s") else "odd_count")
        for spec in fields(found)
        if (times and spec.name in TIMES) or _wrong(getattr(found, spec.name))
    }
    taken = found.acceptance
    if any(_wrong(value) for spec in fields(taken) for value in _each(getattr(taken, spec.name))):
        found = replace(found, acceptance=Acceptance(reason=sentence("odd_count")))
    if not gone:
        return found
    kept = tuple((name, why) for name, why in found.reasons if name not in gone)
    absent: dict[str, Any] = dict.fromkeys(gone)
    return replace(found, **absent, reasons=(*kept, *gone.items()))


def _each(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _wrong(value: Any) -> bool:
    return isinstance(value, (int, float)) and not 0 <= value < float("inf")
