"""Before a run: what both engines say of themselves, whether they read the prompt alike, whether to send it at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from specdemo.core.comparability import checks
from specdemo.core.engine import EngineFacts
from specdemo.core.events import SIDES, Side
from specdemo.core.prompt import Prompt
from specdemo.core.results import Check
from specdemo.core.run import RunPlan
from specdemo.core.sentences import sentence
from specdemo.errors import EngineError, PromptError
from specdemo.runs.ports import Engine

T = TypeVar("T")

Facts = tuple[EngineFacts | None, EngineFacts | None]
Ids = tuple[int, ...] | None

Refusal = Callable[[Prompt, Facts], str | None]
"""Why this prompt must not be sent to these engines (it would kill one, or come out wrong); None to go on."""


@dataclass(frozen=True, slots=True)
class Preflight:
    """What is known before the first token. Pairs are standard first; None where an engine did not say.

    ``capped`` is the sentence to show when the prompt leaves less room than the output tokens asked for.
    """

    facts: Facts
    prompt_ids: tuple[Ids, Ids]
    checks: tuple[Check, ...]
    capped: str | None = None


async def examine(
    plan: RunPlan, engines: Mapping[Side, Engine], *, refuse: Refusal | None = None, prompt_tokens: int | None = None
) -> Preflight:
    """Ask both engines at once. An engine that does not answer is left to its stream to report.

    Raises PromptError when the prompt would harm an engine, cannot fit into one, or has more than ``prompt_tokens``.
    """
    standard, speculative = engines[Side.STANDARD], engines[Side.SPECULATIVE]
    facts_a, ids_a, facts_b, ids_b = await asyncio.gather(
        _or_none(standard.facts),
        _or_none(lambda: standard.tokenize(plan.prompt)),
        _or_none(speculative.facts),
        _or_none(lambda: speculative.tokenize(plan.prompt)),
    )
    if plan.control and facts_b is not None:
        facts_b = replace(facts_b, side=Side.SPECULATIVE)
    facts, ids = (facts_a, facts_b), (ids_a, ids_b)
    reason = refuse(plan.prompt, facts) if refuse is not None else None
    if reason is not None:
        raise PromptError(reason)
    used = max((len(known) for known in ids if known is not None), default=0)
    if prompt_tokens is not None and used > prompt_tokens:
        raise PromptError(sentence("prompt_tokens", used=used, most=prompt_tokens))
    found = checks(facts, ids, plan.prompt, control=plan.control, mode=plan.mode)
    return Preflight(facts, ids, found, _room(plan.prompt, facts, ids))


async def _or_none(ask: Callable[[], Awaitable[T]]) -> T | None:
    # Called here and not before: a question that is cancelled before its turn was then never put.
    try:
        return await ask()
    except EngineError:
        return None


def _room(prompt: Prompt, facts: Facts, ids: tuple[Ids, ...]) -> str | None:
    """Raise if the prompt does not fit; else a sentence if the output will be cut, or None."""
    capped = None
    for side, known, tokens in zip(SIDES, facts, ids, strict=True):
        if known is None or known.max_model_len is None or tokens is None:
            continue
        limit, used, wanted = known.max_model_len, len(tokens), prompt.sampling.max_tokens
        if used >= limit:
            over = used - limit + 1
            raise PromptError(sentence("prompt_over_context", used=used, side=side, limit=limit, over=over))
        if used + wanted > limit:
            capped = sentence("length_capped", used=used, limit=limit, room=limit - used, wanted=wanted)
    return capped
