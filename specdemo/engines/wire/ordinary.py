"""The chunk that a stream mostly consists of, decoded in one strict step: one choice with text and ids, nothing else.

Whatever is in the least unusual (another type, a finish reason, usage, logprobs, an error) is not decided here but
read by the tolerant reader of ``completions``; for ordinary chunks both give the same, which is tested. This halves the
cost of a chunk (benchmarks/client_capacity.py).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from specdemo.engines.wire.fields import MAX_COUNT

_Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_COUNT)]


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: Any = None


class _Choice(msgspec.Struct, gc=False):
    index: Any = 0
    text: str | None = None
    delta: _Delta | None = None
    token_ids: tuple[_Count, ...] | None = None
    finish_reason: Any = None
    logprobs: Any = None
    message: Any = None
    reasoning: Any = None
    prompt_token_ids: Any = None


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_Choice]
    usage: Any = None
    error: Any = None
    metrics: Any = None
    prompt_token_ids: Any = None


_decode = msgspec.json.Decoder(_Chunk).decode

Ordinary = tuple[tuple[int, ...], str, str, bool]
"""Ids, text, reasoning, and whether the chunk names ids at all."""


def ordinary(data: bytes) -> Ordinary | None:
    """The content of an ordinary chunk; None for any other payload, which says nothing about it."""
    try:
        chunk = _decode(data)
        (choice,) = chunk.choices
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    if (
        choice.finish_reason is not None
        or choice.logprobs is not None
        or chunk.usage is not None
        or chunk.error is not None
        or chunk.metrics is not None
        or chunk.prompt_token_ids is not None
        or choice.prompt_token_ids is not None
        or choice.index
        or choice.message is not None
    ):
        return None
    ids, delta = choice.token_ids, choice.delta
    if delta is None:
        if choice.reasoning is not None:
            return None
        return ids or (), choice.text or "", "", ids is not None
    if delta.reasoning_content is not None:
        return None
    return ids or (), delta.content or "", delta.reasoning or "", ids is not None
