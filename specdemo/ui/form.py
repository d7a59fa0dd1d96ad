"""The race's form as filled in, and the plan that it asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from specdemo.core import sentences
from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.errors import PromptError, UsageError

BEST_TOKENS = 3
"""Candidates whose log-probabilities are asked for when the visitor wants details."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form as filled in. An emptied field arrives as None, a raw API call may send anything."""

    prompt: object
    system: object = ""
    mode: str = "race"
    max_tokens: float | None = 256
    temperature: float | None = 0.0
    top_p: float | None = 1.0
    top_k: float | None = 0
    min_p: float | None = 0.0
    seed: float | None = None
    presence_penalty: float | None = 0.0
    frequency_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0
    ignore_eos: bool = False
    plain: bool = False
    logprobs: bool = False
    keep: bool = True

    def plan(self) -> RunPlan:
        """The run that this form asks for. Raises PromptError for a value that is not one."""
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise PromptError(sentences.sentence("prompt_empty"))
        if self.mode not in ("race", "measure"):
            raise UsageError(sentences.sentence("no_mode"))
        mode: Literal["race", "measure"] = "measure" if self.mode == "measure" else "race"
        return RunPlan(prompt=self._prompt(self.prompt), mode=mode)

    def _prompt(self, text: str) -> Prompt:
        sampling = Sampling(
            max_tokens=_whole("Output tokens", self.max_tokens, 256),
            temperature=_number("Temperature", self.temperature, 0.0),
            top_p=_number("top_p", self.top_p, 1.0),
            top_k=_whole("top_k", self.top_k, 0),
            min_p=_number("min_p", self.min_p, 0.0),
            seed=None if self.seed is None else _whole("Seed", self.seed, 0),
            presence_penalty=_number("Presence penalty", self.presence_penalty, 0.0),
            frequency_penalty=_number("Frequency penalty", self.frequency_penalty, 0.0),
            repetition_penalty=_number("Repetition penalty", self.repetition_penalty, 1.0),
            ignore_eos=bool(self.ignore_eos),
        )
        logprobs = BEST_TOKENS if self.logprobs else None
        if self.plain:
            return Prompt(text=text, sampling=sampling, logprobs=logprobs)
        system = self.system if isinstance(self.system, str) and self.system.strip() else ""
        return chat(text, system=system, sampling=sampling, logprobs=logprobs)


def _number(name: str, value: Any, default: float) -> float:
    if value is None or value == "":
        return default
    if not is_number(value):
        raise PromptError(sentences.sentence("not_a_number", name=name))
    return float(value)


def is_number(value: Any) -> bool:
    """A finite number that a float can hold; JSON has whole ones of any length."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _whole(name: str, value: Any, default: int) -> int:
    number = _number(name, value, default)
    if isinstance(value, int):
        return value  # a float has no room for all of a seed's 64 bits
    if number != int(number):
        raise PromptError(sentences.sentence("not_whole", name=name))
    return int(number)
