"""When a dead engine is started again by itself, and when that stops. Pure: the time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """``first_s``, twice that, … up to ``cap_s``; at most ``limit`` restarts within ``window_s``, then none."""

    first_s: float = 3.0
    cap_s: float = 60.0
    limit: int = 3
    window_s: float = 600.0
    _deaths: list[float] = field(default_factory=list)

    def next_delay(self, now: float) -> float | None:
        """Seconds until the restart after a death at ``now``, None if it must wait for a person."""
        self._deaths = [at for at in self._deaths if now - at < self.window_s]
        if len(self._deaths) >= self.limit:
            return None
        self._deaths.append(now)
        return min(self.cap_s, self.first_s * 2.0 ** (len(self._deaths) - 1))

    def reset(self) -> None:
        """A person asked for a start: count afresh."""
        self._deaths.clear()
