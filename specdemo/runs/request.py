"""Is this prompt one that can be sent at all? Checked before anything reaches an engine, one sentence a fault."""

from __future__ import annotations

import math

from specdemo.core.prompt import Prompt, Sampling
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
        raise PromptError("The prompt has no tokens; give at least one.")
    _check_sampling(prompt.sampling, max_tokens)
    if prompt.logprobs is not None and not 0 <= prompt.logprobs <= 20:
        raise PromptError(f"Log-probabilities can be asked for 0 to 20 candidates, not {prompt.logprobs}.")


def _check_text(prompt: Prompt, texts: list[str], prompt_chars: int | None) -> None:
    asked = prompt.messages[-1].content if prompt.is_chat else texts[0]
    if not asked.strip():
        raise PromptError("The prompt is empty; type something to send to both engines.")
    length = sum(len(text) for text in texts)
    if prompt_chars is not None and length > prompt_chars:
        raise PromptError(
            f"The prompt has {length} characters and at most {prompt_chars} are allowed here; shorten it."
        )
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise PromptError("The prompt holds half a character (a lone surrogate); paste the text again.") from None


def _check_sampling(sampling: Sampling, most: int | None) -> None:
    if sampling.max_tokens < 1:
        raise PromptError(f"At least one output token must be allowed, not {sampling.max_tokens}.")
    if most is not None and sampling.max_tokens > most:
        raise PromptError(f"At most {most} output tokens are allowed here, not {sampling.max_tokens}.")
    for name, value, low, high in (
        ("temperature", sampling.temperature, 0.0, 2.0),
        ("top_p", sampling.top_p, 0.0, 1.0),
        ("min_p", sampling.min_p, 0.0, 1.0),
        ("presence_penalty", sampling.presence_penalty, -2.0, 2.0),
        ("frequency_penalty", sampling.frequency_penalty, -2.0, 2.0),
        ("repetition_penalty", sampling.repetition_penalty, 0.0, 10.0),
    ):
        if not math.isfinite(value) or not low <= value <= high:
            raise PromptError(f"{name} must be from {low:g} to {high:g}, not {value:g}.")
    if sampling.top_p == 0.0 or sampling.repetition_penalty == 0.0:
        raise PromptError("top_p and repetition_penalty must be above 0; 1 turns either off.")
    if 0.0 < sampling.temperature < LEAST_TEMPERATURE:
        raise PromptError(
            f"vLLM raises a temperature of {sampling.temperature:g} to {LEAST_TEMPERATURE:g}, which is random; "
            "use 0 for greedy decoding."
        )
    if sampling.top_k < 0:
        raise PromptError(f"top_k must be 0 (off) or more, not {sampling.top_k}.")
    if sampling.seed is not None and not -SEED_BOUND <= sampling.seed < SEED_BOUND:
        raise PromptError("The seed must fit into 64 bits.")
    if len(sampling.stop) > MOST_STOPS or not all(sampling.stop):
        raise PromptError(f"At most {MOST_STOPS} stop strings can be given, none of them empty.")
