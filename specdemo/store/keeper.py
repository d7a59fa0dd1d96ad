"""Runs into the store while they happen, off the event loop: at their start, at a bounded rate, at their end.

Nothing here can harm a run: when the store fails, the run goes on, ``trouble`` says what is wrong, and the same parts
are offered again at the next checkpoint and at the end.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from specdemo.core.run import RunRecord
from specdemo.core.sentences import sentence
from specdemo.errors import SpecDemoError, StoreError
from specdemo.runs import stored
from specdemo.runs.log import RunLog
from specdemo.runs.race import new_id
from specdemo.runs.registry import LiveRun
from specdemo.store import body
from specdemo.store.database import StoreUnavailable
from specdemo.store.entry import Entry, begun, results
from specdemo.store.runs import RunStore
from specdemo.store.tables import HEAD, TAIL

_log = logging.getLogger(__name__)

CHECKPOINT_S = 5.0
"""Seconds between two checkpoints of one run: what a crash can cost."""
AGAIN_S = (0.5, 2.0, 8.0)
"""Pauses before an end that could not be written is tried again."""
ROOM_EVERY = 20
"""Runs after which the retention's limits are looked at; also at the start."""
ELSEWHERE_S = 3 * CHECKPOINT_S
"""A run of another process counts as running so long after its last checkpoint (database servers only)."""

T = TypeVar("T")


