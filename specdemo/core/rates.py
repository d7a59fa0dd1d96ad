"""The live tokens/s: an exponentially forgotten ratio of tokens to time, fed once per chunk."""

from __future__ import annotations

from math import exp

FORGETTING_S = 1.0
"""Time constant. 1 s gave the smallest error at 60 to 200 tokens/s that still answers a change within 1.5 s."""

WARM_S = 1.0
"""Below this much data no rate is claimed."""


class LiveRate:
    """Tokens per second over the recent past.

    It cannot spike: the tokens of a chunk are divided by the time since the chunk before, however long that was.
    It falls during a stall, once the silence is longer than two usual gaps. The first chunk only starts the clock.
    """

    __slots__ = ("_events", "_first", "_last", "_seconds", "_tokens")

    def __init__(self) -> None:
        self._first: float | None = None
        self._last = 0.0
        self._tokens = 0.0
        self._seconds = 0.0
        self._events = 0.0

    def feed(self, at: float, tokens: int) -> None:
        """A chunk of ``tokens`` arrived at ``at`` (s)."""
        if self._first is None:
            self._first = self._last = at
            return
        gap = at - self._last
        keep = exp(-gap / FORGETTING_S) if gap > 0.0 else 1.0
        self._tokens = self._tokens * keep + tokens
        self._seconds = self._seconds * keep + max(0.0, gap)
        self._events = self._events * keep + 1.0
        self._last = max(self._last, at)

    def value(self, now: float) -> float | None:
        """Tokens/s at ``now`` (s), None while it is too early to say."""
        if self._first is None or self._seconds <= 0.0 or now - self._first < WARM_S:
            return None
        usual_gap = self._seconds / self._events
        silence = max(0.0, now - self._last)
        return self._tokens / (self._seconds + max(0.0, silence - 2.0 * usual_gap))
