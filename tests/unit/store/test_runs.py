"""Rows and documents of the store, on SQLite and on a real PostgreSQL server alike."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from specdemo.core.run import RunRecord
from specdemo.store import body
from specdemo.store.database import Database, parse
from specdemo.store.entry import CUT_OFF, Entry, begun, results
from specdemo.store.runs import DAY, Retention, RunStore
from specdemo.store.tables import metadata
from tests.golden import frames_run as golden

RECORD = RunRecord(golden.HEADER, golden.EVENTS)


def entry(run_id: str, *, at: float = 1000.0, owner: str = "me", **columns: Any) -> Entry:
    """A finished run's row."""
    header = replace(golden.HEADER, id=run_id)
    found = begun(header, owner=owner, now=at, writer="test")
    return replace(found, **{**results(RECORD), **columns})


def put(store: RunStore, run_id: str, **columns: Any) -> Entry:
    """Keep one run."""
    row = entry(run_id, **columns)
    store.put(row, body.whole(replace(RECORD, header=replace(RECORD.header, id=run_id))))
    return row


def test_a_run_comes_back_as_it_was(store: RunStore) -> None:
    """Every event, the header and the row itself survive, and the row knows how much room it takes."""
    put(store, "one")
    found = store.record("one")
    assert found == replace(RECORD, header=replace(RECORD.header, id="one"))
    row = store.get("one")
    assert row is not None
    assert row.state == "failed"  # one side of this run does
    assert (row.method, row.k, row.mode) == ("ngram", 4, "race")
    assert row.size > 100
    assert store.get("two") is None
    assert store.record("two") is None


def test_a_run_in_parts_is_the_same_document(store: RunStore) -> None:
    """Checkpoints append; together they are the run, and before its end it says on both sides that it was cut off."""
    events = golden.EVENTS
    store.begin(begun(golden.HEADER, owner="me", now=1.0, writer="w"), body.head(golden.HEADER))
    store.append(golden.HEADER.id, {1: body.pieces(events[:3])[0]})
    cut = store.record(golden.HEADER.id)
    assert cut is not None
    assert cut.events[:3] == events[:3]
    assert [event.message for event in cut.events[3:]] == [CUT_OFF, CUT_OFF]  # type: ignore[union-attr]
    interrupted = store.get(golden.HEADER.id)
    assert interrupted is not None
    assert interrupted.state == "interrupted"
    store.append(golden.HEADER.id, {2: body.pieces(events[3:])[0], -1: body.tail(None)}, **results(RECORD))
    assert store.record(golden.HEADER.id) == RECORD
    assert store.append("nobody", {1: b""}) is False


def test_listing_pages_searches_and_keeps_owners_apart(store: RunStore) -> None:
    """Newest first, page by page; every word must occur; nobody sees another's rows; the operator sees all."""
    for number in range(7):
        put(
            store,
            f"run-{number}",
            at=float(number),
            search=f"prompt {number} straße 100%_x".casefold(),
            title=f"p{number}",
        )
    put(store, "other", owner="you", at=50.0)
    first = store.page("me", limit=3)
    assert [row.id for row in first.entries] == ["run-6", "run-5", "run-4"]
    assert first.total == 7
    assert [row.id for row in store.page("me", offset=6, limit=3).entries] == ["run-0"]
    assert [row.id for row in store.page("me", search="PROMPT 3").entries] == ["run-3"]
    assert store.page("me", search="Straße 100%_").total == 7
    assert store.page("me", search="%").total == 7
    assert store.page("me", search="1__").total == 0
    assert store.page("me", kind="benchmark").total == 0
    assert store.page(None).total == 8
    assert store.page("me", search="'; drop table runs; --\x00").total == 0


def test_only_the_owner_shares_and_deletes(store: RunStore) -> None:
    """A stranger who knows the id changes nothing; the operator may."""
    put(store, "one")
    assert store.share("one", "you", shared=True) is False
    assert store.delete("one", "you") is False
    assert store.share("one", "me", shared=True) is True
    found = store.get("one")
    assert found is not None
    assert found.shared
    assert store.delete("one", None) is True
    assert store.record("one") is None


@pytest.mark.parametrize("run_id", ["\x00", "a\x00b", "\ud800", "x" * 65, "", "é", "%"])
def test_any_text_may_be_asked_for(store: RunStore, run_id: str) -> None:
    """What no id can be is simply not there: the driver's complaint would be no fault of the database's."""
    put(store, "one")
    assert store.get(run_id) is None
    assert store.record(run_id) is None
    assert store.text(run_id) is None
    assert store.share(run_id, None, shared=True) is False
    assert store.delete(run_id, None) is False
    assert store.page(None).total == 1


@pytest.mark.parametrize(
    "limits, left",
    [
        (Retention(days=10), {"a3", "a4", "b1"}), (Retention(count=2), {"b1", "a4"}),
        (Retention(each_owner=1), {"b1", "a4"}), (Retention(size=1), set()), (Retention(), {"a1", "a2", "a3", "a4", "b1"}),
    ],
)  # fmt: skip
def test_retention_lets_the_oldest_go(store: RunStore, limits: Retention, left: set[str]) -> None:
    """By age, by number, by owner, by size; without limits nothing goes."""
    for day, name in enumerate(("a1", "a2", "a3", "a4"), start=1):
        put(store, name, at=day * 10 * DAY)
    put(store, "b1", at=45 * DAY, owner="you")
    limited = RunStore(store.database, limits, clock=lambda: 45 * DAY + 100)
    if limits.days:
        limited = RunStore(store.database, limits, clock=lambda: 39.9 * DAY)
    limited.make_room()
    assert {row.id for row in store.page(None).entries} == left


def test_a_run_that_is_being_written_stays(store: RunStore) -> None:
    """Making room never takes what a run is still writing to."""
    put(store, "live", at=1000.0)
    assert RunStore(store.database, Retention(count=0), clock=lambda: 1030.0).make_room() == 0
    assert RunStore(store.database, Retention(count=0), clock=lambda: 1100.0).make_room() == 1


def test_odd_text_is_kept(store: RunStore) -> None:
    """NUL and half characters, which databases refuse, cost a character and not the run."""
    header = replace(golden.HEADER, id="odd", title="a\x00b\ud800 " + "x" * 900, hardware="c\x00")
    row = begun(header, owner="me", now=1.0, writer="w")
    store.put(row, body.whole(RunRecord(header, golden.EVENTS)))
    found = store.get("odd")
    assert found is not None
    assert found.title.startswith("a�b? x")
    assert len(found.title) == 300
    assert store.record("odd") is not None


def test_migrations_make_the_tables_that_the_code_uses(store: RunStore) -> None:
    """What the steps built and what the code says are one."""

    def differences(connection: sa.Connection) -> list[Any]:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, metadata))

    assert store.database.read(differences) == []


def test_many_starts_at_once_migrate_once(address: str, store: RunStore) -> None:
    """Several replicas that start together on an empty database wait for one another."""

    def forget(connection: sa.Connection) -> None:
        for table in ("run_parts", "runs", "alembic_version"):
            connection.exec_driver_sql(f"DROP TABLE {table}")

    store.database.write(forget)
    store.database.close()
    faults: list[BaseException] = []

    def start() -> None:
        opened = Database(parse(address))
        try:
            RunStore(opened).page(None)
        except BaseException as error:
            faults.append(error)
        finally:
            opened.close()

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    put(store, "after")
