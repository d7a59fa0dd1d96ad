"""Whose a run is, who may see it, and where it is found: live, in memory, in the store, or among the recordings.

Private is the rule: a run is its visitor's own until its share switch is on. On a page that is served to this machine
alone, without sign-in, everybody is whoever runs it, and sees all (``together``).
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import quote

from specdemo.core.run import RunRecord
from specdemo.core.sentences import sentence
from specdemo.errors import StoreError
from specdemo.runs.registry import LiveRun, Registry
from specdemo.store.entry import Entry, Kind, begun, ended, results
from specdemo.store.keeper import Keeper
from specdemo.ui.feed import Feed, Feeds
from specdemo.ui.recordings import Recording
from specdemo.ui.visitors import NOBODY, Visitor

REMEMBERED = 256
"""Results of unkept runs that are not computed again."""


@dataclass(frozen=True, slots=True)
class Found:
    """A run that its asker may see. ``mine`` allows sharing and deleting; ``entry`` is None for what is not kept."""

    id: str
    live: LiveRun | None = None
    entry: Entry | None = None
    recording: Recording | None = None
    mine: bool = False

    @property
    def running(self) -> bool:
        """Whether more will come."""
        return self.live is not None and self.live.ended_at is None


@dataclass(slots=True)
class Library:
    """All runs that this page can show. ``keeper`` None keeps none beyond memory."""

    registry: Registry
    feeds: Feeds
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    keeper: Keeper | None = None
    together: bool = True
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    _results: OrderedDict[str, dict[str, Any]] = field(default_factory=OrderedDict)

    def follow(self, live: LiveRun) -> None:
        """Keep a run that has just been started, if it is to be kept."""
        if self.keeper is not None:
            self.keeper.follow(live)

    async def settled(self, live: LiveRun, patience: float) -> str | None:
        """Wait a moment for a finished run to be written; the sentence why it is not (yet), if so."""
        if self.keeper is None or not self.keeper.keep or not live.keep or live.log.header is None:
            return None
        try:
            await asyncio.wait_for(self.keeper.kept(live.id), patience)
        except TimeoutError:
            return self.keeper.trouble
        return live.unkept

    @property
    def trouble(self) -> str | None:
        """Why nothing can be kept at the moment, in one sentence; None while all is well."""
        return self.keeper.trouble if self.keeper is not None and self.keeper.keep else None

    def may_see(self, live: LiveRun, who: Visitor) -> bool:
        """Whether this visitor may see a live run."""
        return self._open(live.owner, live.shared, who, live.id, "")

    def key(self, run_id: str) -> str:
        """What opens one run to a browser that keeps no cookies (a frame of another site): its page gets it with it."""
        return hmac.new(self.secret, run_id.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]

    def address(self, run_id: str, part: str, *, replay: bool = False, who: Visitor = NOBODY) -> str:
        """A run's own address under the page's root, for its owner. A key stands in only where no cookie can."""
        asked = ["replay=1"] if replay else []
        if not self.together and not who.id:
            asked.append(f"key={self.key(run_id)}")
        return f"runs/{quote(run_id, safe='')}/{part}{'?' if asked else ''}{'&'.join(asked)}"

    async def find(self, run_id: str, who: Visitor = NOBODY, key: str = "") -> Found | None:
        """The run, if there is one and this visitor may see it; strangers cannot tell which it was.

        Raises StoreError when the store cannot be asked.
        """
        if run_id in self.recordings:
            return Found(run_id, recording=self.recordings[run_id])
        live = self.registry.get(run_id)
        if live is not None and self._open(live.owner, live.shared, who, run_id, key):
            entry = None
            if live.ended_at is not None and self.keeper is not None and live.keep:
                entry = await self._entry_or_none(run_id)
            return Found(run_id, live, entry, mine=self._mine(live.owner, who))
        if live is not None or self.keeper is None:
            return None
        entry = await self.keeper.call(self.keeper.store.get, run_id)
        if entry is None or not self._open(entry.owner, entry.shared, who, run_id, key):
            return None
        return Found(run_id, entry=entry, mine=self._mine(entry.owner, who))

    async def record(self, found: Found) -> RunRecord:
        """The whole run so far. Raises StoreError when it has not begun or cannot be read."""
        if found.recording is not None:
            return found.recording.record
        if found.live is not None:
            return found.live.log.record()
        record = await self.keeper.call(self.keeper.store.record, found.id) if self.keeper is not None else None
        if record is None:
            raise StoreError(sentence("run_gone"))
        return record

    async def feed(self, found: Found, *, replay: bool) -> Feed:
        """Frames: live ones as they come, or (``replay``) all of a finished run, marked as recorded. May raise."""
        if found.recording is not None:
            held = self.feeds.get(found.id)
            return held or self.feeds.put(found.id, Feed(found.recording.frames()))
        if found.live is not None and (found.running or not replay or found.live.log.header is None):
            return self.feeds.get(found.id) or self.feeds.put(found.id, Feed.live(found.live))
        name = f"{found.id}?replay"
        held = self.feeds.get(name)
        if held is not None:
            return held
        record = ended(await self.record(found))
        imported = found.entry is not None and found.entry.imported
        recording = Recording(found.id, record, imported=imported)
        # Encoding a long run takes a while; other visitors' streams must not wait for it.
        return self.feeds.put(name, await asyncio.to_thread(lambda: Feed(recording.frames())))

    async def share(self, run_id: str, who: Visitor, *, shared: bool) -> bool:
        """Set the share switch of one's own run; False if it is not. Raises StoreError."""
        live = self.registry.get(run_id)
        mine = live is not None and self._mine(live.owner, who)
        before = live is not None and live.shared
        if live is not None and mine:
            live.shared = shared
        if self.keeper is not None and (live is None or live.keep):
            try:
                stored = await self.keeper.call(self.keeper.store.share, run_id, self._whose(who), shared=shared)
            except StoreError:
                if live is not None and mine:
                    live.shared = before and shared  # what is said to have failed opens a run to nobody
                raise
            return mine or stored
        return mine

    async def delete(self, run_id: str, who: Visitor) -> bool:
        """Delete one's own finished run everywhere; False if it is not. Raises StoreError."""
        live = self.registry.get(run_id)
        if live is not None and not self._mine(live.owner, who):
            return False
        gone = live is not None and live.ended_at is not None
        if self.keeper is not None:
            gone = await self.keeper.delete(run_id, self._whose(who), own=gone)
        if gone:
            self.registry.drop(run_id)
            self.feeds.drop(run_id)
            self.feeds.drop(f"{run_id}?replay")
        return gone

    async def bring(self, data: bytes, who: Visitor) -> Entry:
        """Import a document. Raises StoreError."""
        if self.keeper is None or not self.keeper.keep:
            raise StoreError(sentence("runs_not_kept"))
        return await self.keeper.bring(data, owner=who.id)

    async def listing(
        self, who: Visitor, *, search: str = "", kind: Kind | None = None, offset: int = 0, limit: int = 20
    ) -> tuple[list[tuple[Entry, LiveRun | None]], int, str | None]:
        """(rows with their live run if it is one, how many are kept, why the store cannot be asked).

        The first page begins with runs that are in memory alone: running, just ended, or not to be kept.
        """
        kept: tuple[Entry, ...] = ()
        total, trouble = 0, None
        # Looked at before the store is: what is written in between is in one of the two.
        unwritten = self.keeper.unwritten() if self.keeper is not None else frozenset()
        if self.keeper is not None and (who.id or self.together):
            try:
                page = await self.keeper.call(
                    self.keeper.store.page, self._whose(who), search=search, kind=kind, offset=offset, limit=limit
                )
                kept, total = page.entries, page.total
            except StoreError as error:
                trouble = str(error)
        rows: list[tuple[Entry, LiveRun | None]] = []
        if offset == 0 and kind in (None, "run"):
            ids = {entry.id for entry in kept}
            loose = [live for live in self.registry.all() if live.id not in ids and self._mine(live.owner, who)]
            in_store = self.keeper is not None and self.keeper.keep and trouble is None
            for live in reversed(loose):
                loose_still = live.ended_at is None or not live.keep or not in_store or live.id in unwritten
                if live.log.header is not None and loose_still:
                    row = await self._row(live)
                    if all(word in row.search for word in search.casefold().split()):
                        rows.append((row, live))
        return rows + [(entry, self.registry.get(entry.id)) for entry in kept], total, trouble

    async def _row(self, live: LiveRun) -> Entry:
        header = live.log.header
        assert header is not None  # noqa: S101 - the caller looked
        row = replace(begun(header, owner=live.owner, now=header.started_at, writer=""), shared=live.shared)
        if live.ended_at is None:
            return row
        if live.id not in self._results:
            self._results[live.id] = await asyncio.to_thread(results, live.log.record())
            while len(self._results) > REMEMBERED:
                self._results.popitem(last=False)
        return replace(row, **self._results[live.id])

    async def _entry_or_none(self, run_id: str) -> Entry | None:
        try:
            return await self.keeper.call(self.keeper.store.get, run_id) if self.keeper is not None else None
        except StoreError:
            return None  # the run itself is in memory

    def _whose(self, who: Visitor) -> str | None:
        return None if self.together else who.id or "\n"  # no run's owner has this name

    def _mine(self, owner: str, who: Visitor) -> bool:
        return self.together or (owner != "" and owner == who.id)

    def _open(self, owner: str, shared: bool, who: Visitor, run_id: str, key: str) -> bool:
        return shared or self._mine(owner, who) or (key != "" and hmac.compare_digest(key, self.key(run_id)))
