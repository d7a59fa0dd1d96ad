"""Payloads of a stream, and feeding them to a reader."""

import json
from typing import Any

from specdemo.core.events import Side, Tokens
from specdemo.engines.wire.completions import CompletionReader, Split

USAGE = {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}}


def feed(*payloads: Any, split: Split | None = None) -> tuple[CompletionReader, list[Tokens]]:
    """Feed payloads, one a second; text goes in raw."""
    reader = CompletionReader(Side.STANDARD, split)
    found = []
    for at, payload in enumerate(payloads):
        data = payload.encode() if isinstance(payload, str) else json.dumps(payload).encode()
        token = reader.feed(data, float(at))
        if token is not None:
            found.append(token)
    return reader, found


def chat(content: Any = None, ids: Any = None, reason: Any = None, **more: Any) -> dict[str, Any]:
    """A chat chunk."""
    choice = {"index": 0, "delta": {"content": content, **more.pop("delta", {})}, "finish_reason": reason}
    if ids is not None:
        choice["token_ids"] = ids
    return {"choices": [{**choice, **more.pop("choice", {})}], **more}


def plain(text: Any = None, ids: Any = None, reason: Any = None, **more: Any) -> dict[str, Any]:
    """A plain completion chunk."""
    return {"choices": [{"index": 0, "text": text, "token_ids": ids, "finish_reason": reason}], **more}
