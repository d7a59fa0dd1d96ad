"""What the measuring core costs: CPU time of metrics and verdict for one side's and one pair's 8,000 tokens.

    .venv/bin/python benchmarks/core_cost.py

Prints a table for 8,000 and 16,000 tokens a side: the second must cost about twice the first (linear), and both stages
must stay under 20 ms of CPU at 8,000 tokens. "metrics" feeds every event of both sides to its meter, takes a final
snapshot and runs the cross-checks; "verdict" gathers both sides and judges them; "live verdict" compares while
streaming.
"assess" is everything at once, provenance and theory included. Best of several rounds, since noise only adds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import process_time

from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Event, Finished, RequestSpeculation, Side, Started, Tokens, Usage
from specdemo.core.metrics import SideMeter
from specdemo.core.outcome import collect
from specdemo.core.prompt import Prompt, Sampling
from specdemo.core.run import RunHeader, RunPlan, RunRecord
from specdemo.core.verdict import LiveVerdict, judge

ROUNDS = 15
LIMIT_MS = 20.0
DRAFT = 4
PATTERN = (4, 0, 2, 4, 1, 4, 3, 0)
"""Accepted drafts of consecutive steps: mean 2.25, so 3.25 tokens a step."""


@dataclass(frozen=True, slots=True)
class Work:
    """Two sides' events in order of arrival, and the prompt."""

    events: tuple[Event, ...]
    prompt: Prompt


def work(tokens: int) -> Work:
    """A standard stream of one token a chunk beside a speculative one in bursts, both ``tokens`` long and equal."""
    ids = [(i * 7919) % 49152 for i in range(tokens)]
    events: list[Event] = [Started(side, 0.0) for side in SIDES]
    for i, token in enumerate(ids):
        events.append(Tokens(Side.STANDARD, 0.2 + i * 0.02, (token,), " word"))
    taken: list[int] = []
    done, at = 1, 0.2
    events.append(Tokens(Side.SPECULATIVE, at, (ids[0],), " word"))
    while done < tokens:
        accepted = PATTERN[len(taken) % len(PATTERN)]
        burst = ids[done : done + accepted + 1]
        at += 0.025
        events.append(Tokens(Side.SPECULATIVE, at, tuple(burst), " word" * len(burst)))
        taken.append(accepted)
        done += len(burst)
    usage = Usage(20, tokens)
    spec = RequestSpeculation(
        steps=len(taken), drafted=DRAFT * len(taken), accepted=sum(taken), max_draft=DRAFT,
        histogram=tuple(taken.count(j) for j in range(DRAFT + 1)),
        accepted_per_step=tuple(taken), drafted_per_step=(DRAFT,) * len(taken),
    )  # fmt: skip
    events.append(Finished(Side.STANDARD, 0.2 + (tokens - 1) * 0.02, "length", usage=usage))
    events.append(Finished(Side.SPECULATIVE, at, "length", usage=usage, speculation=spec))
    events.sort(key=lambda event: event.at)
    return Work(tuple(events), Prompt(text="x", sampling=Sampling(max_tokens=tokens)))


def metrics(job: Work) -> None:
    """Both meters over all events, their final snapshots and notes."""
    for side in SIDES:
        meter = SideMeter(side, k=DRAFT)
        feed = meter.feed
        for event in job.events:
            feed(event)
        meter.snapshot()
        meter.notes()


def verdict(job: Work) -> None:
    """Gather both sides and judge them."""
    standard, speculative = (collect(job.events, side) for side in SIDES)
    judge(standard, speculative, job.prompt)


def live(job: Work) -> None:
    """The verdict as the streams run."""
    comparing = LiveVerdict()
    for event in job.events:
        comparing.feed(event)


def everything(job: Work) -> None:
    """Assess the whole record."""
    assess(RunRecord(RunHeader("bench", 0.0, RunPlan(job.prompt)), job.events))


STAGES: tuple[tuple[str, Callable[[Work], None], bool], ...] = (
    ("metrics (both sides)", metrics, True),
    ("verdict (the pair)", verdict, True),
    ("live verdict", live, False),
    ("assess (everything)", everything, False),
)


def cost_ms(stage: Callable[[Work], None], job: Work) -> float:
    """Least CPU time of one call, ms."""
    best = float("inf")
    for _ in range(ROUNDS):
        before = process_time()
        stage(job)
        best = min(best, process_time() - before)
    return best * 1e3


def main() -> int:
    """Print the table; 1 if a limit is broken."""
    small, large = work(8_000), work(16_000)
    failed = False
    print(f"{'CPU ms':22} {'8,000':>9} {'16,000':>9} {'ratio':>7}  limit at 8,000")
    for name, stage, limited in STAGES:
        a, b = cost_ms(stage, small), cost_ms(stage, large)
        bad = limited and a > LIMIT_MS
        failed = failed or bad
        limit = f"{LIMIT_MS:.0f} ms: {'too slow' if bad else 'ok'}" if limited else "-"
        print(f"{name:22} {a:9.2f} {b:9.2f} {b / a:7.2f}  {limit}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
