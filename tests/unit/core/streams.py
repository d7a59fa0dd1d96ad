"""Streams for the tests: scripted ones from a few numbers, and the recorded ones of tests/traces."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from specdemo.core.events import (
    Event,
    Failed,
    FailureKind,
    Finished,
    RequestSpeculation,
    Side,
    Started,
    Tokens,
    Usage,
)
from specdemo.core.prompt import Prompt, Sampling
from specdemo.core.run import Probe, RunHeader, RunPlan, RunRecord

TRACES = Path(__file__).parents[2] / "traces"
NAMES = ("chat", "summ", "code", "list", "zh")

A, B = Side.STANDARD, Side.SPECULATIVE


def stream(
    side: Side,
    chunks: Iterable[tuple[float, Sequence[int], str]],
    *,
    finish: str | None = "stop",
    usage: int | None = None,
    prompt: int = 10,
    cached: int | None = None,
    spec: RequestSpeculation | None = None,
    prompt_ids: tuple[int, ...] | None = None,
    start: float = 0.0,
) -> tuple[Event, ...]:
    """Started, one Tokens per (arrival, ids, text), Finished at the last arrival."""
    events: list[Event] = [Started(side, start)]
    events += [Tokens(side, at, tuple(ids), text) for at, ids, text in chunks]
    counts = None if usage is None else Usage(prompt, usage, cached)
    end = Finished(side, events[-1].at, finish, usage=counts, speculation=spec, prompt_token_ids=prompt_ids)
    return (*events, end)


def ids_stream(side: Side, *chunks: Sequence[int], gap: float = 0.1, **options: Any) -> tuple[Event, ...]:
    """A finished stream of these id chunks, ``gap`` s apart; each id i has the text "<i>" (0, the stop token, none)."""
    rows = [(gap * (n + 1), ids, "".join(f"<{i}>" for i in ids if i)) for n, ids in enumerate(chunks)]
    return stream(side, rows, **options)


def cut(events: Sequence[Event], kind: FailureKind = "interrupted") -> tuple[Event, ...]:
    """The same stream, ended by a failure in place of its Finished."""
    last = events[-1]
    return (*events[:-1], Failed(last.side, last.at, kind, "The connection closed."))


def detailed(accepted: Sequence[int], k: int = 4, drafted: Sequence[int] | None = None) -> RequestSpeculation:
    """The engine's own numbers for these accepted tokens per drafting step."""
    offered = tuple(drafted) if drafted is not None else (k,) * len(accepted)
    return RequestSpeculation(
        steps=len(accepted),
        drafted=sum(offered),
        accepted=sum(accepted),
        max_draft=k,
        histogram=tuple(list(accepted).count(j) for j in range(k + 1)),
        accepted_per_step=tuple(accepted),
        drafted_per_step=offered,
    )


def record(
    *sides: Sequence[Event],
    prompt: Prompt | None = None,
    probe: Probe | None = None,
    **header: Any,
) -> RunRecord:
    """A record of these sides' events, in order of arrival."""
    plan = header.pop("plan", None) or RunPlan(prompt or Prompt(text="x"), mode=header.pop("mode", "measure"))
    events = sorted((event for side in sides for event in side), key=lambda event: event.at)
    return RunRecord(RunHeader("test", 0.0, plan, **header), tuple(events), probe)


def trace(kind: str, name: str) -> tuple[Event, ...]:
    """A recorded stream: ``kind`` std or ngram, ``name`` one of NAMES."""
    document = json.loads((TRACES / f"{kind}-{name}.json").read_text(encoding="utf-8"))
    usage = document["final"]["usage"]
    numbers = (document["final"]["metrics"] or {}).get("speculative_decoding")
    spec = None
    if numbers:
        spec = RequestSpeculation(
            steps=numbers["num_spec_steps"],
            drafted=numbers["num_draft_tokens"],
            accepted=numbers["num_accepted_draft_tokens"],
            max_draft=numbers["num_spec_tokens"],
            histogram=tuple(numbers["acceptance_histogram"]),
            accepted_per_step=tuple(numbers["per_step_accepted"]),
            drafted_per_step=tuple(numbers["per_step_drafted"]),
        )
    return stream(
        A if kind == "std" else B,
        [(at, ids, text) for at, ids, text in document["events"]],
        finish="length" if usage["completion_tokens"] == 160 else "stop",
        usage=usage["completion_tokens"],
        prompt=usage["prompt_tokens"],
        spec=spec,
    )


def trace_record(name: str) -> RunRecord:
    """The recorded pair ``name`` as a measured run."""
    return record(trace("std", name), trace("ngram", name), prompt=Prompt(text="x", sampling=Sampling(max_tokens=160)))
