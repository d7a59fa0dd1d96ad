"""The chunk that a stream mostly consists of, decoded in one strict step: one choice with text and ids, nothing else.

Whatever is in the least unusual (another type, a finish reason, usage, logprobs, an error) is not decided here but
read by the tolerant reader of ``completions``; for ordinary chunks both give the same, which is tested. This halves the
cost of a chunk (benchmarks/client_capacity.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec

from specdemo.core.events import Side, TokenLogprob, Tokens
from specdemo.engines.wire.fields import MAX_COUNT

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]


# A field of type None is one that an ordinary chunk leaves out or sets to null: any value ends the strict step at once.


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: None = None
    thinking: None = None
    reasoning_text: None = None


class _Choice(msgspec.Struct, gc=False):
    index: Literal[0] | None = 0
    text: str | None = None
    delta: _Delta | None = None
    token_ids: tuple[_Count, ...] | None = None
    finish_reason: None = None
    logprobs: None = None
    message: None = None
    reasoning: None = None
    prompt_token_ids: None = None
    error: None = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: None = None
    error: None = None
    errors: None = None
    metrics: None = None
    prompt_token_ids: None = None


_decode = msgspec.json.Decoder(_Chunk).decode

Ordinary = tuple[tuple[int, ...], str, str, bool]
"""Ids, text, reasoning, and whether the chunk names ids at all."""


def ordinary(data: bytes) -> Ordinary | None:
    """The content of an ordinary chunk; None for any other payload, which says nothing about it."""
    try:
        (choice,) = _decode(data).choices
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    ids, delta = choice.token_ids, choice.delta
    if delta is None:
        return ids or (), choice.text or "", "", ids is not None
    return ids or (), delta.content or "", delta.reasoning or "", ids is not None


@dataclass(slots=True)
class _Unfrozen:
    """The fields of Tokens, in its order: the initializer of a frozen class costs four times as much as this one."""

    side: Side
    at: float
    ids: tuple[int, ...]
    text: str
    reasoning: str
    pieces: tuple[str, ...] | None
    logprobs: tuple[TokenLogprob, ...] | None
    reported_total: int | None


def made(side: Side, at: float, ids: tuple[int, ...], text: str, pieces: tuple[str, ...] | None) -> Tokens:
    """``Tokens(side, at, ids, text, "", pieces)``, in a third of the time; frozen from here on."""
    found: Any = _Unfrozen(side, at, ids, text, "", pieces, None, None)
    found.__class__ = Tokens
    tokens: Tokens = found
    return tokens
