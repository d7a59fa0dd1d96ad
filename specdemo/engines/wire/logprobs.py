"""Log-probabilities as chat and plain completions carry them → one TokenLogprob a token."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from specdemo.core.events import TokenLogprob, TopToken
from specdemo.engines.wire.fields import count, mapping, number, text

_TAG = "token_id:"


def tagged_id(token: Any) -> int | None:
    """The id in ``token_id:N`` (``return_tokens_as_token_ids``), None for ordinary text."""
    if type(token) is str and token.startswith(_TAG) and (digits := token[len(_TAG) :]).isdecimal():
        return count(int(digits[:16]))
    return None


def logprobs(value: Any, ids: tuple[int, ...]) -> tuple[TokenLogprob, ...] | None:
    """The entries of one choice, None if it has none. Ids are those of the chunk where the counts agree.

    An entry whose values cannot be probabilities (see ``impossible``) keeps its token and loses its values.
    """
    if type(value) is not dict:
        return None
    found = _chat(value["content"]) if type(value.get("content")) is list else _plain(value)
    if not found:
        return None
    if len(ids) == len(found):
        found = [replace(entry, id=token) for token, entry in zip(ids, found, strict=True)]
    return tuple(_blank(entry) if impossible(entry.top) else entry for entry in found)


def impossible(tops: Iterable[TopToken]) -> bool:
    """Whether two tokens or more are certain (0.0) at once: the server had no values and filled them in (A18)."""
    return len({(top.id, top.text) for top in tops if top.logprob == 0.0}) > 1


def _blank(entry: TokenLogprob) -> TokenLogprob:
    return TokenLogprob(entry.id, entry.text, None, ())


def _chat(content: list[Any]) -> list[TokenLogprob]:
    found = []
    for item in content:
        entry = mapping(item)
        tops = entry.get("top_logprobs")
        top = [_top(mapping(alternative)) for alternative in tops] if type(tops) is list else []
        kept = tuple(alternative for alternative in top if alternative is not None)
        token = entry.get("token")
        found.append(TokenLogprob(tagged_id(token), text(token), logprob_of(entry.get("logprob")), kept))
    return found


def _top(entry: dict[str, Any]) -> TopToken | None:
    value = logprob_of(entry.get("logprob"))
    return None if value is None else TopToken(tagged_id(entry.get("token")), text(entry.get("token")), value)


def _plain(value: dict[str, Any]) -> list[TokenLogprob]:
    tokens, values, tops = value.get("tokens"), value.get("token_logprobs"), value.get("top_logprobs")
    if type(tokens) is not list:
        return []
    found = []
    for index, token in enumerate(tokens):
        own = logprob_of(values[index]) if type(values) is list and index < len(values) else None
        top = mapping(tops[index]) if type(tops) is list and index < len(tops) else {}
        pairs = [(name, logprob_of(worth)) for name, worth in top.items()]
        kept = tuple(TopToken(tagged_id(name), name, worth) for name, worth in pairs if worth is not None)
        found.append(TokenLogprob(tagged_id(token), text(token), own, kept))
    return found


def logprob_of(value: Any) -> float | None:
    """A log-probability, or None: it is at most 0; the smallest rounding above is forgiven."""
    found = number(value)
    return None if found is None or found > 1e-6 else min(found, 0.0)


def without_zeros(entries: tuple[TokenLogprob, ...]) -> tuple[TokenLogprob, ...]:
    """All-zero entries with their values taken out (some servers fill in 0.0 when they have none, fault A18).

    A true 0.0 of a very certain token is told apart by its alternatives, which are not 0.
    """
    return tuple(_blank(entry) if _hollow(entry) else entry for entry in entries)


def _hollow(entry: TokenLogprob) -> bool:
    return entry.logprob == 0.0 and all(top.logprob == 0.0 for top in entry.top)


def tells(entries: tuple[TokenLogprob, ...]) -> bool:
    """Whether any entry shows that the server really computed values."""
    return any(entry.logprob is not None and not _hollow(entry) for entry in entries)
