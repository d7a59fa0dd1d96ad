"""The frame feed: every viewer gets every frame once, whenever it comes and wherever it left off."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from specdemo.core.events import Side
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan
from specdemo.ui.feed import COMMENT, Feed, Feeds, encode
from tests.golden.unpack import events as unpacked
from tests.unit.ui.pair import WORDS, world


def parse(raw: bytes) -> list[dict[str, Any]]:
    """Frames of a piece of an event stream; their ids must be their numbers."""
    found = []
    for block in raw.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines:
            frame = json.loads(lines["data"])
            assert int(lines["id"]) == frame["seq"]
            found.append(frame)
    return found


async def collect(feed: Feed, after: int = -1) -> list[dict[str, Any]]:
    """All frames after a number, to the end."""
    return parse(b"".join([chunk async for chunk in feed.frames(after)]))


def text_of(frames: list[dict[str, Any]], side: str) -> str:
    """One side's text as the frames bring it."""
    return "".join(e["x"] for frame in frames for e in unpacked(frame) if e["k"] == "tok" and e["s"] == side)


async def test_every_viewer_gets_all_frames_once() -> None:
    """Early, late and resuming viewers of one run end up with the same frames, without a gap or a repeat."""
    place = world(pause=0.001)
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    feed = place.services.feed_of(live)
    assert feed is not None
    assert place.services.feed_of(live) is feed
    early = await collect(feed)
    late = await collect(feed)
    assert [frame["seq"] for frame in early] == list(range(len(early)))
    assert early == late
    assert early[-1]["done"] is True
    assert early[:3] + await collect(feed, after=2) == early
    whole = "".join(text for _, text in WORDS)
    assert text_of(early, "standard") == text_of(early, "speculative") == whole


async def test_engines_see_one_request_however_many_watch() -> None:
    """Fifty viewers of one run cost the engines nothing."""
    place = world(pause=0.001)
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    feed = place.services.feed_of(live)
    assert feed is not None
    seen = await asyncio.gather(*(collect(feed) for _ in range(50)))
    assert all(frames == seen[0] for frames in seen)
    assert [len(place.engines[side].asked) for side in Side] == [1, 1]


async def test_silent_run_sends_comments() -> None:
    """While nothing happens a comment keeps the connection alive, and it is no frame."""
    gate = asyncio.Event()
    place = world(gate=gate)
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    feed = place.services.feed_of(live)
    assert feed is not None
    stream = feed.frames(after=10_000, comment_every=0.01)
    assert await anext(stream) == COMMENT
    await stream.aclose()
    await place.services.registry.stop(live.id)


async def test_stopped_run_ends_the_stream() -> None:
    """Stop keeps what had arrived, marks both sides cancelled and ends every viewer's stream."""
    place = world(gate=asyncio.Event())
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    feed = place.services.feed_of(live)
    assert feed is not None
    reading = asyncio.create_task(collect(feed))
    async for batch in live.log.follow():
        if len(live.log) >= 4 and batch:
            break
    await place.services.registry.stop(live.id)
    frames = await reading
    ends = {e["s"]: e["state"] for frame in frames for e in unpacked(frame) if e["k"] == "end"}
    assert ends == {"standard": "cancelled", "speculative": "cancelled"}
    assert text_of(frames, "standard")
    assert frames[-1]["done"]


async def test_refused_run_says_why() -> None:
    """A run that never began is one frame with the reason, not an endless wait."""
    place = world()
    for engine in place.engines.values():
        engine.tokenize = lambda prompt: _too_many()  # type: ignore[method-assign]
    live = place.services.registry.start(RunPlan(prompt=chat("go"), warmup=False))
    feed = place.services.feed_of(live)
    assert feed is not None
    [frame] = await collect(feed)
    assert frame["done"]
    assert "tokens" in frame["notes"][0]["message"]


async def _too_many() -> tuple[int, ...]:
    return tuple(range(5000))


def test_any_text_survives_the_event_stream() -> None:
    """Line breaks of every kind, control characters and half surrogates cannot break the framing."""
    text = "a\nb\r\nc\u2028d\x00e\x1b[31m\ud83d \U0001f469\u200d\U0001f469"
    raw = encode({"v": 1, "run": "r", "seq": 7, "t": 0.0, "ev": [{"k": "tok", "x": text}]})
    [frame] = parse(raw)
    assert frame["ev"][0]["x"] == text
    assert raw.count(b"\n") == 3


async def test_finished_feeds_make_room() -> None:
    """Feeds are bounded: the oldest finished ones go first, running ones stay."""
    feeds = Feeds(limit=2)
    done = [Feed([{"seq": 0}]) for _ in range(3)]
    for number, feed in enumerate(done):
        feeds.put(str(number), feed)
    assert feeds.get("0") is None
    assert feeds.get("2") is done[2]
