"""Small JSON replies of an engine → values. A wrong shape gives None or an EngineProtocolError, nothing else."""

from __future__ import annotations

from typing import Any

from specdemo.core.events import TopToken
from specdemo.engines.wire import fields
from specdemo.engines.wire.logprobs import impossible, logprob_of, logprobs
from specdemo.errors import EngineProtocolError


def token_ids(payload: Any) -> tuple[int, ...] | None:
    """/tokenize."""
    return fields.counts(fields.mapping(payload).get("tokens"))


def detokenized(payload: Any) -> str:
    """/detokenize."""
    return fields.text(fields.mapping(payload).get("prompt"))


def models(payload: Any) -> list[dict[str, Any]]:
    """/v1/models: entries with an id, in the server's order."""
    data = fields.mapping(payload).get("data")
    entries = [fields.mapping(item) for item in data] if isinstance(data, list) else []
    return [entry for entry in entries if fields.text(entry.get("id"))]


def version(payload: Any) -> str | None:
    """/version."""
    return fields.text(fields.mapping(payload).get("version")) or None


def _first_choice(payload: Any) -> dict[str, Any]:
    choices = fields.mapping(payload).get("choices")
    return fields.mapping(choices[0]) if isinstance(choices, list) and choices else {}


def candidates(payload: Any) -> dict[int, float]:
    """A one-token probe: id → log-probability. Raises EngineProtocolError if there are none, or none that can be."""
    entries = logprobs(_first_choice(payload).get("logprobs"), ())
    if not entries:
        raise EngineProtocolError("The engine did not return the log-probabilities that were asked for.")
    if entries[0].logprob is None and not entries[0].top:
        raise EngineProtocolError("The log-probabilities that the engine returned cannot be right, so none is used.")
    found = {top.id: top.logprob for top in entries[0].top if top.id is not None}
    first = entries[0]
    if first.id is not None and first.logprob is not None:
        found.setdefault(first.id, first.logprob)
    return found


Scored = tuple[int, float, int, tuple[TopToken, ...]]
"""Token id, log-probability, rank, candidates best first."""


def scored(payload: Any, ids: list[int], first: int) -> list[Scored]:
    """``prompt_logprobs``: one entry for each of ``ids[first:]``."""
    body = fields.mapping(payload)
    entries = _first_choice(body).get("prompt_logprobs", body.get("prompt_logprobs"))
    if not isinstance(entries, list) or len(entries) < len(ids):
        raise EngineProtocolError("The engine did not return prompt log-probabilities for every position.")
    return [_position(fields.mapping(entries[index]), ids[index]) for index in range(first, len(ids))]


def _position(entry: dict[str, Any], token: int) -> Scored:
    tops: list[TopToken] = []
    own: tuple[float, int] | None = None
    for name, raw in entry.items():
        value = fields.mapping(raw)
        worth = logprob_of(value.get("logprob"))
        if worth is None or not name.isdecimal():
            continue
        number = int(name[:16])
        tops.append(TopToken(number, fields.text(value.get("decoded_token")), worth))
        if number == token:
            own = (worth, fields.count(value.get("rank")) or 0)
    tops.sort(key=lambda top: -top.logprob)
    if impossible(tops):
        raise EngineProtocolError("The log-probabilities that the engine returned cannot be right, so none is used.")
    if own is None:
        raise EngineProtocolError("The engine left the text's own token out of its prompt log-probabilities.")
    better = sum(top.logprob > own[0] for top in tops)
    return token, own[0], own[1] or better + 1, tuple(tops)
