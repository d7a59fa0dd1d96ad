"""Kept runs: begin, append, finish, list, open, share, delete, make room. All of it blocks; see ``keeper.py``."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from specdemo.core.run import RunRecord
from specdemo.errors import StoreError
from specdemo.store import body
from specdemo.store.database import Database
from specdemo.store.entry import Entry, Kind, ended
from specdemo.store.tables import HEAD, parts, runs

DAY = 86_400.0
MOST_A_PAGE = 100
LONGEST_ID = 64
_COLUMNS = [column for column in runs.columns if column.name != "search"]


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept at most: days, rows, bytes, and rows of one owner. The oldest go first; None sets no limit."""

    days: float | None = None
    count: int | None = None
    size: int | None = None
    each_owner: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of the list, newest first, and how many there are in all."""

    entries: tuple[Entry, ...]
    total: int


class RunStore:
    """Rows and parts of one database. ``owner`` None means whoever runs this page: all rows. Raises StoreError."""

    def __init__(
        self, database: Database, retention: Retention | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.database = database
        self._retention = retention or Retention()
        self._clock = clock

    def begin(self, entry: Entry, head: bytes) -> None:
        """Make a run's row, with its header as the first part."""

        def work(connection: Connection) -> None:
            connection.execute(runs.insert().values(**asdict(replace(entry, size=len(head)))))
            connection.execute(parts.insert().values(run_id=entry.id, number=HEAD, body=head))

        self.database.write(work)

    def append(self, run_id: str, more: Mapping[int, bytes], **columns: Any) -> bool:
        """Add parts and change columns; False when the run was deleted meanwhile, and then nothing is kept."""
        size = sum(map(len, more.values()))
        changes = {"updated_at": self._clock(), "size": runs.c.size + size, **columns}

        def work(connection: Connection) -> bool:
            if connection.execute(runs.update().where(runs.c.id == run_id).values(**changes)).rowcount == 0:
                return False
            if more:
                rows = [{"run_id": run_id, "number": number, "body": text} for number, text in more.items()]
                connection.execute(parts.insert(), rows)
            return True

        return self.database.write(work)

    def put(self, entry: Entry, bodies: Mapping[int, bytes]) -> None:
        """Keep a whole document at once; one of the same id is replaced."""
        rows = [{"run_id": entry.id, "number": number, "body": text} for number, text in bodies.items()]
        sized = asdict(replace(entry, size=sum(map(len, bodies.values()))))

        def work(connection: Connection) -> None:
            _remove(connection, [entry.id])
            connection.execute(runs.insert().values(**sized))
            connection.execute(parts.insert(), rows)

        self.database.write(work)

    def get(self, run_id: str) -> Entry | None:
        """One row."""
        if not _possible(run_id):
            return None
        found = self.database.read(
            lambda connection: connection.execute(sa.select(*_COLUMNS).where(runs.c.id == run_id)).mappings().first()
        )
        return _entry(found) if found else None

    def record(self, run_id: str) -> RunRecord | None:
        """A kept run, with an end on both sides; None when there is none. A damaged one raises StoreError."""
        found = self._parts(run_id)
        return ended(body.read(found)) if found else None

    def text(self, run_id: str) -> bytes | None:
        """Any other document, as it was put."""
        found = self._parts(run_id)
        return body.text_of(found.items()) if found else None

    def _parts(self, run_id: str) -> dict[int, bytes]:
        if not _possible(run_id):
            return {}
        wanted = sa.select(parts.c.number, parts.c.body).where(parts.c.run_id == run_id)
        rows = self.database.read(lambda connection: connection.execute(wanted).all())
        return {number: bytes(text) for number, text in rows}

    def page(
        self, owner: str | None, *, search: str = "", kind: Kind | None = None, offset: int = 0, limit: int = 20
    ) -> Page:
        """Newest first. ``search``: every word must stand somewhere in prompt, title, model or method."""
        where = [runs.c.owner == owner] if owner is not None else []
        if kind is not None:
            where.append(runs.c.kind == kind)
        words = search.replace("\x00", "").casefold().split()[:8]
        where.extend(runs.c.search.contains(word, autoescape=True) for word in words)
        wanted = (
            sa.select(*_COLUMNS)
            .where(*where)
            .order_by(runs.c.stored_at.desc(), runs.c.id)
            .offset(max(0, offset))
            .limit(min(MOST_A_PAGE, max(1, limit)))
        )
        count = sa.select(sa.func.count()).select_from(runs).where(*where)

        def work(connection: Connection) -> Page:
            rows = connection.execute(wanted).mappings().all()
            return Page(tuple(_entry(row) for row in rows), connection.execute(count).scalar_one())

        return self.database.read(work)

    def share(self, run_id: str, owner: str | None, *, shared: bool) -> bool:
        """Set the share switch; False when the run is not this owner's."""
        if not _possible(run_id):
            return False
        change = runs.update().where(*_mine(run_id, owner)).values(shared=shared)
        return self.database.write(lambda connection: connection.execute(change).rowcount > 0)

    def delete(self, run_id: str, owner: str | None) -> bool:
        """Delete; False when the run is not this owner's."""
        if not _possible(run_id):
            return False

        def work(connection: Connection) -> bool:
            mine = connection.execute(sa.select(runs.c.id).where(*_mine(run_id, owner))).scalars().all()
            _remove(connection, list(mine))
            return bool(mine)

        return self.database.write(work)

    def make_room(self) -> int:
        """Delete what is over the retention's limits, oldest first; how many. What was updated just now stays."""
        limits, now = self._retention, self._clock()
        settled = runs.c.updated_at < now - 60.0

        def work(connection: Connection) -> int:
            gone: set[str] = set()
            if limits.days is not None:
                old = sa.select(runs.c.id).where(runs.c.stored_at < now - limits.days * DAY)
                gone.update(connection.execute(old).scalars())
            newest = runs.c.stored_at.desc(), runs.c.id
            ranked = sa.select(
                runs.c.id,
                settled.label("settled"),
                sa.func.row_number().over(order_by=newest).label("place"),
                sa.func.row_number().over(partition_by=runs.c.owner, order_by=newest).label("own"),
                sa.func.sum(runs.c.size).over(order_by=newest).label("up_to"),
            ).subquery()
            over = [
                column > most
                for column, most in (
                    (ranked.c.place, limits.count), (ranked.c.own, limits.each_owner), (ranked.c.up_to, limits.size),
                )
                if most is not None
            ]  # fmt: skip
            if over:
                gone.update(connection.execute(sa.select(ranked.c.id).where(sa.or_(*over), ranked.c.settled)).scalars())
            _remove(connection, list(gone))
            return len(gone)

        return self.database.write(work)


def _possible(run_id: str) -> bool:
    """Whether a row can have this id at all.

    Anybody may ask for any text. Drivers refuse half characters, and PostgreSQL's NUL too: no fault of the database's.
    """
    return len(run_id) <= LONGEST_ID and "\x00" not in run_id and not any("\ud800" <= c <= "\udfff" for c in run_id)


def _mine(run_id: str, owner: str | None) -> list[sa.ColumnElement[bool]]:
    return [runs.c.id == run_id] if owner is None else [runs.c.id == run_id, runs.c.owner == owner]


def _remove(connection: Connection, ids: list[str]) -> None:
    for at in range(0, len(ids), 500):  # a statement takes so many values, and not many more
        some = ids[at : at + 500]
        connection.execute(parts.delete().where(parts.c.run_id.in_(some)))
        connection.execute(runs.delete().where(runs.c.id.in_(some)))


def _entry(row: Mapping[str, Any] | sa.RowMapping) -> Entry:
    try:
        return Entry(search="", **row)
    except TypeError:
        raise StoreError("The run store holds a row of another shape; a newer specdemo may have made it.") from None
