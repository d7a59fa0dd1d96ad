"""What a benchmark does: prompts × repeats × load levels, and the rules that make its numbers comparable."""

from __future__ import annotations

from dataclasses import dataclass, field

from specdemo.bench.prompts import BenchPrompt
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError

LEVELS = (1, 2, 4, 8, 16, 32)
MOST_LEVEL = 1024
MOST_REQUESTS = 200_000
MOST_TOKENS = 10_000_000
MOST_SECONDS = 366 * 86_400
LEAST_RATE = 0.001
"""Slower arrivals than this would take days for one block."""


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """A benchmark. Arm A is the standard engine, arm B the speculative one (in a null test the standard one again).

    prompts         each is measured in ``repeats`` quads a level, ABBA and BAAB in turn
    levels          requests in flight; at 1 every prompt is its own quad, above 1 a quad is four blocks of requests
    sampling        every field is sent, the same to both arms; ``ignore_eos`` gives equal lengths (D16)
    warmup          requests per arm and level that are thrown away (twice the level above 1)
    null            B is the standard engine too: must come out as no difference
    control_prompts prompts of an A/A control beside the comparison; 0 for none
    load_prompts    prompts of each workload used above level 1, None for all
    by_workload     above level 1 one workload at a time (else a mix, as real traffic)
    per_worker      requests a worker at least, so that ramp and tail don't dominate
    rate            open mode: requests started a second whatever the engine does, timed from the intended start
    budget_s        no new quad starts after this time; levels get equal shares
    seed            of every random order in it
    """

    prompts: tuple[BenchPrompt, ...]
    levels: tuple[int, ...] = (1,)
    repeats: int = 1
    sampling: Sampling = field(default_factory=lambda: Sampling(max_tokens=128, ignore_eos=True))
    warmup: int = 2
    null: bool = False
    control_prompts: int = 5
    load_prompts: int | None = 4
    by_workload: bool = False
    per_worker: int = 4
    rate: float | None = None
    budget_s: float | None = None
    seed: int = 1
    title: str = ""

    @property
    def workloads(self) -> tuple[str, ...]:
        """Names of the workloads, in order of first appearance."""
        return tuple(dict.fromkeys(prompt.workload for prompt in self.prompts))

    def prompt(self, prompt_id: str) -> BenchPrompt:
        """The prompt of that id. Raises KeyError."""
        for prompt in self.prompts:
            if prompt.id == prompt_id:
                return prompt
        raise KeyError(prompt_id)


def check_plan(plan: BenchPlan) -> None:
    """Raise UsageError with one sentence if the plan can't be run."""
    if not plan.prompts:
        raise UsageError("A benchmark needs at least one prompt.")
    if len({prompt.id for prompt in plan.prompts}) != len(plan.prompts):
        raise UsageError("Two prompts of the benchmark have the same id.")
    if not plan.levels or any(level < 1 or level > MOST_LEVEL for level in plan.levels):
        raise UsageError(f"Concurrency levels are whole numbers from 1 to {MOST_LEVEL}.")
    if len(set(plan.levels)) != len(plan.levels):
        raise UsageError("A concurrency level is named twice.")
    if plan.repeats < 1 or plan.per_worker < 1:
        raise UsageError("Repeats and requests per worker are at least 1.")
    if plan.sampling.max_tokens < 2:
        raise UsageError("At least 2 output tokens are needed: the time per token starts with the second.")
    if plan.rate is not None and not 0.0 < plan.rate <= 10_000:
        raise UsageError("The request rate is above 0 and at most 10,000 a second.")
    if plan.rate is not None:
        within("The request rate", plan.rate, LEAST_RATE, 10_000)
    if plan.rate is not None and plan.levels != (1,):
        raise UsageError("An open request rate replaces concurrency levels; leave the levels out.")
    if plan.budget_s is not None and not plan.budget_s > 0:
        raise UsageError("The time budget is above 0.")
    # A plan that passes can be written to a file and read again, so every number has an end.
    within("The time budget", plan.budget_s or 0, 0, MOST_SECONDS)
    within("Output tokens", plan.sampling.max_tokens, 2, MOST_TOKENS)
    within("Warm-up requests", plan.warmup, 0, MOST_REQUESTS)
    within("Prompts of the control", plan.control_prompts, 0, MOST_REQUESTS)
    within("Prompts under load", plan.load_prompts or 0, 0 if plan.load_prompts is None else 1, MOST_REQUESTS)
    within("The seed", plan.seed, -(2**63), 2**63 - 1)
    size = 4 * plan.repeats * sum(max(len(plan.prompts), plan.per_worker * level) for level in plan.levels)
    if size > MOST_REQUESTS:
        raise UsageError(f"The plan has more than {MOST_REQUESTS:,} requests; take fewer prompts, levels or repeats.")


def within(name: str, value: float, low: float, high: float) -> None:
    """Raise UsageError with one sentence for a number beyond these limits, or for none."""
    if not low <= value <= high:
        raise UsageError(f"{name} must lie between {low:,} and {high:,}, not {value:,}.")
