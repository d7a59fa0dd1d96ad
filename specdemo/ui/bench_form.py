"""The Benchmark tab's form as filled in → a plan, or one sentence why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specdemo.bench.datasets import Dataset
from specdemo.bench.plan import LEVELS, BenchPlan, check_plan
from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.workloads import choose
from specdemo.core.prompt import Sampling
from specdemo.errors import PromptError, UsageError
from specdemo.runs.bench_job import Point
from specdemo.ui.form import is_number

MOST_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class BenchForm:
    """As the browser sent it: an emptied field is None, and nothing is what it should be until it was checked."""

    source: Any
    workloads: Any
    languages: Any
    prompts: Any
    accept_refused: Any
    levels: Any
    repeats: Any
    max_tokens: Any
    minutes: Any
    null: Any
    own_length: Any
    warmup: Any
    control: Any
    load_prompts: Any
    rate: Any
    seed: Any
    wait_quiet: Any
    lengths: Any = ()
    methods: Any = ()

    def plan(self, dataset: Dataset | None, *, most_tokens: int) -> BenchPlan:
        """Raises PromptError or UsageError with one sentence."""
        rate = number("The request rate", self.rate, 0.0, 0.0, 10_000.0) or None
        tokens = whole("Output tokens", self.max_tokens, 128, 2, most_tokens)
        minutes = number("The time budget", self.minutes, 0.0, 0.0, MOST_MINUTES)
        plan = BenchPlan(
            prompts=self._prompts(dataset),
            levels=(1,) if rate else self._levels(),
            repeats=whole("Repeats", self.repeats, 1, 1, 100),
            sampling=Sampling(max_tokens=tokens, ignore_eos=not self.own_length),
            warmup=whole("Warm-up requests", self.warmup, 2, 0, 100),
            null=bool(self.null),
            control_prompts=whole("Prompts of the control", self.control, 5, 0, 1000),
            load_prompts=whole("Prompts under load", self.load_prompts, 4, 1, 1000),
            rate=rate,
            budget_s=minutes * 60 if minutes else None,
            seed=whole("The seed", self.seed, 1, 0, 2**31 - 1),
        )
        check_plan(plan)
        return plan

    def points(self) -> tuple[Point, ...]:
        """The settings of a sweep; none when it is not asked for."""
        lengths = [whole("A draft length", k, 0, 1, 32) for k in listed("Draft lengths", self.lengths)]
        methods = [str(name)[:40] for name in listed("Methods", self.methods)]
        if not lengths and not methods:
            return ()
        return tuple(Point(method, k) for method in methods or (None,) for k in sorted(set(lengths)) or (None,))

    def _prompts(self, dataset: Dataset | None) -> tuple[BenchPrompt, ...]:
        most = whole("Prompts", self.prompts, 4, 1, 10_000)
        if self.source != "own":
            names = [str(name) for name in listed("Workloads", self.workloads)]
            if not names:
                raise UsageError("Choose at least one workload.")
            languages = [str(name) for name in listed("Languages", self.languages)]
            return choose(names, languages=languages, limit=most)
        if dataset is None:
            raise PromptError("Choose a file with prompts first.")
        if not dataset.prompts:
            raise PromptError(f"{dataset.name} holds no usable prompt: {dataset.sentence(3)}.")
        if dataset.refused and not self.accept_refused:
            raise PromptError(
                f"{dataset.sentence(3)}. Mend the file, or allow the run without these lines below the preview."
            )
        return dataset.prompts[:most]

    def _levels(self) -> tuple[int, ...]:
        levels = [whole("A concurrency level", level, 1, 1, LEVELS[-1]) for level in listed("Levels", self.levels)]
        if not levels:
            raise UsageError("Choose at least one level of concurrency; 1 is one request at a time.")
        return tuple(sorted(set(levels)))


def number(name: str, value: Any, default: float, low: float, high: float) -> float:
    """A number within limits; the default for an empty field. Raises UsageError."""
    if value is None or value == "":
        return default
    if not is_number(value):
        raise UsageError(f"{name} must be a number.")
    if not low <= value <= high:
        raise UsageError(f"{name} must lie between {low:g} and {high:g}, not {value:g}.")
    return float(value)


def whole(name: str, value: Any, default: int, low: int, high: int) -> int:
    """A whole number within limits; the default for an empty field. Raises UsageError."""
    found = number(name, value, default, low, high)
    if found != int(found):
        raise UsageError(f"{name} must be a whole number.")
    return int(found)


def listed(name: str, value: Any) -> list[Any]:
    """A list of choices; an empty one for nothing. Raises UsageError."""
    if value is None:
        return []
    if not isinstance(value, list | tuple) or len(value) > 100:
        raise UsageError(f"{name}: a list of choices is needed.")
    return list(value)
