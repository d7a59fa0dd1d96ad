"""An imagined language model with known next-token distributions, and engines that sample it rightly or wrongly.

The model: ids 0..V-1; after a context the logits come from a hash of the last two ids, sharpened at random, so that some
positions are nearly certain and others are wide. The speculative engines use the real accept-reject rule with n-gram
drafts; each defect is one change of that rule.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from specdemo.bench.sampling.drafts import Lookup, drafted
from specdemo.bench.sampling.scoring import Scored
from specdemo.bench.sampling.settings import LISTED, SamplingConfig
from specdemo.core.events import TopToken

VOCABULARY = 60
LOOKUP = Lookup(4, 1, 3)


@lru_cache(maxsize=100_000)
def logprobs(a: int, b: int) -> tuple[float, ...]:
    """Raw log-probabilities of the next id after ids a, b."""
    rng = random.Random(a * 1009 + b)
    sharp = rng.choice([0.6, 1.0, 1.5, 2.0])
    logits = [rng.gauss(0, sharp) for _ in range(VOCABULARY)]
    for liked in (a, (a + b) % 8):  # likes to repeat, so that n-grams match
        logits[liked] += 4.0
    top = max(logits)
    total = math.log(sum(math.exp(x - top) for x in logits)) + top
    return tuple(x - total for x in logits)


def raw(context: Sequence[int]) -> tuple[float, ...]:
    """Raw log-probabilities after a context."""
    return logprobs(context[-2], context[-1])


@lru_cache(maxsize=100_000)
def processed(a: int, b: int, temperature: float, top_k: int, top_p: float) -> tuple[float, ...]:
    """vLLM's order: temperature, top_k, top_p."""
    scaled = [x / temperature for x in logprobs(a, b)]
    top = max(scaled)
    weights = [math.exp(x - top) for x in scaled]
    order = sorted(range(VOCABULARY), key=lambda i: -weights[i])
    if top_k:
        for i in order[top_k:]:
            weights[i] = 0.0
    total = sum(weights)
    running = 0.0
    for i in order:
        mass = weights[i] / total
        if running >= top_p:
            weights[i] = 0.0
        running += mass
    total = sum(weights)
    return tuple(w / total for w in weights)


@dataclass(frozen=True)
class Model:
    """An engine: what it claims (``config``) and what it does wrong.

    ``heat`` multiplies the temperature; ``no_top_p`` / ``no_top_k`` ignore a field; ``keeps_draft`` draws a refused
    draft's replacement from the whole distribution; ``eager`` accepts drafts with that much more probability.
    """

    config: SamplingConfig
    speculative: bool = False
    heat: float = 1.0
    no_top_p: bool = False
    no_top_k: bool = False
    keeps_draft: bool = False
    eager: float = 0.0

    def distribution(self, context: Sequence[int]) -> tuple[float, ...]:
        c = self.config
        return processed(
            context[-2],
            context[-1],
            c.temperature * self.heat,
            0 if self.no_top_k else c.top_k,
            1.0 if self.no_top_p else c.top_p,
        )

    def draw(self, prompt: Sequence[int], length: int, rng: random.Random) -> tuple[int, ...]:
        """One sequence."""
        context = list(prompt)
        context.append(_pick(self.distribution(context), rng))
        while len(context) < len(prompt) + length:
            draft = LOOKUP.draft(context) if self.speculative else ()
            for token in draft:
                p = self.distribution(context)
                if rng.random() < min(1.0, p[token] * (1 + self.eager)):
                    context.append(token)
                    continue
                rest = p if self.keeps_draft else tuple(0.0 if i == token else x for i, x in enumerate(p))
                context.append(_pick(rest if sum(rest) > 0 else p, rng))
                break
            else:
                context.append(_pick(self.distribution(context), rng))
        return tuple(context[len(prompt) : len(prompt) + length])


def _pick(weights: Sequence[float], rng: random.Random) -> int:
    return rng.choices(range(len(weights)), weights)[0]


PROMPTS = tuple(tuple(random.Random(i).choices(range(8), k=12)) for i in range(8))


def arm(model: Model, draws: int, length: int, seed: int) -> dict[str, list[tuple[int, ...]]]:
    """Sequences by prompt name."""
    rng = random.Random(seed)
    return {f"p{i}": [model.draw(prompt, length, rng) for _ in range(draws)] for i, prompt in enumerate(PROMPTS)}


def score(prompt: Sequence[int], output: Sequence[int], *, known: bool = True) -> list[Scored]:
    """What the standard engine's teacher forcing returns: logprob and the best 20 at each position."""
    drafts = drafted(prompt, output, LOOKUP) if known else (None,) * len(output)
    context = list(prompt)
    found = []
    for token, draft in zip(output, drafts, strict=True):
        values = raw(context)
        best = sorted(range(VOCABULARY), key=lambda i: -values[i])[:LISTED]
        top = tuple(TopToken(i, str(i), values[i]) for i in best)
        found.append(Scored(token, values[token], top, draft))
        context.append(token)
    return found
