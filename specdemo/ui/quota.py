"""How much one visitor may ask for, and when the answer is no.

Every budget is charged twice: to the visitor (cookie), and to the address, which may use up ``per_address`` visitors'
worth; so throwing the cookie away buys nothing, and an office behind one address is not one visitor. Who has no cookie
is one visitor together with all others of that address who have none.

Token buckets on a monotonic clock, at most ``MOST_KEYS`` of them. Own, since the usual library for this reads the wall
clock and starts a thread a request.
"""

from __future__ import annotations

import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from specdemo.errors import UsageError
from specdemo.ui.i18n import Lang, say, tell
from specdemo.ui.visitors import Visitor

MOST_KEYS = 20_000
"""Visitors and addresses remembered; the ones longest unheard of are forgotten first."""
MINUTE = 60.0

Release = Callable[[], None]
"""Gives back what was held; again is harmless."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one visitor may have; None sets no limit.

    ``runs_per_minute`` and ``requests_per_minute`` may be used up at once and then come back evenly. ``open_runs``
    counts running and waiting ones. ``streams`` are event streams held open. ``sign_ins_per_minute`` are wrong
    passwords from one address.
    """

    runs_per_minute: int | None = None
    open_runs: int | None = None
    requests_per_minute: int | None = None
    streams: int | None = None
    sign_ins_per_minute: int = 10
    per_address: int = 5


class Refused(UsageError):
    """A limit was reached. ``reason`` is its stable name, ``retry_s`` when to come again (s), if that is known."""

    kind = "limit"

    def __init__(self, reason: str, *, retry_s: float | None = None, **values: object) -> None:
        self.reason = reason
        self.retry_s = None if retry_s is None else max(1, round(retry_s + 0.5))
        self._values = {**values, "seconds": self.retry_s or 0}
        super().__init__(self.text("en"))

    def text(self, lang: Lang) -> str:
        """The sentence for the visitor."""
        return say(lang, f"limit_{self.reason}", **self._values)


def worded(error: Exception, lang: Lang) -> str:
    """An error's sentence, in the visitor's language where it has one."""
    return error.text(lang) if isinstance(error, Refused) else tell(lang, str(error))


class _Buckets:
    """One token bucket a key: ``rate`` tokens a minute, at most ``rate`` saved up."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, key: str, rate: float) -> float:
        """Seconds until ``key`` may take a token; 0 when it may now."""
        left = self._left(key, rate)
        return 0.0 if left >= 1 else (1 - left) * MINUTE / rate

    def take(self, key: str, rate: float) -> None:
        """Take one token."""
        self._held[key] = (self._left(key, rate) - 1, self._clock())
        self._held.move_to_end(key)
        while len(self._held) > MOST_KEYS:
            self._held.popitem(last=False)

    def _left(self, key: str, rate: float) -> float:
        left, at = self._held.get(key, (rate, self._clock()))
        return min(rate, left + (self._clock() - at) * rate / MINUTE)


class Quota:
    """The limits of one page, and who has used how much of them. ``closing`` refuses every new run: the page ends."""

    def __init__(self, allowance: Allowance | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.allowance = allowance or Allowance()
        self.closing = False
        self._buckets = _Buckets(clock)
        self._open: Counter[str] = Counter()

    def request(self, visitor: Visitor, *, weight: str = "request") -> None:
        """Charge one request. Raises Refused. Static files ("file") have a budget of their own, ten times as large."""
        rate = self.allowance.requests_per_minute
        if rate is not None:
            self._charge(visitor, weight, rate * (10 if weight == "file" else 1), "requests")

    def run(self, visitor: Visitor) -> Release:
        """Charge one run and hold its place until the answer is called. Raises Refused."""
        limits = self.allowance
        if self.closing:
            raise Refused("closing")
        self._check_open(visitor, "run", limits.open_runs, "open_runs")
        if limits.runs_per_minute is not None:
            self._charge(visitor, "run", limits.runs_per_minute, "runs")
        return self._hold(visitor, "run")

    def stream(self, visitor: Visitor) -> Release:
        """Hold one open event stream until the answer is called. Raises Refused."""
        self._check_open(visitor, "stream", self.allowance.streams, "streams")
        return self._hold(visitor, "stream")

    def sign_in_wait(self, visitor: Visitor) -> float:
        """Seconds for which this address may not try a password; 0 when it may."""
        return self._buckets.wait(f"sign-in {visitor.address}", self.allowance.sign_ins_per_minute)

    def sign_in_failed(self, visitor: Visitor) -> None:
        """Note a wrong password."""
        self._buckets.take(f"sign-in {visitor.address}", self.allowance.sign_ins_per_minute)

    def _charge(self, visitor: Visitor, what: str, rate: int, reason: str) -> None:
        keys = self._keys(visitor, what, rate)
        wait = max(self._buckets.wait(key, most) for key, most in keys)
        if wait > 0:
            raise Refused(reason, retry_s=wait, limit=rate)
        for key, most in keys:
            self._buckets.take(key, most)

    def _check_open(self, visitor: Visitor, what: str, limit: int | None, reason: str) -> None:
        if limit is not None and any(self._open[key] >= most for key, most in self._keys(visitor, what, limit)):
            raise Refused(reason, limit=limit)

    def _hold(self, visitor: Visitor, what: str) -> Release:
        keys = [key for key, _ in self._keys(visitor, what, 1)]
        self._open.update(keys)

        def release() -> None:
            while keys:
                key = keys.pop()
                self._open[key] -= 1
                if self._open[key] <= 0:
                    del self._open[key]

        return release

    def _keys(self, visitor: Visitor, what: str, limit: int) -> list[tuple[str, int]]:
        own = visitor.id or f"anybody@{visitor.address}"
        return [(f"{what} {own}", limit), (f"{what} @{visitor.address}", limit * self.allowance.per_address)]
