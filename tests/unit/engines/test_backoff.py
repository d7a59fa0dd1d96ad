"""When a dead engine is started again by itself."""

from __future__ import annotations

from specdemo.engines.backoff import Backoff


def test_delays_grow_and_end() -> None:
    """3, 6, 12 s, then a person must decide."""
    backoff = Backoff(first_s=3.0, limit=3)
    assert [backoff.next_delay(now) for now in (0.0, 10.0, 20.0, 30.0)] == [3.0, 6.0, 12.0, None]


def test_delays_are_capped() -> None:
    """No wait is longer than the cap."""
    backoff = Backoff(first_s=10.0, cap_s=25.0, limit=5)
    assert [backoff.next_delay(0.0) for _ in range(4)] == [10.0, 20.0, 25.0, 25.0]


def test_old_deaths_are_forgotten() -> None:
    """An engine that ran well for the window starts afresh, and so does one that a person restarted."""
    backoff = Backoff(limit=1, window_s=100.0)
    assert backoff.next_delay(0.0) == 3.0
    assert backoff.next_delay(50.0) is None
    assert backoff.next_delay(151.0) == 3.0
    backoff.reset()
    assert backoff.next_delay(152.0) == 3.0