class Keeper:
    """Keeps runs. ``keep`` False keeps none but leaves what is there readable. Belongs to one event loop."""

    def __init__(
        self,
        store: RunStore,
        *,
        keep: bool = True,
        every: float = CHECKPOINT_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.store = store
        self.keep = keep
        self.trouble: str | None = None
        self._every = every
        self._clock = clock
        self._writer = f"{socket.gethostname()[:32]}:{os.getpid()}:{new_id()[:8]}"
        # Few threads: the machine belongs to the engines.
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="store")
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._deleted: set[str] = set()
        self._until_room = 0

    def follow(self, live: LiveRun) -> None:
        """Keep this run from now on, unless its starter asked not to."""
        if self.keep and live.keep:
            task = asyncio.get_running_loop().create_task(self._follow(live), name=f"keep {live.id}")
            self._tasks[live.id] = task
            task.add_done_callback(lambda _: self._tasks.pop(live.id, None))

    async def call(self, work: Callable[..., T], *args: Any, **named: Any) -> T:
        """A blocking call in the store's own threads. Raises StoreError; an unusable store is kept in ``trouble``."""
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._pool, lambda: work(*args, **named))
        except StoreUnavailable as error:
            self.trouble = str(error)
            raise
        self.trouble = None
        return found

    def unwritten(self) -> frozenset[str]:
        """Runs whose end is not in the store yet."""
        return frozenset(self._tasks.keys() - self._deleted)

    async def kept(self, run_id: str) -> None:
        """Wait until this run's end is written, or given up."""
        task = self._tasks.get(run_id)
        if task is not None:
            await asyncio.wait([task])

    async def take(self, record: RunRecord, *, owner: str, imported: bool = False) -> Entry:
        """Keep a finished run at once under a new id. Raises StoreError."""
        return await self.call(self.take_now, record, owner=owner, imported=imported)

    def take_now(self, record: RunRecord, *, owner: str, imported: bool = False) -> Entry:
        """The same, for callers without an event loop."""
        run_id = new_id() if imported else record.header.id
        named = replace(record, header=replace(record.header, id=run_id))
        row = begun(named.header, owner=owner, now=self._clock(), writer=self._writer)
        entry = replace(row, imported=imported, **_checked(named))
        self.store.put(entry, body.whole(named))
        return entry

    async def bring(self, data: bytes, *, owner: str) -> Entry:
        """A document from another machine: checked as a stranger's, kept under a new id, marked. Raises StoreError."""

        def work() -> Entry:
            return self.take_now(stored.loads(data), owner=owner, imported=True)

        return await self.call(work)

    async def delete(self, run_id: str, owner: str | None, *, own: bool = False) -> bool:
        """Delete, also while the run is still being written. Raises StoreError.

        ``own``: the asker may delete this run although the store has no row yet that says so; none will be made then.
        """
        found = False
        # Said first, or a checkpoint in between would make the run anew.
        self._deleted.add(run_id)
        try:
            found = await self.call(self.store.delete, run_id, owner) or own
        finally:
            if not found or run_id not in self._tasks:
                self._deleted.discard(run_id)
        return found

    def running_elsewhere(self, entry: Entry) -> bool:
        """Whether another process on the same database server is still writing this run."""
        others = not self.store.database.local and entry.writer != self._writer
        return entry.state == "interrupted" and others and self._clock() - entry.updated_at < ELSEWHERE_S

    async def tidy(self) -> None:
        """Make room if it is time; a failure is logged and tried at the next run."""
        self._until_room -= 1
        if self._until_room > 0:
            return
        self._until_room = ROOM_EVERY
        try:
            gone = await self.call(self.store.make_room)
        except StoreError as error:
            _log.warning("No room was made in the run store: %s", error)
        else:
            if gone:
                _log.info("%d kept runs were deleted: they were over the limits of the settings.", gone)

    async def aclose(self) -> None:
        """Write what is still to be written (a few seconds at most), then close."""
        if self._tasks:
            await asyncio.wait(list(self._tasks.values()), timeout=5)
        self._pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self.store.database.close)

    async def _follow(self, live: LiveRun) -> None:
        try:
            await self._write(live)
            if live.id in self._deleted:  # a write may have been on its way while it was deleted
                await self.call(self.store.delete, live.id, None)
        except StoreError as error:
            _log.warning("The run %s could not be kept: %s", live.id, error)
            live.unkept = str(error)
        except Exception:  # noqa: BLE001 - keeping must never end in silence, and is logged
            # Its own sentence, since nobody waits for this task.
            _log.exception("Keeping the run %s broke inside specdemo", live.id)
            live.unkept = sentence("run_keeping_failed")
        finally:
            self._deleted.discard(live.id)
        await self.tidy()

    async def _write(self, live: LiveRun) -> None:
        log = live.log
        if await log.opened() is None:
            return  # it never began: there is nothing to keep
        progress = _Progress(live, begun_at=self._clock())
        while not log.closed:
            try:
                await self.call(self._checkpoint, progress, len(log))
            except StoreError as error:
                _log.warning("The run %s could not be kept so far: %s", live.id, error)
            await _closed_within(log, self._every)
        if live.task is not None:
            await asyncio.wait([live.task])
        for pause in (*AGAIN_S, None):
            try:
                await self.call(self._finish, progress)
                return
            except StoreError:
                if pause is None:
                    raise
            await asyncio.sleep(pause)

    def _checkpoint(self, progress: _Progress, upto: int) -> None:
        """What is new since the last one; the first makes the row."""
        live = progress.live
        if live.id in self._deleted or live.log.header is None:
            return
        if not progress.begun:
            row = begun(live.log.header, owner=live.owner, now=progress.begun_at, writer=self._writer)
            entry = replace(row, shared=live.shared)
            self.store.begin(entry, body.head(live.log.header))
            progress.begun = True
            if live.shared is not entry.shared:  # switched while there was no row yet
                self.store.share(live.id, None, shared=live.shared)
        events = live.log.since(progress.events)[: upto - progress.events]
        numbered = dict(enumerate(body.pieces(events), start=progress.number))
        if self.store.append(live.id, numbered):
            progress.events, progress.number = upto, progress.number + len(numbered)
        else:
            self._lost(progress)

    def _finish(self, progress: _Progress) -> None:
        live, log = progress.live, progress.live.log
        for _ in range(2):  # the second time, if the database was lost in between
            self._checkpoint(progress, len(log))
            tail = {TAIL: body.tail(log.probe)}
            if live.id in self._deleted or (
                progress.begun and self.store.append(live.id, tail, **results(log.record()))
            ):
                return
            self._lost(progress)

    def _lost(self, progress: _Progress) -> None:
        """The row is gone, and nobody deleted it here: a file was replaced, or another process deleted it."""
        if self.store.database.local:
            progress.again()
        else:
            self._deleted.add(progress.live.id)


class _Progress:
    """What of a live run is in the store."""

    def __init__(self, live: LiveRun, *, begun_at: float) -> None:
        self.live = live
        self.begun_at = begun_at
        self.again()

    def again(self) -> None:
        """Nothing of it is there (any more)."""
        self.begun = False
        self.events = 0
        self.number = HEAD + 1


async def _closed_within(log: RunLog, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(log.finished(), seconds)


def _checked(record: RunRecord) -> dict[str, Any]:
    """The results, which nobody's document may break. Raises StoreError."""
    try:
        return results(record)
    except SpecDemoError:
        raise
    except Exception as error:  # noqa: BLE001 - a stranger's document may break any rule that was not thought of
        _log.warning("A run could not be assessed", exc_info=error)
        raise StoreError(sentence("run_contradicts")) from None
