"""What is tested, and the seeds of its draws. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from specdemo.bench.plan import MOST_SECONDS, MOST_TOKENS, within
from specdemo.bench.prompts import BenchPrompt
from specdemo.core.prompt import Sampling
from specdemo.errors import UsageError

SEED_STEP = 1000
"""vLLM gives child i of a request the seed + i, so request seeds stand this far apart."""
MOST_SEED = 2**32
"""All requests' seeds then stay within the 63 bits that vLLM takes."""
MOST_DRAWS = 1_000_000
MOST_TEMPERATURE = 100.0
LISTED = 20
"""Candidates a position that a server lists by default; more need --max-logprobs."""


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    """One setting of the sampler. ``top_k`` 0 and ``top_p`` 1 are off."""

    name: str
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0

    def sampling(self, tokens: int, seed: int) -> Sampling:
        """The request's fields: fixed length, so that every draw has as many tokens."""
        return Sampling(
            max_tokens=tokens,
            temperature=self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            seed=seed,
            ignore_eos=True,
        )


PLAIN = SamplingConfig("plain", 1.0)
TRUNCATED = SamplingConfig("truncated", 1.0, 20, 0.9)
PRODUCTION = SamplingConfig("production", 0.7, 20, 0.9)


@dataclass(frozen=True, slots=True)
class ValidationPlan:
    """``draws`` sequences of ``tokens`` tokens a prompt, arm and setting.

    The default 8 x 80 x 16 has the power shown in ``power``; the quick profile 5 x 32 x 16 can find a gross fault but
    never certifies. ``alpha`` is the family-wise level of the fault finding.
    """

    prompts: tuple[BenchPrompt, ...]
    configs: tuple[SamplingConfig, ...] = (PLAIN, TRUNCATED)
    draws: int = 80
    tokens: int = 16
    seed: int = 1
    concurrency: int = 4
    budget_s: float | None = None
    alpha: float = 0.01
    permutations: int = 199
    listed: int = LISTED

    @property
    def tokens_per_arm(self) -> int:
        """Sampled tokens an arm and setting."""
        return len(self.prompts) * self.draws * self.tokens

    def seed_of(self, config: int, arm: int, prompt: int, draw: int) -> int:
        """A seed of its own for every request; arms never share one. ``arm`` is 0 or 1."""
        index = ((config * len(self.prompts) + prompt) * self.draws + draw) * 2 + arm
        return self.seed * 1_000_000_007 + SEED_STEP * index


def check_validation(plan: ValidationPlan) -> None:
    """Raise UsageError for a plan that can't be judged."""
    if not plan.prompts or not plan.configs:
        raise UsageError("A validation needs at least one prompt and one sampling setting.")
    if plan.draws < 2 or plan.tokens < 2:
        raise UsageError("At least 2 draws of 2 tokens are needed: the first token never has a draft.")
    within("Draws", plan.draws, 2, MOST_DRAWS)
    within("Tokens of a sequence", plan.tokens, 2, MOST_TOKENS)
    if plan.budget_s is not None:
        within("The time budget", plan.budget_s, 0, MOST_SECONDS)
    within("The seed", plan.seed, -MOST_SEED, MOST_SEED)
    for config in plan.configs:
        if config.temperature <= 0.0:
            raise UsageError("Temperature 0 is greedy; its texts are compared token by token by specdemo bench.")
        within("Temperature", config.temperature, 0, MOST_TEMPERATURE)
        if config.temperature < 0.01:
            raise UsageError("vLLM raises a temperature below 0.01 to 0.01; choose 0.01 or more.")
        if not 0.0 < config.top_p <= 1.0 or config.top_k < 0:
            raise UsageError("top_p is above 0 and at most 1, and top_k is 0 (off) or more.")
        exact = 0 < config.top_k <= plan.listed
        if not exact and config.temperature != 1.0:
            raise UsageError(
                f"At temperature {config.temperature:g} the expected distribution can only be built with a top_k of "
                f"1 to {plan.listed}; set one, use temperature 1, or raise the standard engine's --max-logprobs."
            )
