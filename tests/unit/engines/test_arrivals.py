"""The two watches over our own measuring."""

import asyncio

from specdemo.engines.arrivals import ClumpWatch, LagMark, LagMonitor


def clumps(*arrivals: tuple[float, int]) -> list[str]:
    """Messages for these (time, chunks)."""
    watch = ClumpWatch()
    return [message for at, chunks in arrivals if (message := watch.feed(at, chunks)) is not None]


def test_a_buffering_proxy_is_noticed_once() -> None:
    """64 events every 2 s are stated once, with the figures (B24)."""
    found = clumps(*[(2.0 * turn, 64) for turn in range(5)])
    assert len(found) == 1
    assert "64 chunks" in found[0]
    assert "2.00 s" in found[0]


def test_our_own_lateness_blames_no_proxy() -> None:
    """The same clumps while our loop is late are told as our own doing, under the kind that says so."""
    late = LagMonitor()
    mark = LagMark(0, 0)
    watch = ClumpWatch(lambda: late.message(mark) is not None)
    late.record(0.1, 5)
    found = [message for turn in range(5) if (message := watch.feed(2.0 * turn, 64)) is not None]
    assert len(found) == 1
    assert found[0].startswith("This app was too busy to read the stream")
    assert watch.kind == "overloaded"


def test_one_release_may_come_in_several_reads() -> None:
    """Reads a millisecond apart are one release."""
    assert clumps(*[(turn + part / 1000, 8) for turn in range(3) for part in range(4)])


def test_engines_as_they_are_raise_no_alarm() -> None:
    """One chunk a step, very fast steps read together, a short answer, empty reads."""
    assert clumps(*[(0.05 * turn, 1) for turn in range(200)]) == []
    assert clumps(*[(0.01 * turn, 5) for turn in range(200)]) == []
    assert clumps((0.0, 5), (1.0, 5)) == []
    assert clumps((0.0, 0), (1.0, 64)) == []


async def test_lateness_of_the_loop_is_measured() -> None:
    """A blocked loop shows as late ticks; the monitor stops with its last watcher."""
    monitor = LagMonitor()
    first, second = monitor.start(), monitor.start()
    assert monitor.message(first) is None
    loop = asyncio.get_running_loop()
    for _ in range(4):
        end = loop.time() + 0.03
        while loop.time() < end:
            pass
        await asyncio.sleep(0.011)
    assert "too busy" in (monitor.message(second) or "")
    monitor.stop()
    assert monitor._timer is not None
    monitor.stop()
    assert monitor._timer is None


def test_the_share_decides() -> None:
    """Three late ticks of a hundred count, two do not, nor one in a hundred."""
    monitor, start = LagMonitor(), LagMark(0, 0)
    monitor.record(0.0, 97)
    monitor.record(0.006, 2)
    assert monitor.message(start) is None
    monitor.record(0.006)
    assert "3 of 100" in (monitor.message(start) or "")
    monitor.record(0.0, 200)
    assert monitor.message(start) is None


def at_end(*arrivals: tuple[float, int], busy: bool = False) -> str | None:
    """What is told at the end of a stream that was asked for at 0 s."""
    watch = ClumpWatch(lambda: busy, began=0.0)
    for at, chunks in arrivals:
        watch.feed(at, chunks)
    message = watch.end()
    assert watch.end() is None or message is None
    assert (watch.kind == "overloaded") == (busy and message is not None)
    return message


def test_a_reply_that_is_held_back_to_its_end() -> None:
    """40 chunks at once after 1.5 s are stated, also behind an early first one (B24)."""
    whole, rest = at_end((1.5, 40)), at_end((0.1, 1), (1.5, 39), (1.5005, 1))
    assert whole is not None
    assert "40 of 40 chunks arrived at once, after 1.50 s" in whole
    assert rest is not None
    assert "40 of 41 chunks arrived at once, after 1.40 s" in rest
    assert (at_end((1.5, 40), busy=True) or "").startswith("This app was too busy")


def test_ends_that_raise_no_alarm() -> None:
    """An answer without a wait, a short one, a hiccup in a long one, nothing at all; and nothing is told twice."""
    assert at_end((0.01, 40)) is None
    assert at_end((1.5, 11)) is None
    assert at_end(*[(0.01 * turn, 1) for turn in range(100)], (1.5, 20)) is None
    assert at_end() is None
    assert at_end(*[(2.0 * turn, 64) for turn in range(5)]) is None
    assert ClumpWatch().end() is None
