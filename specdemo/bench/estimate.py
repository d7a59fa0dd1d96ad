"""How long a plan will take, from the pace of single requests that were measured on these engines. Pure.

At concurrency 1 the estimate is a sum. Above, nobody knows beforehand how well the engines batch, so it is a range:
from requests that do not slow each other at all to requests that gain nothing from each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from specdemo.bench.plan import BenchPlan
from specdemo.bench.sample import Sample
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.bench.schedule import Block, requests, schedule

WARMUP_TOKENS = 32


@dataclass(frozen=True, slots=True)
class Pace:
    """One engine, one request at a time: seconds to the first token, and seconds a token after it."""

    first_s: float
    token_s: float

    def request(self, tokens: int) -> float:
        """Seconds for a request of so many output tokens."""
        return self.first_s + self.token_s * max(0, tokens - 1)


Paces = tuple[Pace, Pace]
"""Standard first."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """``requests`` without warm-up, ``tokens`` at most. ``low_s`` and ``high_s`` are None without a known pace.

    ``cut``: the time budget is shorter than the plan may take.
    """

    requests: int
    tokens: int
    low_s: float | None = None
    high_s: float | None = None
    cut: bool = False


def estimate(plan: BenchPlan, paces: Paces | None) -> Estimate:
    """Raises UsageError for an impossible plan."""
    quads = schedule(plan)
    budgets = {prompt.id: prompt.within(plan.sampling).max_tokens for prompt in plan.prompts}
    tokens = sum(budgets[item.prompt_id] for quad in quads for block in quad.blocks for item in block.items)
    count = requests(quads)
    if paces is None:
        return Estimate(count, tokens)
    low = high = _warm_up(plan, paces)
    for quad in quads:
        for block in quad.blocks:
            standard = plan.null or quad.kind == "control" or block.arm == "A"
            least, most = _block(plan, block, quad.level, budgets, paces[0 if standard else 1])
            low, high = low + least, high + most
    return _capped(Estimate(count, tokens, low, high), plan.budget_s)


def estimate_validation(plan: ValidationPlan, paces: Paces | None) -> Estimate:
    """Draws of both engines; each draw is then read once by the standard engine, taken as one more first token."""
    sequences = len(plan.prompts) * plan.draws * len(plan.configs)
    tokens = 2 * sequences * plan.tokens
    if paces is None:
        return Estimate(2 * sequences, tokens)
    high = sequences * (sum(pace.request(plan.tokens) for pace in paces) + 2 * paces[0].first_s)
    return _capped(Estimate(2 * sequences, tokens, high / plan.concurrency, high), plan.budget_s)


def paces_of(samples: Sequence[Sample]) -> Paces | None:
    """The pace of both engines from a benchmark's requests at concurrency 1; None if either has none."""
    found = []
    for arm in ("A", "B"):
        alone = [s for s in samples if s.place.arm == arm and s.place.level == 1 and s.place.kind == "measure"]
        firsts = [s.ttft_s for s in alone if s.ttft_s is not None]
        tokens = [s.seconds_per_token for s in alone if s.seconds_per_token is not None]
        if not firsts or not tokens:
            return None
        found.append(Pace(median(firsts), median(tokens)))
    return found[0], found[1]


def _warm_up(plan: BenchPlan, paces: Paces) -> float:
    each = [pace.request(min(WARMUP_TOKENS, plan.sampling.max_tokens)) for pace in paces]
    return plan.warmup * len(plan.levels) * (each[0] if plan.null else sum(each))


def _block(plan: BenchPlan, block: Block, level: int, budgets: dict[str, int], pace: Pace) -> tuple[float, float]:
    seconds = [pace.request(budgets[item.prompt_id]) for item in block.items]
    if plan.rate is not None:
        last = max((item.at or 0.0 for item in block.items), default=0.0)
        return last + min(seconds), max(last + max(seconds), sum(seconds))
    return max(*seconds, sum(seconds) / level), sum(seconds)


def _capped(found: Estimate, budget_s: float | None) -> Estimate:
    if budget_s is None or found.low_s is None or found.high_s is None or found.high_s <= budget_s:
        return found
    return Estimate(found.requests, found.tokens, min(found.low_s, budget_s), budget_s, cut=True)
