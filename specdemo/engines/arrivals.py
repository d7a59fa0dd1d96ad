"""Is what we measure still what the engine did? Two watches: clumped arrivals, and an event loop that is late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from specdemo.core.events import NoteKind
from specdemo.core.sentences import sentence

SAME_RELEASE_S = 0.002
CLUMP = 4.0
MIN_CHUNKS = 12
MIN_PAUSE_S = 0.05


class ClumpWatch:
    """Tells when a proxy gathers chunks and releases them together (fault B24).

    Chunks that arrive within 2 ms are one release. It is clumping when a release holds four chunks or more on
    average while releases are at least 50 ms apart: an engine that makes steps that fast would not pause, and one
    that pauses would not make such steps.

    At the end one release is enough, if it holds 12 chunks or more and half of all, after a pause as long: the whole
    reply was held back.

    Where the event loop itself was late, so ``busy``, the clumps may be our own and no proxy is blamed. ``began`` is
    when the request was sent (s).
    """

    __slots__ = (
        "_at", "_began", "_busy", "_chunks", "_first", "_largest", "_pause", "_paused", "_releases", "_said", "_size",
        "kind",
    )  # fmt: skip

    def __init__(self, busy: Callable[[], bool] = lambda: False, *, began: float | None = None) -> None:
        self._busy = busy
        self._pause = 0.0  # before the release under way
        self._size = 0  # chunks in it
        self._largest = 0  # chunks in the largest release after a pause
        self._paused = 0.0  # the pause before that one
        self.kind: NoteKind = "clumped"  # of the message
        self._first = 0.0
        self._began = began
        self._at: float | None = None
        self._chunks = 0
        self._releases = 0
        self._said = False

    def feed(self, at: float, chunks: int) -> str | None:
        """``chunks`` with tokens arrived ``at`` (s). The message, once, when clumping shows."""
        if not chunks:
            return None
        if self._at is None:
            self._first = at
            self._releases = 1
            self._pause = at - (at if self._began is None else self._began)
        elif at - self._at > SAME_RELEASE_S:
            self._releases += 1
            self._close()
            self._pause = at - self._at
            # One chunk a release, as from any engine, needs no closer look.
            done = self._judge(at) if self._chunks >= CLUMP * (self._releases - 1) else None
            self._at = at
            self._chunks += chunks
            self._size = chunks
            return done
        self._at = at
        self._chunks += chunks
        self._size += chunks
        return None

    def _close(self) -> None:
        """A release is complete."""
        if self._size > self._largest and self._pause >= MIN_PAUSE_S:
            self._largest, self._paused = self._size, self._pause

    def end(self) -> str | None:
        """The stream is over. The message when most of it came at once, unless clumping was told already."""
        self._close()
        if self._said or self._largest < MIN_CHUNKS or 2 * self._largest < self._chunks:
            return None
        return self._say("held_back", chunks=self._largest, total=self._chunks, seconds=f"{self._paused:.2f}")

    def _say(self, key: str, **values: object) -> str:
        """Once, and as our own doing where we were late ourselves."""
        self._said = True
        busy = self._busy()
        self.kind = "overloaded" if busy else "clumped"
        return sentence(f"{key}_here" if busy else key, **values)

    def _judge(self, at: float) -> str | None:
        """Judged when a new release begins: all earlier ones are complete."""
        complete = self._releases - 1
        mean = self._chunks / complete
        pause = (at - self._first) / complete
        if self._said or self._chunks < MIN_CHUNKS or pause < MIN_PAUSE_S:
            return None
        return self._say("gathered", chunks=f"{mean:.0f}", seconds=f"{pause:.2f}")


LATE_S = 0.005
TICK_S = 0.01


@dataclass(frozen=True, slots=True)
class LagMark:
    """Counts at some moment, to subtract later."""

    ticks: int
    late: int


class LagMonitor:
    """Measures how late the event loop runs its timers: arrival stamps can be off by as much.

    Runs only while somebody watches. ``message`` compares with a mark taken earlier.
    """

    def __init__(self) -> None:
        self._watchers = 0
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._ticks = 0
        self._late = 0

    def start(self) -> LagMark:
        """Watch from now on."""
        self._watchers += 1
        if self._timer is None:
            self._schedule(asyncio.get_running_loop())
        return LagMark(self._ticks, self._late)

    def stop(self) -> None:
        """One watcher less."""
        self._watchers -= 1
        if not self._watchers and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def record(self, late_s: float, times: int = 1) -> None:
        """Count ticks that came ``late_s`` late."""
        self._ticks += times
        if late_s > LATE_S:
            self._late += times

    def message(self, since: LagMark) -> str | None:
        """A sentence when more than 1 % of the ticks, and at least three, were over 5 ms late."""
        ticks, late = self._ticks - since.ticks, self._late - since.late
        if late < 3 or late * 100 <= ticks:
            return None
        return (
            f"This app was too busy at times ({late} of {ticks} checks came over 5 ms late), so some arrival times "
            "may be off by that much; run fewer things at once."
        )

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        self._due = loop.time() + TICK_S
        self._timer = loop.call_at(self._due, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        late = loop.time() - self._due
        # A tick that is 50 ms late stands for five that never came.
        self.record(late, 1 + int(late / TICK_S))
        self._schedule(loop)
