"""One run as server-sent events: encoded once, read by any number of viewers, each from where it likes.

A live run has one encoder task, started by its first viewer; viewers only walk over a shared list of finished bytes.
So fifty viewers cost fifty socket writes a frame and no work on the run itself.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from typing import Any

from specdemo.core.assess import assess
from specdemo.core.frames import VERSION, Frame, FrameEncoder, plain
from specdemo.core.results import Note
from specdemo.core.sentences import sentence
from specdemo.runs.log import RunLog
from specdemo.runs.registry import LiveRun

FRAME_EVERY = 0.03
"""Seconds between two frames of a live run, at least."""
IDLE_EVERY = 0.25
"""Seconds after which a silent run is looked at again: a stalled engine's live speed must fall on the screen too."""
COMMENT_EVERY = 10.0
"""Seconds of silence after which a comment keeps proxies from closing the stream."""
COMMENT = b": still here\n\n"


def encode(frame: Frame) -> bytes:
    """One frame as a server-sent event."""
    body = json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Lone surrogates cannot be sent as UTF-8; JSON's own escape carries them.
    if any("\ud800" <= character <= "\udfff" for character in body):
        body = json.dumps(frame, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    # Only \n and \r end a line of an event stream, and JSON escapes both.
    return f"id: {frame['seq']}\ndata: {body}\n\n".encode()


class Feed:
    """The frames of one run, and the viewers that wait for more."""

    def __init__(self, frames: Iterable[Frame] = ()) -> None:
        self._sent = [encode(frame) for frame in frames]
        self._news = asyncio.Event()
        self._ended = bool(self._sent)
        self._task: asyncio.Task[None] | None = None

    @classmethod
    def live(cls, run: LiveRun) -> Feed:
        """Follow a run's log until it closes."""
        feed = cls()
        feed._task = asyncio.create_task(feed._follow(run), name=f"feed {run.id}")
        return feed

    @property
    def ended(self) -> bool:
        """Whether the last frame is there."""
        return self._ended

    async def frames(self, after: int = -1, *, comment_every: float = COMMENT_EVERY) -> AsyncIterator[bytes]:
        """Encoded events after frame number ``after``; a comment when nothing came for ``comment_every`` seconds."""
        index = max(0, after + 1)
        while True:
            news = self._news
            if index < len(self._sent):
                # Whatever piled up goes out as one write.
                chunk = b"".join(self._sent[index:])
                index = len(self._sent)
                yield chunk
            elif self._ended:
                return
            else:
                try:
                    await asyncio.wait_for(news.wait(), comment_every)
                except TimeoutError:
                    yield COMMENT

    def close(self) -> None:
        """Stop following; viewers get what is there and then the end."""
        if self._task is not None:
            self._task.cancel()
        self._end()

    def _push(self, frame: Frame | None) -> None:
        if frame is not None:
            self._sent.append(encode(frame))
            self._pulse()

    def _end(self) -> None:
        self._ended = True
        self._pulse()

    def _pulse(self) -> None:
        # A fresh event each time, so that nobody has to clear it.
        self._news.set()
        self._news = asyncio.Event()

    async def _follow(self, run: LiveRun) -> None:
        try:
            header = await run.log.opened()
            if header is None:
                self._push(_never_began(run))
                return
            await self._encode(FrameEncoder(header), run.log)
        finally:
            self._end()

    async def _encode(self, encoder: FrameEncoder, log: RunLog) -> None:
        clock = asyncio.get_running_loop().time
        offset: float | None = None
        events = log.follow()
        waiting: asyncio.Task[Any] | None = None
        self._push(encoder.frame(0.0))
        try:
            while True:
                # Asked for only now: a batch asked for before the pause would hold the first event of the pause alone,
                # and all others would come a pause later.
                waiting = waiting or asyncio.ensure_future(anext(events, None))
                await asyncio.wait({waiting}, timeout=IDLE_EVERY)
                if waiting.done():
                    batch = waiting.result()
                    if batch is None:
                        break
                    for event in batch:
                        encoder.feed(event)
                        # The run's zero on this clock, as closely as the events tell.
                        offset = clock() - event.at if offset is None else min(offset, clock() - event.at)
                    waiting = None
                if offset is not None:
                    self._push(encoder.frame(clock() - offset))
                await asyncio.sleep(FRAME_EVERY)
        finally:
            if waiting is not None:
                waiting.cancel()
        # A long run's assessment takes a while; the other viewers' streams must not wait for it.
        final = await asyncio.to_thread(assess, log.record())
        self._push(encoder.close(clock() - offset if offset is not None else 0.0, log.probe, assessment=final))


class Feeds:
    """Feeds by run id: made when first asked for, kept as long as their run is, at most ``limit`` at a time."""

    def __init__(self, limit: int = 256) -> None:
        self._feeds: OrderedDict[str, Feed] = OrderedDict()
        self._limit = limit

    def get(self, run_id: str) -> Feed | None:
        """The feed, if there is one already."""
        feed = self._feeds.get(run_id)
        if feed is not None:
            self._feeds.move_to_end(run_id)
        return feed

    def put(self, run_id: str, feed: Feed) -> Feed:
        """Keep ``feed``; finished ones that nobody asked for longest make room."""
        self._feeds[run_id] = feed
        for old in [key for key, kept in self._feeds.items() if kept.ended][: max(0, len(self._feeds) - self._limit)]:
            self._feeds.pop(old)
        return feed

    def drop(self, run_id: str) -> None:
        """Forget a run's feed; who still reads it gets no more."""
        feed = self._feeds.pop(run_id, None)
        if feed is not None:
            feed.close()

    def close(self) -> None:
        """End all streams."""
        for feed in self._feeds.values():
            feed.close()
        self._feeds.clear()


def _never_began(run: LiveRun) -> Frame:
    """A stream of one frame that says why there is nothing to see."""
    error = run.error
    kind, message = (error.kind, str(error)) if error else ("cancelled", sentence("stopped_before"))
    notes = [plain(Note(kind, message))]
    return {"seq": 0, "t": 0.0, "v": VERSION, "run": run.id, "ev": [], "notes": notes, "done": True}
