"""Imagined sampling engines behind runs.ports.Engine."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specdemo.bench.prompts import BenchPrompt
from specdemo.bench.sampling.drafts import drafted
from specdemo.core.engine import EngineFacts
from specdemo.core.events import (
    Event,
    Failed,
    Finished,
    RequestSpeculation,
    Side,
    SpecCounters,
    Started,
    Tokens,
    TopToken,
)
from specdemo.core.prompt import Prompt
from specdemo.errors import EngineRejected, EngineUnavailable
from specdemo.runs.ports import ScoredToken
from tests.fakes.sampled import LOOKUP, PROMPTS, Model, score
from tests.fakes.virtual_time import clock

import asyncio  # isort: skip

TEXTS = tuple(BenchPrompt(f"p{i}", "sampling", text=f"prompt {i}") for i in range(len(PROMPTS)))


@dataclass
class SampledEngine:
    """Draws from ``wrong`` (a model with a defect, its claims replaced by the request's); scores with the true model."""

    side: Side
    wrong: dict[str, Any] = field(default_factory=dict)
    dies_after: int | None = None
    scores: bool = True
    stalls: tuple[int, ...] = ()
    same_seed: bool = False
    method: str | None = "ngram"
    asked: list[Prompt] = field(default_factory=list)
    model: str = "sampled"

    async def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        self.asked.append(prompt)
        turn = len(self.asked)
        yield Started(self.side, clock() - zero)
        if self.dead:
            yield Failed(self.side, clock() - zero, "exited", "index 60 is out of bounds")
            return
        await asyncio.sleep(0.1)
        if turn in self.stalls:
            yield Failed(self.side, clock() - zero, "stalled", "silent for 60 s")
            return
        s = prompt.sampling
        claimed = replace_config(s.temperature, s.top_k, s.top_p)
        model = Model(claimed, self.side is Side.SPECULATIVE, **self.wrong)
        start = PROMPTS[int((prompt.text or "").split()[1])]
        ids = model.draw(start, s.max_tokens, random.Random(7 if self.same_seed else s.seed))
        yield Tokens(self.side, clock() - zero, ids, "")
        tried = list(drafted(start, ids, LOOKUP))
        hits = sum(d is not None and d == x for d, x in zip(tried, ids, strict=True))
        steps = sum(d is not None for d in tried) - hits
        speculation = RequestSpeculation(steps, 4 * steps, hits, 4) if self.side is Side.SPECULATIVE else None
        yield Finished(self.side, clock() - zero, "length", None, None, speculation, None, start)

    @property
    def dead(self) -> bool:
        """Whether it has died."""
        return self.dies_after is not None and len(self.asked) > self.dies_after

    async def facts(self) -> EngineFacts:
        if self.dead:
            raise EngineUnavailable(f"The {self.side} engine does not answer.")
        return EngineFacts(self.side, self.model, method=self.method, k=4, dtype="float32")

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        return None

    async def counters(self) -> SpecCounters | None:
        return None

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        return ()

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        if not self.scores:
            raise EngineRejected("prompt_logprobs is not supported.")
        found = score(prompt_ids, output_ids, known=False)
        return tuple(ScoredToken(one.token, one.logprob, 1, one.candidates[:top]) for one in found)


def replace_config(temperature: float, top_k: int, top_p: float) -> Any:
    """A sampling setting with these fields."""
    from specdemo.bench.sampling.settings import PLAIN

    return replace(PLAIN, temperature=temperature, top_k=top_k, top_p=top_p)
