"""The values that metrics, verdict and comparability produce: what page, CLI, report and JSON show.

What does not apply is None, never 0 or NaN. Field names are the names of the JSON contract.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from specdemo.core.events import Side

AcceptanceSource = Literal["request", "engine", "none"]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """How many drafted tokens the target took.

    ``source``: "request" is exact for this request; "engine" comes from whole-engine counters; "none" has no data.
    rate = accepted / drafted. mean_length = 1 + accepted / drafting_steps (vLLM's definition, bonus token in).
    per_position[j] = share of drafting steps that accepted more than j tokens (unconditional);
    per_position_conditional[j] = the same among the steps that reached position j and drafted it.
    ``histogram[a]`` = drafting steps that accepted exactly a. ``reason`` says why numbers are absent.
    ``delivered`` = accepted drafts that reached the output; ``accepted`` also counts those that a stop or length limit
    cut off. While a stream runs, ``rate`` is None and lies between ``low`` and ``high``.
    """

    source: AcceptanceSource = "none"
    rate: float | None = None
    mean_length: float | None = None
    drafted: int | None = None
    accepted: int | None = None
    drafting_steps: int | None = None
    per_position: tuple[float, ...] = ()
    per_position_conditional: tuple[float | None, ...] = ()
    histogram: tuple[int, ...] = ()
    reason: str | None = None
    delivered: int | None = None
    low: float | None = None
    high: float | None = None


CountSource = Literal["ids", "usage", "approximate", "none"]


@dataclass(frozen=True, slots=True)
class SideMetrics:
    """One side's numbers (method: definitions in docs/metrics.md). Times in s, rates in tokens/s.

    ``chunk_gap_s`` is vLLM's ITL: mean gap between chunks that carried tokens; never compare sides by it.
    ``ttft_role_s`` is vLLM 0.32's TTFT (counts the empty role chunk). ``count_source`` tells how tokens were counted.
    ``final`` is False while the stream runs; ``live_tokens_per_s`` is then the forgotten-ratio estimate, and None
    after the end (show ``decode_tokens_per_s``). ``steps`` counts the prefill step too; ``tokens_per_step`` is over
    the decode steps; ``non_drafting_steps`` are decode steps without a draft. ``reasons``: (name, why it is absent).
    """

    prompt_tokens: int | None = None
    output_tokens: int | None = None
    ttft_s: float | None = None
    ttft_role_s: float | None = None
    tpot_s: float | None = None
    e2el_s: float | None = None
    chunk_gap_s: float | None = None
    longest_stall_s: float | None = None
    decode_tokens_per_s: float | None = None
    tokens_per_s: float | None = None
    live_tokens_per_s: float | None = None
    steps: int | None = None
    tokens_per_step: float | None = None
    drafting_steps: int | None = None
    cached_tokens: int | None = None
    acceptance: Acceptance = field(default_factory=Acceptance)
    count_source: CountSource = "none"
    final: bool = False
    reasons: tuple[tuple[str, str], ...] = ()
    non_drafting_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A data-quality remark; shown, never hidden. ``side`` None when it concerns the pair."""

    kind: str
    message: str
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Speedup:
    """Standard / speculative. ``decode`` compares time per output token, ``e2e`` and ``ttft`` wall times.

    ``basis`` says in one sentence what is compared; None ratios have their reason in ``reasons``.
    """

    decode: float | None = None
    e2e: float | None = None
    ttft: float | None = None
    basis: str = ""
    reasons: tuple[tuple[str, str], ...] = ()


VerdictClass = Literal[
    "identical", "identical_to_limit", "near_tie", "different", "not_comparable", "not_tested"
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class VerdictToken:
    """A token at the split."""

    id: int | None
    text: str
    logprob: float | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """The greedy identity verdict. ``position`` counts output tokens from 0; prose counts from 1 and says so.

    ``compared`` is how many leading tokens are equal. ``level`` is "ids", or "text" when a server sent no ids
    (then no token position is claimed). ``remarks`` carry facts beside the class (surplus ids, finish reasons differ).
    """

    cls: VerdictClass
    reason: str
    position: int | None = None
    standard_token: VerdictToken | None = None
    speculative_token: VerdictToken | None = None
    gap_nats: float | None = None
    tolerance_nats: float | None = None
    compared: int = 0
    level: Literal["ids", "text"] = "ids"
    remarks: tuple[str, ...] = ()


CheckLevel = Literal["ok", "warn", "block"]


@dataclass(frozen=True, slots=True)
class Check:
    """One line of comparability. "block" forbids the identity claim, "warn" is printed beside it."""

    check: str
    level: CheckLevel
    detail: str


TokenOrigin = Literal["draft", "target", "unknown"]


@dataclass(frozen=True, slots=True)
class Step:
    """One engine step as the stream shows it. ``first`` is the index of its first output token.

    ``accepted``/``drafted`` are None when unknown. ``at`` is the arrival time of its chunk (s).
    """

    first: int
    tokens: int
    at: float
    drafted: int | None
    accepted: int | None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where each output token came from: ``origins[i]`` for token i, and the steps."""

    origins: tuple[TokenOrigin, ...] = ()
    steps: tuple[Step, ...] = ()
    exact: bool = False
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Theory:
    """Predicted beside measured (Leviathan et al. 2023, arXiv 2211.17192; corrected line: see theory.py).

    ``a`` is the chance that a drafted token is accepted, ``c`` the cost of one drafted token in standard steps,
    ``coverage`` the share of decode steps with a draft; step costs are in standard steps. ``iid_rejected`` is True
    when the run contradicts one fixed ``a`` (G-test, p < .01), None when there is too little data to test.
    """

    a: float | None = None
    c: float | None = None
    k: int | None = None
    expected_tokens_per_step: float | None = None
    textbook_speedup: float | None = None
    corrected_speedup: float | None = None
    measured_speedup: float | None = None
    coverage: float | None = None
    cause: str = ""
    tokens_per_step: float | None = None
    undrafted_step_cost: float | None = None
    drafted_step_cost: float | None = None
    iid_p_value: float | None = None
    iid_rejected: bool | None = None
    reasons: tuple[tuple[str, str], ...] = ()
