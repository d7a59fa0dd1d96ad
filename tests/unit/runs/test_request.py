"""Can this prompt be sent at all? One sentence a fault, before anything reaches an engine."""

from __future__ import annotations

from typing import Any

import pytest

from specdemo.core.prompt import Message, Prompt, Sampling, chat
from specdemo.errors import PromptError
from specdemo.runs.request import check_request


@pytest.mark.parametrize(
    "fields,words",
    [
        ({"max_tokens": 0}, "At least one output token"),
        ({"temperature": -0.1}, "temperature must be from 0 to 2"),
        ({"temperature": float("nan")}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"temperature": 0.001}, "use 0 for greedy"),
        ({"top_p": 0.0}, "top_p"),
        ({"top_p": 1.5}, "top_p must be from 0 to 1"),
        ({"min_p": -1.0}, "min_p"),
        ({"top_k": -2}, "top_k"),
        ({"presence_penalty": 3.0}, "presence_penalty"),
        ({"frequency_penalty": -3.0}, "frequency_penalty"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"seed": 2**63}, "64 bits"),
        ({"stop": ("a", "b", "c", "d", "e")}, "At most 4 stop strings"),
        ({"stop": ("",)}, "none of them empty"),
    ],
)
def test_sampling_out_of_range(fields: dict[str, Any], words: str) -> None:
    """A sampling field out of vLLM's range is refused by name."""
    with pytest.raises(PromptError, match=words):
        check_request(chat("x", sampling=Sampling(**fields)))


@pytest.mark.parametrize(
    "prompt,words",
    [
        (Prompt(token_ids=()), "no tokens"),
        (Prompt(text=" "), "empty"),
        (Prompt(messages=(Message("system", "s"), Message("user", ""))), "empty"),
        (chat("x", logprobs=21), "0 to 20"),
    ],
)
def test_prompts_that_cannot_be_sent(prompt: Prompt, words: str) -> None:
    """Nothing to say, or more log-probabilities than engines give, is refused."""
    with pytest.raises(PromptError, match=words):
        check_request(prompt)


@pytest.mark.parametrize(
    "prompt",
    [
        chat("x"),
        chat("x", system="s" * 5, sampling=Sampling(max_tokens=10, temperature=2.0, top_p=0.1, top_k=5, seed=-(2**63))),
        Prompt(text="x"),
        Prompt(token_ids=(1,)),
        chat("\x00 control characters are text \U0001f389", logprobs=0),
    ],
)
def test_prompts_that_can_be_sent(prompt: Prompt) -> None:
    """Everything within the limits passes."""
    check_request(prompt, prompt_chars=60, max_tokens=256)
