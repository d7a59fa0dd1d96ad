"""What an engine says of its own work in the last chunk: drafting, and its clock."""

from __future__ import annotations

from typing import Any

from specdemo.core.events import RequestSpeculation, ServerTimings
from specdemo.engines.wire import fields

MAX_DRAFT = 1024
"""No engine drafts more tokens in a step. Some of these numbers are sizes of lists that are made later."""


def speculation(value: Any) -> RequestSpeculation | None:
    """``metrics.speculative_decoding`` of vLLM; None if both totals are not there, or cannot be.

    Some servers leave out how many steps drafted; it is the length of a list, if they send one.
    """
    inner = fields.mapping(value)
    drafted = fields.count(inner.get("num_draft_tokens"))
    accepted = fields.count(inner.get("num_accepted_draft_tokens"))
    longest = fields.count(inner.get("num_spec_tokens"))
    if drafted is None or accepted is None or accepted > drafted or (longest or 0) > MAX_DRAFT:
        return None
    histogram = fields.counts(inner.get("acceptance_histogram"))
    taken, offered = (fields.counts(inner.get(name)) for name in ("per_step_accepted", "per_step_drafted"))
    if not _possible(histogram, taken, offered):
        return None
    steps = fields.count(inner.get("num_spec_steps"))
    if steps is None:
        steps = len(taken or offered or ()) or sum(histogram or ()) or None
    return RequestSpeculation(steps, drafted, accepted, longest, histogram, taken, offered)


def _possible(
    histogram: tuple[int, ...] | None, taken: tuple[int, ...] | None, offered: tuple[int, ...] | None
) -> bool:
    """Whether steps can have been so."""
    per_step = (*(taken or ()), *(offered or ()))
    if max(per_step, default=0) > MAX_DRAFT or len(histogram or ()) > MAX_DRAFT + 1:
        return False
    if taken is None or offered is None or len(taken) != len(offered):
        return True
    return all(took <= tried for took, tried in zip(taken, offered, strict=True))


def timings(metrics: dict[str, Any]) -> ServerTimings | None:
    """The engine's own clock (ms on the wire, s here); None if it tells nothing."""
    values = [fields.number(metrics.get(name)) for name in
              ("time_to_first_token_ms", "generation_time_ms", "queue_time_ms", "mean_itl_ms")]  # fmt: skip
    rate = fields.number(metrics.get("tokens_per_second"))
    if rate is None and all(value is None for value in values):
        return None
    ttft, generation, queue, gap = (None if value is None else value / 1000 for value in values)
    return ServerTimings(ttft, generation, queue, gap, rate)
