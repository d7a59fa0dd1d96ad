"""What is asked of both engines: one prompt with every sampling field spelled out.

Servers fill in fields that a request leaves out from the model's generation config, and silently
(reported fault A04), so a :class:`Sampling` has a value for each and all of them are sent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["system", "user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Every sampling field, sent to both sides in full.

    ``temperature`` 0 is greedy decoding. ``top_k`` 0 means off, ``min_p`` 0 means off.
    ``seed`` None sends none. Lengths are in tokens.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False

    @property
    def greedy(self) -> bool:
        """Whether the next token is always the most probable one (temperature exactly 0)."""
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request, the same for both sides.

    Exactly one of ``messages`` (chat completions), ``text`` or ``token_ids`` (plain completions) is set.
    ``logprobs``: None asks for none; 0 for the sampled token's own; n>0 also for the n best.
    """

    messages: tuple[Message, ...] = ()
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    sampling: Sampling = field(default_factory=Sampling)
    logprobs: int | None = None

    @property
    def is_chat(self) -> bool:
        """Whether it goes to chat completions (the engine applies the chat template)."""
        return bool(self.messages)

    @property
    def greedy(self) -> bool:
        """Whether a token-by-token identity claim can make sense at all."""
        return self.sampling.greedy


def chat(user: str, *, system: str = "", sampling: Sampling | None = None, logprobs: int | None = None) -> Prompt:
    """A one-turn chat prompt; an empty ``system`` sends no system message."""
    turns: tuple[Message, ...] = (Message("user", user),)
    if system:
        turns = (Message("system", system), *turns)
    return Prompt(messages=turns, sampling=sampling or Sampling(), logprobs=logprobs)
