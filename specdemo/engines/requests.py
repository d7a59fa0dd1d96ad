"""Prompts → request bodies. Every sampling field is spelled out, since servers fill gaps silently (fault A04)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specdemo.core.prompt import Prompt, Sampling


def path(prompt: Prompt) -> str:
    """Below the API root."""
    return "/chat/completions" if prompt.is_chat else "/completions"


def sampling_fields(sampling: Sampling) -> dict[str, Any]:
    """All of them, whatever their value; only a seed that is None is left out."""
    fields: dict[str, Any] = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "repetition_penalty": sampling.repetition_penalty,
        "stop": list(sampling.stop),
        "ignore_eos": sampling.ignore_eos,
        "n": 1,
    }
    if sampling.seed is not None:
        fields["seed"] = sampling.seed
    return fields


def prompt_fields(prompt: Prompt) -> dict[str, Any]:
    """What is asked: messages, a text, or token ids."""
    if prompt.is_chat:
        return {"messages": [{"role": turn.role, "content": turn.content} for turn in prompt.messages]}
    return {"prompt": list(prompt.token_ids) if prompt.token_ids is not None else prompt.text or ""}


def streamed(prompt: Prompt, model: str, cache_salt: str | None) -> dict[str, Any]:
    """The body of a streamed request."""
    body: dict[str, Any] = {
        "model": model,
        **prompt_fields(prompt),
        **sampling_fields(prompt.sampling),
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_token_ids": True,
    }
    if prompt.logprobs is not None:
        if prompt.is_chat:
            body |= {"logprobs": True, "top_logprobs": prompt.logprobs}
        else:
            body["logprobs"] = prompt.logprobs
    if cache_salt:
        body["cache_salt"] = cache_salt
    return body


def tokenized(prompt: Prompt, model: str) -> dict[str, Any]:
    """The body for /tokenize; a chat gets its template and the opening of the answer, as for generation."""
    extra = {"add_generation_prompt": True} if prompt.is_chat else {}
    return {"model": model, **prompt_fields(prompt), **extra}


def probe(token_ids: Sequence[int], model: str, top: int, wanted: Sequence[int] = ()) -> dict[str, Any]:
    """One greedy token after ``token_ids``, with its ``top`` candidates, named by id."""
    body: dict[str, Any] = {
        "model": model, "prompt": list(token_ids), **sampling_fields(Sampling(max_tokens=1)), "logprobs": top,
        "return_token_ids": True, "return_tokens_as_token_ids": True,
    }  # fmt: skip
    if wanted:
        body["logprob_token_ids"] = list(wanted)
    return body


def scoring(token_ids: Sequence[int], model: str, top: int) -> dict[str, Any]:
    """Log-probabilities of a given text, all positions in one request."""
    fields = sampling_fields(Sampling(max_tokens=1))
    return {"model": model, "prompt": list(token_ids), **fields, "prompt_logprobs": top}
