"""Frames: what the browser gets is exactly what the log holds."""

from __future__ import annotations

import json
from dataclasses import replace

from specdemo.core.events import Event, Finished, RequestSpeculation, Side, Started, Tokens
from specdemo.core.frames import MOST_IN_A_CHUNK, FrameEncoder, Recorded, replay
from specdemo.core.run import RunRecord
from specdemo.ui.feed import encode
from tests.golden import frames_run as golden
from tests.golden.unpack import events as unpacked


def _texts(frames: list[dict]) -> dict[str, str]:
    found = {"standard": "", "speculative": ""}
    for frame in frames:
        for entry in unpacked(frame):
            if entry["k"] == "tok":
                found[entry["s"]] += entry["x"]
    return found


def test_golden_file_is_what_the_encoder_makes() -> None:
    """The frames of the golden run are those that the JavaScript tests read."""
    stored = json.loads(golden.GOLDEN.read_text(encoding="utf-8"))
    assert json.loads(json.dumps(golden.frames())) == stored["frames"]
    assert golden.expected() == stored["expect"]


def test_sequence_has_no_gap_and_ends_once() -> None:
    """Frames are numbered 0, 1, 2 … and only the last one says done, so a reader can resume by number."""
    frames = golden.frames()
    assert [frame["seq"] for frame in frames] == list(range(len(frames)))
    assert [bool(frame.get("done")) for frame in frames] == [False] * (len(frames) - 1) + [True]
    assert ["head" in frame for frame in frames] == [True] + [False] * (len(frames) - 1)


def test_text_and_letters_add_up() -> None:
    """All text of the log is in the frames, in order, with one provenance letter a token."""
    frames = golden.frames()
    for side, text in _texts(frames).items():
        assert text == golden.expected()[side]["text"]
    for frame in frames:
        for entry in unpacked(frame):
            if entry["k"] == "tok":
                assert len(entry["o"]) == entry["n"]
                assert "".join(entry.get("p", [entry["x"]])) == entry["x"]


def test_replay_is_the_same_every_time() -> None:
    """A stored run gives byte-equal frames on each request, so resuming after frame n works after a restart too."""
    record = RunRecord(golden.HEADER, golden.EVENTS)
    recorded = Recorded("2026-01-01", "two CPU cores", "race_shared")
    first = [json.dumps(frame) for frame in replay(record, recorded=recorded)]
    again = [json.dumps(frame) for frame in replay(record, recorded=recorded)]
    assert first == again
    assert json.loads(first[0])["head"]["recorded"]["hardware"] == "two CPU cores"
    assert _texts([json.loads(frame) for frame in first]) == _texts(golden.frames())


def test_quiet_engine_costs_no_frame() -> None:
    """Nothing new means no frame at all."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.STANDARD, 0.0))
    assert encoder.frame(0.01) is not None
    assert encoder.frame(0.02) is None


def test_numbers_come_ten_times_a_second_at_most() -> None:
    """Text of a fast engine does not drag the whole set of numbers along with every frame."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.SPECULATIVE, 0.0))
    sent = 0
    for i in range(1, 101):
        encoder.feed(Tokens(Side.SPECULATIVE, i / 100, ids=(i,), text="a", pieces=("a",)))
        frame = encoder.frame(i / 100)
        assert frame is not None
        sent += "m" in frame
    assert 5 <= sent <= 12


def test_last_numbers_are_exact() -> None:
    """The last frame brings the unrounded values of the assessment, the same that the command line prints."""
    events: list[Event] = [Started(Side.STANDARD, 1 / 3), Started(Side.SPECULATIVE, 1 / 3)]
    for side in Side:
        for i in range(1, 5):
            events.append(Tokens(side, 1 / 3 + i / 7, ids=(i,), text="a", pieces=("a",)))
        events.append(Finished(side, 1 / 3 + 4 / 7, "stop"))
    frames = list(replay(RunRecord(golden.HEADER, tuple(events))))
    shown: dict = {"standard": {}, "speculative": {}}
    for frame in frames:
        for side, numbers in frame.get("m", {}).items():
            shown[side].update(numbers)
    assert shown["standard"]["ttft_s"] == (1 / 3 + 1 / 7) - 1 / 3


