"""How far apart the two candidates at a split are, always under the standard engine.

Two sources: the probe (the standard engine asked again after the common text, a prefill) and the log-probabilities that
it streamed while decoding. The smaller gap counts, since either path is the same model. The speculative engine's
log-probabilities are never evidence: it is the one being tested.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from specdemo.core.events import TopToken
from specdemo.core.outcome import Outcome
from specdemo.core.results import VerdictToken
from specdemo.core.run import Probe

LOST = "\ufffd"
"""Stands for bytes that are no whole character: many tokens look like it."""

NONE_BELOW = -9999.0
"""vLLM writes minus infinity so, and other servers a value that they do not have: it measures nothing."""

ROUNDING = 1e-6
"""A log-probability is at most 0, but for this much of rounding."""

SPACES = " \t\r\n\u0120\u010a\u2581"
"""Space at a token's edge, also as vocabularies spell it."""


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
    our_text, their_text = standard.token_text(at), speculative.token_text(at)
    probed: tuple[TopToken, ...] = ()
    if probe is not None and probe.position == at:
        probed = _measured(TopToken(*candidate) for candidate in probe.candidates)
    decoded = _measured(standard.candidates(at))
    error = probe.error if probe is not None and not probed else None
    if ours is None and probed and probed[0].id != theirs:
        ours = probed[0].id  # the standard engine ended here: its choice was the stop token
    mine, other = _Wanted(ours, our_text), _Wanted(theirs, their_text)
    left = _token(mine, (probed, decoded))
    right = _token(other, (probed, decoded))

    asked, asked_bound = _distance(probed, mine, other)
    streamed, streamed_bound = _distance(decoded, mine, other)
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
    return Gap(left, right, nats=abs(nats), top_two=_rank(path, other) <= 1, listed=len(path), error=error)


def _measured(listed: Iterable[TopToken]) -> tuple[TopToken, ...]:
    """Candidates with values that can be measured, best first; none where two are certain at once (fault A18)."""
    kept = [top for top in listed if NONE_BELOW < top.logprob <= ROUNDING]
    if len({(top.id, top.text) for top in kept if top.logprob == 0.0}) > 1:
        return ()
    return tuple(sorted(kept, key=lambda top: -top.logprob))


def _id(outcome: Outcome, at: int) -> int | None:
    ids = outcome.ids or ()
    return ids[at] if at < len(ids) else None


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A token to be found among candidates: its id, and its text where that is known exactly."""

    id: int | None
    text: str | None


def _find(candidates: Sequence[TopToken], token: _Wanted) -> TopToken | None:
    """The candidate with the token's id; among those listed without ids, the only one with exactly its text."""
    if token.id is None:
        return None
    named = next((top for top in candidates if top.id == token.id), None)
    if named is not None or not token.text or LOST in token.text:
        return named
    alike = [top for top in candidates if top.id is None and top.text == token.text]
    return alike[0] if len(alike) == 1 else None


def _listed_unseen(candidates: Sequence[TopToken], ours: _Wanted, theirs: _Wanted) -> bool:
    """Whether a candidate without an id could be theirs after all, or theirs share an entry with one that looks so."""
    nameless = [top.text for top in candidates if top.id is None]
    return bool(nameless) and any(_alike(text, theirs.text) for text in (*nameless, ours.text or ""))


def _alike(left: str, right: str | None) -> bool:
    """Whether two texts may be one token's: servers differ in the space that they leave to a token."""
    if not left or not right or LOST in left or LOST in right:
        return True
    return left.strip(SPACES) == right.strip(SPACES)


def _distance(candidates: Sequence[TopToken], ours: _Wanted, theirs: _Wanted) -> tuple[float | None, float | None]:
    """(logprob of ours - logprob of theirs, lower bound when theirs was certainly not listed)."""
    mine, other = _find(candidates, ours), _find(candidates, theirs)
    if mine is None or mine is other:  # one entry for both: their texts are equal
        return None, None
    if other is not None:
        return mine.logprob - other.logprob, None
    # One candidate bounds nothing, and neither does a list in which the token may stand under another look.
    if theirs.id is None or len(candidates) < 2 or _listed_unseen(candidates, ours, theirs):
        return None, None
    return None, mine.logprob - candidates[-1].logprob


def _rank(candidates: Sequence[TopToken], token: _Wanted) -> int:
    """How many candidates are strictly better than ``token``."""
    own = _find(candidates, token)
    return len(candidates) if own is None else sum(top.logprob > own.logprob for top in candidates)


def _token(token: _Wanted, sources: tuple[Sequence[TopToken], Sequence[TopToken]]) -> VerdictToken:
    """The token as shown: text from the stream if known exactly, else from the standard engine's candidates."""
    found = next((top for top in (_find(source, token) for source in sources) if top is not None), None)
    text = token.text
    if text is None:
        text = found.text if found is not None else ""
    return VerdictToken(token.id, text, found.logprob if found is not None else None)
