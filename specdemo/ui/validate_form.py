"""The Validate tab's form as filled in → a plan, or one sentence why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdemo.bench.datasets import Dataset
from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.sampling.settings import PLAIN, TRUNCATED, SamplingConfig, ValidationPlan, check_validation
from specdemo.bench.workloads import sampling_prompts
from specdemo.errors import PromptError, UsageError
from specdemo.ui.bench_form import MOST_MINUTES, number, whole


@dataclass(frozen=True, slots=True)
class ValidateForm:
    """As the browser sent it; nothing is what it should be until it was checked."""

    settings: Any
    temperature: Any
    top_p: Any
    top_k: Any
    source: Any
    prompts: Any
    accept_refused: Any
    draws: Any
    tokens: Any
    minutes: Any
    seed: Any
    concurrency: Any
    listed: Any
    shortest: Any
    longest: Any
    anyway: Any

    def plan(self, dataset: Dataset | None) -> ValidationPlan:
        """Raises PromptError or UsageError with one sentence."""
        minutes = number("The time budget", self.minutes, 0.0, 0.0, MOST_MINUTES)
        plan = ValidationPlan(
            prompts=self._prompts(dataset),
            configs=self._configs(),
            draws=whole("Draws", self.draws, 80, 2, 10_000),
            tokens=whole("Tokens of a sequence", self.tokens, 16, 2, 512),
            seed=whole("The seed", self.seed, 1, 0, 2**31 - 1),
            concurrency=whole("Requests in flight", self.concurrency, 4, 1, 64),
            budget_s=minutes * 60 if minutes else None,
            listed=whole("Candidates a position", self.listed, 20, 1, 1000),
        )
        check_validation(plan)
        return plan

    @property
    def lengths(self) -> tuple[int, int]:
        """prompt_lookup_min and prompt_lookup_max of the n-gram method. Raises UsageError."""
        shortest = whole("prompt_lookup_min", self.shortest, 2, 1, 64)
        longest = whole("prompt_lookup_max", self.longest, 4, 1, 64)
        if shortest > longest:
            raise UsageError("prompt_lookup_min is at most prompt_lookup_max.")
        return shortest, longest

    def _configs(self) -> tuple[SamplingConfig, ...]:
        if self.settings != "own":
            return PLAIN, TRUNCATED
        return (
            SamplingConfig(
                "own",
                number("Temperature", self.temperature, 1.0, 0.0, 10.0),
                whole("top_k", self.top_k, 0, 0, 1_000_000),
                number("top_p", self.top_p, 1.0, 0.0, 1.0),
            ),
        )

    def _prompts(self, dataset: Dataset | None) -> tuple[BenchPrompt, ...]:
        most = whole("Prompts", self.prompts, 8, 1, 1000)
        if self.source != "own":
            return sampling_prompts()[:most]
        if dataset is None:
            raise PromptError("Choose a file with prompts first.")
        if not dataset.prompts or (dataset.refused and not self.accept_refused):
            raise PromptError(f"{dataset.name}: {dataset.sentence(3)}. Mend the file, or allow it without these lines.")
        return dataset.prompts[:most]
