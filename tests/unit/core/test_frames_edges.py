"""Frames at their edges: silence, reasoning, a probe, the end."""

from __future__ import annotations

from specdemo.core.events import CountersRead, Side, SpecCounters, Started, Tokens
from specdemo.core.frames import FrameEncoder, replay
from specdemo.core.run import Probe, RunRecord
from tests.golden import frames_run as golden
from tests.golden.unpack import events as unpacked


def test_silence_makes_no_frame_even_when_numbers_are_due() -> None:
    """Without news a reader gets nothing; the sequence does not move."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.STANDARD, 0.0))
    first = encoder.frame(0.0)
    assert first is not None
    assert encoder.frame(0.001) is None
    assert encoder.frame(10.0) is None
    late = encoder.close(10.0)
    assert late["seq"] == first["seq"] + 1


def test_the_last_frame_is_known() -> None:
    """``done`` turns true with the closing frame."""
    encoder = FrameEncoder(golden.HEADER)
    assert not encoder.done
    encoder.close(0.0)
    assert encoder.done


def test_reasoning_travels_beside_the_text() -> None:
    """A burst that crosses the end of thinking keeps both channels (A21)."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.STANDARD, 0.0))
    encoder.feed(Tokens(Side.STANDARD, 0.1, ids=(5, 6), text="The", reasoning=" ok."))
    frame = encoder.frame(0.2)
    assert frame is not None
    assert [(e["x"], e["r"]) for e in unpacked(frame) if e["k"] == "tok"] == [("The", " ok.")]


def test_the_probe_is_in_the_last_frame() -> None:
    """What the standard engine said at the split is shown with the verdict."""
    encoder = FrameEncoder(golden.HEADER)
    probe = Probe(position=3, candidates=((50, "a", -0.7), (51, "b", -0.7)))
    assert encoder.close(1.0, probe)["probe"]["position"] == 3


def test_a_replay_passes_over_parts_without_news() -> None:
    """Readings of counters alone make no frame, and leave no gap in the numbering."""
    readings = tuple(CountersRead(Side.STANDARD, at, SpecCounters()) for at in (0.06, 0.11, 0.16))
    frames = list(replay(RunRecord(golden.HEADER, (Started(Side.STANDARD, 0.0), *readings))))
    assert [frame["seq"] for frame in frames] == [0, 1]
    assert frames[-1]["done"]


def test_a_total_that_falls_is_not_counted_again() -> None:
    """A running total that drops to 0 and comes back adds no token."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.STANDARD, 0.0))
    for at, total in ((0.1, 3), (0.2, 0), (0.3, 4)):
        encoder.feed(Tokens(Side.STANDARD, at, text="a", reported_total=total))
    frame = encoder.frame(0.4)
    assert frame is not None
    assert [entry["n"] for entry in unpacked(frame) if entry["k"] == "tok"] == [3, 0, 1]
