"""All that an engine can say, as values. A run is an append-only list of these; everything else is a view of it.

Event = Started · Tokens · CountersRead · Noted · Finished · Failed

Each has ``side`` and ``at``: seconds since the run's zero on a monotonic clock, stamped once when the bytes
arrived. Pure code never asks for the time; it reads ``at``.

Order for one side: one Started, then Tokens / CountersRead / Noted in any order, then exactly one Finished or Failed.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal


class Side(StrEnum):
    """The two engines; these two words are used everywhere (Python, JSON, CSS, reports)."""

    STANDARD = "standard"
    SPECULATIVE = "speculative"


SIDES: tuple[Side, Side] = (Side.STANDARD, Side.SPECULATIVE)


@dataclass(frozen=True, slots=True)
class Usage:
    """The server's own token counts for one request."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RequestSpeculation:
    """vLLM's ``metrics.speculative_decoding`` of one request (``--per-request-spec-decode-metrics``).

    ``steps`` counts only steps that had a draft, None where a server does not tell. ``accepted`` is counted before a
    stop or length limit cut the last burst, so it can exceed what was delivered. ``accepted_per_step`` /
    ``drafted_per_step`` are None unless the server runs with ``detailed``. ``max_draft`` is num_speculative_tokens (k).
    """

    steps: int | None
    drafted: int
    accepted: int
    max_draft: int | None = None
    histogram: tuple[int, ...] | None = None
    accepted_per_step: tuple[int, ...] | None = None
    drafted_per_step: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class ServerTimings:
    """vLLM's own clock for one request (``--enable-per-request-metrics``); seconds, None where not offered."""

    ttft_s: float | None = None
    generation_s: float | None = None
    queue_s: float | None = None
    mean_itl_s: float | None = None
    tokens_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class SpecCounters:
    """One reading of an engine's Prometheus counters, summed over its ``engine`` labels.

    Process-lifetime totals; None where the server has no such series (a standard engine has none).
    ``epoch`` changes when the counters restarted (process start time, s since 1970), None if not offered.
    """

    drafts: float | None = None
    draft_tokens: float | None = None
    accepted_tokens: float | None = None
    accepted_per_position: tuple[float, ...] = ()
    generation_tokens: float | None = None
    prefix_cache_queries: float | None = None
    prefix_cache_hits: float | None = None
    requests_running: float | None = None
    requests_waiting: float | None = None
    preemptions: float | None = None
    epoch: float | None = None


@dataclass(frozen=True, slots=True)
class TopToken:
    """A candidate at one position: its id if known, text, and natural-log probability."""

    id: int | None
    text: str
    logprob: float


@dataclass(frozen=True, slots=True)
class ScoredToken:
    """One position of a teacher-forced text: the token, its log-probability, rank (1 = best) and best candidates."""

    id: int
    logprob: float
    rank: int
    top: tuple[TopToken, ...]


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    """The log-probability of one delivered token, and the best alternatives when asked for."""

    id: int | None
    text: str
    logprob: float | None
    top: tuple[TopToken, ...] = ()


@dataclass(frozen=True, slots=True)
class Started:
    """The request is about to be sent; ``at`` is the side's own zero (TTFT and E2EL count from here)."""

    side: Side
    at: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """One received chunk that had ``choices``. Ids feed the verdict, text feeds the screen; either may be empty.

    ``ids`` is empty for the role chunk of a chat, and for servers that send no ids. ``pieces`` gives the text of
    each id where it is known exactly (same length as ``ids``, joined equal to ``text``). ``reported_total`` is the
    server's running completion_tokens if it sends one per chunk.
    """

    side: Side
    at: float
    ids: tuple[int, ...] = ()
    text: str = ""
    reasoning: str = ""
    pieces: tuple[str, ...] | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None
    reported_total: int | None = None


@dataclass(frozen=True, slots=True)
class CountersRead:
    """A reading of /metrics taken during the run."""

    side: Side
    at: float
    counters: SpecCounters


NoteKind = Literal[
    "coalesced", "clumped", "overloaded", "retried", "no_token_ids", "no_usage", "metrics_mismatch",
    "token_ids_lost", "surplus_ids", "cold_start", "counters_reset", "other_traffic", "other",
    "no_chat_template", "warmup", "length_capped",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Noted:
    """Something about data quality that must be shown beside the numbers."""

    side: Side
    at: float
    kind: NoteKind
    message: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The engine said that it is done. ``at`` is the arrival of the last chunk that had ``choices``.

    ``finish_reason``: stop, length, abort, tool_calls, repetition … as the server sent it.
    """

    side: Side
    at: float
    finish_reason: str | None
    stop_reason: str | int | None = None
    usage: Usage | None = None
    speculation: RequestSpeculation | None = None
    timings: ServerTimings | None = None
    prompt_token_ids: tuple[int, ...] | None = None


FailureKind = Literal[
    "cancelled", "unavailable", "rejected", "protocol", "interrupted", "stalled", "exited", "error"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Failed:
    """This side will say no more. Whatever arrived before stays. ``kind`` "cancelled" is a user's Stop."""

    side: Side
    at: float
    kind: FailureKind
    message: str


Event = Started | Tokens | CountersRead | Noted | Finished | Failed
