"""How far apart the two candidates at a split are, always under the standard engine.

Two sources: the probe (the standard engine asked again after the common text, a prefill) and the log-probabilities that
it streamed while decoding. The smaller gap counts, since either path is the same model. The speculative engine's
log-probabilities are never evidence: it is the one being tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from specdemo.core.events import TopToken
from specdemo.core.outcome import Outcome
from specdemo.core.results import VerdictToken
from specdemo.core.run import Probe


@dataclass(frozen=True, slots=True)
class Gap:
    """``nats`` is the distance of the two candidates, None if unknown; ``at_least`` a bound when one was not listed.

    ``flipped``: the standard engine, asked again, prefers the speculative token. ``top_two``: the speculative token is
    one of its best two. ``listed`` is how many candidates it listed.
    """

    standard: VerdictToken
    speculative: VerdictToken
    nats: float | None = None
    at_least: float | None = None
    flipped: bool = False
    top_two: bool = False
    listed: int = 0
    error: str | None = None


def measure(standard: Outcome, speculative: Outcome, at: int, probe: Probe | None) -> Gap:
    """The gap at output token ``at`` (from 0)."""
    ours, theirs = _id(standard, at), _id(speculative, at)
    probed: tuple[TopToken, ...] = ()
    if probe is not None and probe.position == at:
        probed = tuple(sorted((TopToken(*candidate) for candidate in probe.candidates), key=lambda top: -top.logprob))
    decoded = standard.candidates(at)
    error = probe.error if probe is not None and not probed else None
    if ours is None and probed and probed[0].id != theirs:
        ours = probed[0].id  # the standard engine ended here: its choice was the stop token
    left = _token(standard, at, ours, (probed, decoded))
    right = _token(speculative, at, theirs, (probed, decoded))

    asked, asked_bound = _distance(probed, ours, theirs)
    streamed, streamed_bound = _distance(decoded, ours, theirs)
    flipped = asked is not None and asked < 0.0
    if flipped and asked is not None:
        return Gap(left, right, nats=-asked, flipped=True, top_two=True, listed=len(probed))
    known = [(value, path) for value, path in ((asked, probed), (streamed, decoded)) if value is not None]
    if not known:
        bounds = [bound for bound in (asked_bound, streamed_bound) if bound is not None]
        return Gap(
            left, right, at_least=min(bounds) if bounds else None, listed=max(len(probed), len(decoded)), error=error
        )
    nats, path = min(known, key=lambda pair: abs(pair[0]))
    return Gap(left, right, nats=abs(nats), top_two=_rank(path, theirs) <= 1, listed=len(path), error=error)


def _id(outcome: Outcome, at: int) -> int | None:
    ids = outcome.ids or ()
    return ids[at] if at < len(ids) else None


def _find(candidates: Sequence[TopToken], token: int | None) -> TopToken | None:
    return next((top for top in candidates if top.id == token), None) if token is not None else None


def _distance(
    candidates: Sequence[TopToken], ours: int | None, theirs: int | None
) -> tuple[float | None, float | None]:
    """(logprob of ours - logprob of theirs, lower bound when theirs was not listed)."""
    mine, other = _find(candidates, ours), _find(candidates, theirs)
    if mine is None:
        return None, None
    if other is not None:
        return mine.logprob - other.logprob, None
    if theirs is None or len(candidates) < 2:  # one candidate bounds nothing
        return None, None
    return None, mine.logprob - candidates[-1].logprob


def _rank(candidates: Sequence[TopToken], token: int | None) -> int:
    """How many candidates are strictly better than ``token``."""
    own = _find(candidates, token)
    return len(candidates) if own is None else sum(top.logprob > own.logprob for top in candidates)


def _token(
    outcome: Outcome, at: int, token: int | None, sources: tuple[Sequence[TopToken], Sequence[TopToken]]
) -> VerdictToken:
    """The token as shown: text from the stream if known exactly, else from the standard engine's candidates."""
    found = next((top for top in (_find(source, token) for source in sources) if top is not None), None)
    text = outcome.token_text(at)
    if text is None:
        text = found.text if found is not None else ""
    return VerdictToken(token, text, found.logprob if found is not None else None)
