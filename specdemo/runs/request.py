"""Is this prompt one that can be sent at all? Checked before anything reaches an engine, one sentence a fault."""

from __future__ import annotations

import math

from specdemo.core.prompt import Prompt, Sampling
from specdemo.core.sentences import sentence
from specdemo.errors import PromptError

SEED_BOUND = 2**63
MOST_STOPS = 4
"""vLLM's own limit (VLLM_MAX_STOP_STRINGS)."""
LEAST_TEMPERATURE = 0.01
"""vLLM raises a smaller temperature to this one, silently; so it is refused here."""


def check_request(prompt: Prompt, *, prompt_chars: int | None = None, max_tokens: int | None = None) -> None:
    """Raise PromptError if the prompt is empty, over a limit, not text, or a sampling field is out of range."""
    texts = [message.content for message in prompt.messages] if prompt.is_chat else [prompt.text or ""]
    if prompt.token_ids is None:
        _check_text(prompt, texts, prompt_chars)
    elif not prompt.token_ids:
        raise PromptError(sentence("prompt_no_tokens"))
    _check_sampling(prompt.sampling, max_tokens)
    if prompt.logprobs is not None and not 0 <= prompt.logprobs <= 20:
        raise PromptError(sentence("logprobs_range", count=prompt.logprobs))


def _check_text(prompt: Prompt, texts: list[str], prompt_chars: int | None) -> None:
    asked = prompt.messages[-1].content if prompt.is_chat else texts[0]
    if not asked.strip():
        raise PromptError(sentence("prompt_empty"))
    length = sum(len(text) for text in texts)
    if prompt_chars is not None and length > prompt_chars:
        raise PromptError(sentence("prompt_long", length=length, most=prompt_chars))
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise PromptError(sentence("prompt_surrogate")) from None


def _check_sampling(sampling: Sampling, most: int | None) -> None:
    if sampling.max_tokens < 1:
        raise PromptError(sentence("max_tokens_low", count=sampling.max_tokens))
    if most is not None and sampling.max_tokens > most:
        raise PromptError(sentence("max_tokens_high", most=most, count=sampling.max_tokens))
    for name, value, low, high in (
        ("temperature", sampling.temperature, 0.0, 2.0),
        ("top_p", sampling.top_p, 0.0, 1.0),
        ("min_p", sampling.min_p, 0.0, 1.0),
        ("presence_penalty", sampling.presence_penalty, -2.0, 2.0),
        ("frequency_penalty", sampling.frequency_penalty, -2.0, 2.0),
        ("repetition_penalty", sampling.repetition_penalty, 0.0, 10.0),
    ):
        if not math.isfinite(value) or not low <= value <= high:
            raise PromptError(sentence("field_range", name=name, low=low, high=high, value=value))
    if sampling.top_p == 0.0 or sampling.repetition_penalty == 0.0:
        raise PromptError(sentence("field_zero"))
    if 0.0 < sampling.temperature < LEAST_TEMPERATURE:
        raise PromptError(sentence("temperature_low", temperature=sampling.temperature, least=LEAST_TEMPERATURE))
    if sampling.top_k < 0:
        raise PromptError(sentence("top_k_negative", value=sampling.top_k))
    if sampling.seed is not None and not -SEED_BOUND <= sampling.seed < SEED_BOUND:
        raise PromptError(sentence("seed_range"))
    if len(sampling.stop) > MOST_STOPS or not all(sampling.stop):
        raise PromptError(sentence("stops_many", most=MOST_STOPS))
