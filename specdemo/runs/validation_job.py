"""A sampling validation as a job, and the pace of both engines before one."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import ClassVar

from specdemo.bench.estimate import Pace, Paces
from specdemo.bench.sampling.drafts import Lookup
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.core.engine import EngineFacts
from specdemo.core.events import SIDES, Failed, Side, Started, Tokens
from specdemo.core.prompt import Prompt, Sampling
from specdemo.errors import EngineUnavailable, UsageError
from specdemo.runs.jobs import Job, Kind, Workshop
from specdemo.runs.kept import VALIDATIONS, new_name
from specdemo.runs.ports import Engine
from specdemo.runs.registry import Registry
from specdemo.runs.streams import closing
from specdemo.runs.validate import ValidationAround, ValidationProgress, validate
from specdemo.runs.validation_store import save_validation

PROBE_TOKENS = 24
PROBE_TEXT = "Count from one to fifty in words: one, two, three,"


class ValidationJob(Job):
    """Draws, scores and judges; the result is kept as a file. ``anyway`` tests an engine that may die of it."""

    kind: ClassVar[Kind] = "validation"

    def __init__(
        self,
        owner: str,
        shop: Workshop,
        plan: ValidationPlan,
        *,
        lengths: tuple[int, int] = (2, 4),
        anyway: bool = False,
    ) -> None:
        super().__init__(new_name(shop.wall()), owner)
        self._shop = shop
        self.plan = plan
        self._lengths = lengths
        self._anyway = anyway
        self._stopped = asyncio.Event()
        self.path = shop.folder / VALIDATIONS / f"{self.name}.json"
        self.progress: ValidationProgress | None = None
        self.result: ValidationResult | None = None

    @property
    def left_s(self) -> float | None:
        """From the rounds so far, but not beyond the time budget; None during the first."""
        progress, budget = self.progress, self.plan.budget_s
        if progress is None or not progress.rounds:
            return None
        left = progress.elapsed_s / progress.rounds * (progress.planned - progress.rounds)
        return left if budget is None else min(left, max(0.0, budget - progress.elapsed_s))

    def end(self) -> None:
        self._stopped.set()

    async def work(self, engines: Mapping[Side, Engine]) -> None:
        facts = await engines[Side.STANDARD].facts(), await engines[Side.SPECULATIVE].facts()
        if not self._anyway:
            self._check(facts)
        known = facts[1]
        lookup = Lookup(known.k or 4, *self._lengths) if known.method == "ngram" else None
        around = ValidationAround(
            clock=self._shop.clock, wall=self._shop.wall, lookup=lookup, on_progress=self._tell, stopped=self._stopped
        )
        self.result = await validate(self.plan, engines, around)
        save_validation(self.path, self.result)

    def _check(self, facts: tuple[EngineFacts, EngineFacts]) -> None:
        if self._shop.refuse is None:
            return
        for config in self.plan.configs:
            asked = self.plan.prompts[0].ask(config.sampling(self.plan.tokens, 1))
            reason = self._shop.refuse(asked, facts)
            if reason is not None:
                raise UsageError(f"{reason} To see that for yourself, allow a test that may end the engine.")

    def _tell(self, progress: ValidationProgress) -> None:
        self.progress = progress


async def measure_pace(registry: Registry, engines: Mapping[Side, Engine]) -> Paces:
    """One short request to each engine, one after the other, with nothing else running. Raises EngineUnavailable."""
    sentence = "The pace of the engines is being measured; try again in a few seconds."
    async with registry.alone(lambda: sentence):
        first, second = [await _pace(engines[side]) for side in SIDES]
    return first, second


async def _pace(engine: Engine) -> Pace:
    # The first one warms the engine up; only the second counts.
    await _timed(engine)
    return await _timed(engine)


async def _timed(engine: Engine) -> Pace:
    asked = Prompt(text=PROBE_TEXT, sampling=Sampling(max_tokens=PROBE_TOKENS, ignore_eos=True))
    started: float | None = None
    arrived: list[tuple[float, int]] = []
    async with closing(engine.stream(asked, zero=0.0, cache_salt=secrets.token_hex(16))) as events:
        async for event in events:
            if isinstance(event, Started):
                started = event.at
            elif isinstance(event, Tokens) and event.ids:
                arrived.append((event.at, len(event.ids)))
            elif isinstance(event, Failed):
                raise EngineUnavailable(f"The {engine.side} engine did not answer a short request: {event.message}")
    later = sum(count for _, count in arrived[1:])
    if started is None or not later:
        raise EngineUnavailable(f"The {engine.side} engine sent too few tokens to tell its pace.")
    return Pace(arrived[0][0] - started, (arrived[-1][0] - arrived[0][0]) / later)
