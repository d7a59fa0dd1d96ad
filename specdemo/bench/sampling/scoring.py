"""Primary test: each sampled token against the distribution it should have come from. Pure.

All sums are of martingale differences (value minus its expectation given the past), so they are valid across tokens of
one sequence; the standardised sums are close to standard normal when the engine samples what it claims.

temperature   sum of logprob - E[logprob], over the root of the summed variances; effect: T_eff = 1/(1/T + U/I)
top-1         how often the best token is drawn, minus its probability; effect in points
PIT           randomised probability integral transform in 10 bins, chi-squared with 9 degrees; effect: Cramer's V
leak          how often the drafted token is drawn, minus its probability; effect in points
violations    tokens that top_k or top_p forbid
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from specdemo.bench.distributions import chi2_sf, normal_two_sided
from specdemo.bench.sampling.processed import Expected, expected, violates
from specdemo.bench.sampling.settings import LISTED, SamplingConfig
from specdemo.core.events import TopToken

BINS = 10
FP32_TOLERANCES = (1e-3, 1e-3)
HALF_TOLERANCES = (0.3, 0.02)


@dataclass(frozen=True, slots=True)
class Scored:
    """One sampled token: its id, raw logprob under the reference, the reference's best candidates, the draft tried."""

    token: int
    logprob: float
    candidates: tuple[TopToken, ...]
    draft: int | None = None


@dataclass(frozen=True, slots=True)
class Component:
    """One standardised sum: ``z`` (or chi-squared), its two-sided p-value, and the effect with its 95 % half-width."""

    name: str
    z: float | None
    p: float | None
    effect: float | None
    half_width: float | None
    n: int


@dataclass(frozen=True, slots=True)
class ArmScore:
    """An arm's evidence under one setting. ``skipped`` positions could not be scored from the list of candidates."""

    config: str
    tokens: int
    skipped: int
    violations: int
    temperature: Component
    top1: Component
    pit: Component
    leak: Component
    effective_temperature: float | None
    histogram: tuple[int, ...]

    @property
    def components(self) -> tuple[Component, ...]:
        """The four tests in a fixed order."""
        return (self.temperature, self.top1, self.pit, self.leak)

    @property
    def relative_temperature(self) -> float | None:
        """Effective temperature / asked temperature."""
        return None if self.temperature.effect is None else 1.0 + self.temperature.effect

    @property
    def drafted_share(self) -> float | None:
        """Share of scored tokens at which a draft was tried."""
        return self.leak.n / self.tokens if self.tokens else None


@dataclass(slots=True)
class Scorer:
    """Feed scored tokens, then ask for the result. ``seed`` makes the randomised transform repeatable."""

    config: SamplingConfig
    listed: int = LISTED
    tolerances: tuple[float, float] = FP32_TOLERANCES
    seed: int = 0
    _rng: random.Random = field(init=False)
    _n: int = 0
    _skipped: int = 0
    _violations: int = 0
    _u: float = 0.0
    _i: float = 0.0
    _x: float = 0.0
    _vx: float = 0.0
    _w: float = 0.0
    _vw: float = 0.0
    _drafts: int = 0
    _bins: list[int] = field(default_factory=lambda: [0] * BINS)

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)  # noqa: S311 - to be repeated, not a secret

    def add(self, tokens: Iterable[Scored]) -> None:
        """Take tokens of one or several sequences into account."""
        for token in tokens:
            found = expected(token.candidates, self.config, self.listed)
            if found is None:
                self._skipped += 1
            else:
                self._one(token, found)

    def _one(self, scored: Scored, found: Expected) -> None:
        self._n += 1
        self._violations += violates(
            found,
            scored.token,
            scored.logprob,
            self.config,
            self.tolerances,
        )
        place = next((i for i, token in enumerate(found.ids) if token == scored.token), None)
        drawn = found.logprobs[place] if place is not None else max(found.tail_logprob, scored.logprob)
        mean = _mean(found.probs, found.logprobs) + found.tail * found.tail_logprob
        square = sum(p * value * value for p, value in zip(found.probs, found.logprobs, strict=True))
        square += found.tail * found.tail_logprob**2
        self._u += drawn - mean
        self._i += max(0.0, square - mean * mean)
        best = found.probs[0]
        self._x += (place == 0) - best
        self._vx += best * (1.0 - best)
        below = sum(found.probs[:place]) if place is not None else 1.0 - found.tail
        width = found.probs[place] if place is not None else found.tail
        self._bins[min(BINS - 1, int((below + self._rng.random() * width) * BINS))] += 1
        if scored.draft is not None:
            self._leak(scored, found)

    def _leak(self, scored: Scored, found: Expected) -> None:
        """The draft's chance is known if it is listed, and 0 if there is no tail; else the context is skipped."""
        chance = next((p for token, p in zip(found.ids, found.probs, strict=True) if token == scored.draft), None)
        if chance is None:
            if found.tail > 0.0:
                return
            chance = 0.0
        self._drafts += 1
        self._w += (scored.token == scored.draft) - chance
        self._vw += chance * (1.0 - chance)

    def result(self) -> ArmScore:
        """What the tokens so far say."""
        n = self._n
        z_t = self._u / math.sqrt(self._i) if self._i > 0.0 else None
        t_eff, reach = _effective(self.config.temperature, self._u, self._i)
        chi2 = sum((count - n / BINS) ** 2 / (n / BINS) for count in self._bins) if n else None
        relative = t_eff / self.config.temperature - 1.0 if t_eff is not None else None
        width = reach / self.config.temperature if reach is not None else None
        return ArmScore(
            config=self.config.name,
            tokens=n,
            skipped=self._skipped,
            violations=self._violations,
            temperature=Component("temperature", z_t, _p(z_t), relative, width, n),
            top1=_share("top1", self._x, self._vx, n),
            pit=Component(
                "pit",
                chi2,
                chi2_sf(chi2, BINS - 1) if chi2 is not None else None,
                math.sqrt(chi2 / (n * (BINS - 1))) if chi2 is not None else None,
                None,
                n,
            ),
            leak=_share("leak", self._w, self._vw, self._drafts),
            effective_temperature=t_eff,
            histogram=tuple(self._bins),
        )


def _mean(weights: Sequence[float], values: Sequence[float]) -> float:
    return sum(w * v for w, v in zip(weights, values, strict=True))


def _p(z: float | None) -> float | None:
    return None if z is None else normal_two_sided(z)


def _share(name: str, excess: float, variance: float, n: int) -> Component:
    if n == 0 or variance <= 0.0:
        return Component(name, None, None, None, None, n)
    z = excess / math.sqrt(variance)
    return Component(name, z, normal_two_sided(z), excess / n, 1.96 * math.sqrt(variance) / n, n)


def _effective(temperature: float, u: float, information: float) -> tuple[float | None, float | None]:
    """One Newton step: exact near the claimed temperature, an overshoot when top_p also moved."""
    if information <= 0.0:
        return None, None
    inverse = 1.0 / temperature + u / information
    if inverse <= 0.0:
        return None, None  # hotter than any temperature: nearly uniform sampling
    return 1.0 / inverse, 1.96 * temperature**2 / math.sqrt(information)