def test_exact_provenance_corrects_a_cut_last_burst() -> None:
    """A last burst that the length limit cut has no token of the target's own: ``prov`` says so after the end."""
    frames = golden.frames()
    [prov] = [entry for frame in frames for entry in unpacked(frame) if entry["k"] == "prov"]
    live = "".join(e["o"] for frame in frames for e in unpacked(frame) if e["k"] == "tok" and e["s"] == "speculative")
    assert prov["s"] == "speculative"
    assert len(prov["o"]) == len(live)
    assert prov["o"].endswith("dd")
    assert live.endswith("dt")


def test_steps_that_arrive_at_one_instant_break_nothing() -> None:
    """A proxy may release all chunks of one side at once: gaps of zero end in absent numbers, not in a failure."""
    events: list[Event] = [Started(side, 0.0) for side in Side]
    events += [Tokens(Side.STANDARD, 0.1 * i, ids=(i,), text="a", pieces=("a",)) for i in range(1, 9)]
    events += [Tokens(Side.SPECULATIVE, 0.5, ids=(i, i + 1), text="aa", pieces=("a", "a")) for i in range(1, 9, 2)]
    spec = RequestSpeculation(
        steps=3, drafted=12, accepted=3, max_draft=4, accepted_per_step=(1, 1, 1), drafted_per_step=(4, 4, 4)
    )
    events += [Finished(Side.STANDARD, 0.8, "stop"), Finished(Side.SPECULATIVE, 0.5, "stop", speculation=spec)]
    last = list(replay(RunRecord(golden.HEADER, tuple(events))))[-1]
    assert last["done"]
    assert last["theory"]["textbook_speedup"] is None


def test_no_draft_without_speculation() -> None:
    """When the second engine does not speculate at all, no token is called an accepted draft."""
    spec = replace(golden.HEADER.facts[1], speculating=False)  # type: ignore[type-var]
    encoder = FrameEncoder(replace(golden.HEADER, facts=(golden.HEADER.facts[0], spec)))
    encoder.feed(Started(Side.SPECULATIVE, 0.0))
    encoder.feed(Tokens(Side.SPECULATIVE, 0.1, ids=(1, 2), text="ab", pieces=("a", "b")))
    frame = encoder.frame(0.1)
    assert frame is not None
    assert unpacked(frame)[1]["o"] == "tt"


def test_text_without_ids_keeps_counting_by_the_servers_own_total() -> None:
    """A server that sends no ids but a running total still gets its tokens counted."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.STANDARD, 0.0))
    encoder.feed(Tokens(Side.STANDARD, 0.1, text="ab", reported_total=2))
    encoder.feed(Tokens(Side.STANDARD, 0.2, text="c", reported_total=3))
    frame = encoder.frame(0.2)
    assert frame is not None
    assert [entry["n"] for entry in unpacked(frame) if entry["k"] == "tok"] == [2, 1]


def test_a_servers_absurd_total_fills_no_memory() -> None:
    """A chunk's tokens are letters in a frame; a total of 2^53 is not believed."""
    encoder = FrameEncoder(golden.HEADER)
    encoder.feed(Started(Side.STANDARD, 0.0))
    encoder.feed(Tokens(Side.STANDARD, 0.1, text="ab", reported_total=2**53))
    frame = encoder.frame(0.2)
    assert frame is not None
    assert [entry["n"] for entry in unpacked(frame) if entry["k"] == "tok"] == [MOST_IN_A_CHUNK]


def test_request_speculation_type_is_exported() -> None:
    """The golden run carries the engine's own account of its drafts, so the JavaScript side sees exact numbers."""
    assert any(isinstance(e, Finished) and isinstance(e.speculation, RequestSpeculation) for e in golden.EVENTS)


def test_frames_stay_small() -> None:
    """At one token an event and 100 events a second a side, a token costs the viewer less than 37 bytes (0.6 MB at 8,000)."""
    encoder = FrameEncoder(golden.HEADER)
    count, size, now = 1000, 0, 0.03
    for side in Side:
        encoder.feed(Started(side, 0.0))
    for i in range(1, count + 1):
        while i / 100 > now:
            size += len(encode(frame)) if (frame := encoder.frame(now)) is not None else 0
            now += 0.033
        for side in Side:
            encoder.feed(Tokens(side, i / 100 + 0.0013, ids=(i,), text=f" w{i},", pieces=(f" w{i},",)))
    for side in Side:
        encoder.feed(Finished(side, count / 100 + 0.01, "length"))
    size += len(encode(encoder.close(now)))
    assert size / (2 * count) < 37
