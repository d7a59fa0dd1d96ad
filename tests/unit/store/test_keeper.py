"""Runs into the store while they happen, and what a store that fails costs them: nothing but a note."""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from specdemo.core.events import Tokens
from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan
from specdemo.errors import StoreError
from specdemo.runs.registry import LiveRun
from specdemo.store import database, keeper
from specdemo.store.database import Database, StoreUnavailable, parse
from specdemo.store.entry import CUT_OFF
from specdemo.store.keeper import Keeper
from specdemo.store.runs import RunStore
from tests.unit.ui.pair import WORDS, World, world

PLAN = RunPlan(prompt=chat("go"), warmup=False)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where SQLite's file lies."""
    return tmp_path / "data" / "runs.db"


Open = Callable[..., Keeper]


@pytest.fixture
async def opened(file: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Open]:
    """Make keepers of one file; they look at a run often, and try again at once."""
    monkeypatch.setattr(keeper, "AGAIN_S", (0.0, 0.0))
    monkeypatch.setattr(database, "BUSY_S", 0.05)
    made: list[Keeper] = []

    def make(**options: Any) -> Keeper:
        made.append(Keeper(RunStore(Database(parse(f"sqlite:///{file}"))), **{"every": 0.01, **options}))
        return made[-1]

    yield make
    for one in made:
        await one.aclose()


async def go(place: World, kept: Keeper, *, plan: RunPlan = PLAN, **options: Any) -> LiveRun:
    """One whole run with this keeper."""
    live = place.services.registry.start(plan, **options)
    kept.follow(live)
    await place.services.registry.finished(live)
    await kept.kept(live.id)
    return live


async def until(check: Callable[[], Any]) -> None:
    """Wait for a condition; the test's own time limit ends a hopeless wait."""
    while not check():
        await asyncio.sleep(0.005)


async def test_a_finished_run_is_kept_whole(opened: Open) -> None:
    """What the store gives back is the run's own record, with its results in the row."""
    kept = opened()
    live = await go(world(pause=0.001), kept, owner="me")
    row = kept.store.get(live.id)
    assert row is not None
    assert (row.state, row.verdict, row.owner, row.method, row.k) == ("finished", "identical", "me", "ngram", 4)
    assert row.speedup is not None
    assert kept.store.record(live.id) == live.log.record()
    assert kept.trouble is None
    assert live.unkept is None


async def test_a_crash_costs_what_came_after_the_last_checkpoint(opened: Open) -> None:
    """A process that dies in the middle leaves its run as far as it came, marked interrupted, both sides closed."""
    gate = asyncio.Event()
    place, kept = world(gate=gate), opened()
    live = place.services.registry.start(PLAN)
    kept.follow(live)
    await until(lambda: (row := kept.store.get(live.id)) is not None and row.size > 0 and len(live.log) >= 4)
    arrived = live.log.since(0)
    await until(lambda: len(kept.store.record(live.id).events) >= len(arrived))  # type: ignore[union-attr]
    # From here on nothing of the first process counts: another one reads what it left.
    after = opened()
    row, record = after.store.get(live.id), after.store.record(live.id)
    assert row is not None
    assert record is not None
    assert row.state == "interrupted"
    assert record.events[: len(arrived)] == tuple(arrived)
    assert [getattr(event, "message", None) for event in record.events[-2:]] == [CUT_OFF, CUT_OFF]
    await place.services.registry.aclose()


async def test_checkpoints_write_only_what_is_new(opened: Open) -> None:
    """However many checkpoints there are, each event is in one part."""
    kept = opened(every=0.0)
    live = await go(world(pause=0.004), kept)
    record = kept.store.record(live.id)
    assert record is not None
    tokens = [event for event in record.events if isinstance(event, Tokens)]
    assert "".join(event.text for event in tokens if event.side == "standard") == "".join(text for _, text in WORDS)
    counted = kept.store.database.read(
        lambda connection: connection.execute(sa.text("select count(*) from run_parts")).scalar_one()
    )
    assert counted > 3


@pytest.mark.parametrize("options, keep", [({}, False), ({"keep": False}, True)])
async def test_not_kept_when_not_wanted(opened: Open, file: Path, options: dict[str, Any], keep: bool) -> None:
    """Neither with the setting off nor when its starter says so is anything written."""
    kept = opened(keep=keep)
    await go(world(), kept, **options)
    assert not file.exists()


async def test_deleted_while_it_runs(opened: Open) -> None:
    """A run that its owner deletes in the middle is not made anew by its next checkpoint or its end."""
    gate = asyncio.Event()
    place, kept = world(gate=gate), opened()
    live = place.services.registry.start(PLAN, owner="me")
    kept.follow(live)
    await until(lambda: kept.store.get(live.id))
    assert await kept.delete(live.id, "you") is False
    assert await kept.delete(live.id, "me") is True
    gate.set()
    await place.services.registry.finished(live)
    await kept.kept(live.id)
    assert kept.store.get(live.id) is None


async def test_locked_database(opened: Open, file: Path) -> None:
    """Another program holds the file: the race goes on, the page can say why nothing is kept, and later runs are."""
    kept = opened()
    await kept.call(kept.store.page, None)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    live = await go(world(), kept)
    assert live.error is None
    assert "holds its lock" in (live.unkept or "")
    assert "holds its lock" in (kept.trouble or "")
    other.execute("ROLLBACK")
    other.close()
    again = await go(world(), kept)
    assert again.unkept is None
    assert kept.trouble is None


async def test_lock_that_is_let_go_costs_nothing(opened: Open, file: Path) -> None:
    """What could not be written at first is offered again, so a short lock loses no event."""
    kept, gate = opened(), asyncio.Event()
    await kept.call(kept.store.page, None)
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    place = world(gate=gate)
    live = place.services.registry.start(PLAN)
    kept.follow(live)
    await until(lambda: kept.trouble)
    other.execute("ROLLBACK")
    other.close()
    gate.set()
    await place.services.registry.finished(live)
    await kept.kept(live.id)
    assert kept.store.record(live.id) == live.log.record()


async def _with_pragma(kept: Keeper, pragma: str) -> None:
    """Every further connection of this store behaves as if its disk did."""
    await kept.call(kept.store.page, None)
    engine = kept.store.database._engine
    assert engine is not None
    event.listen(engine, "connect", lambda connection, _: connection.execute(f"PRAGMA {pragma}"))
    engine.dispose()


@pytest.mark.parametrize(
    "pragma, words", [("max_page_count=1", "disk is full"), ("query_only=ON", "read-only")]
)  # fmt: skip
async def test_full_and_read_only_disks(opened: Open, pragma: str, words: str) -> None:
    """A full or read-only disk stops no race; the sentence says what is wrong, and the list can still be read."""
    kept = opened()
    await _with_pragma(kept, pragma)
    long = RunPlan(prompt=chat(secrets.token_hex(15_000)), warmup=False)  # needs room of its own
    live = await go(world(), kept, plan=long)
    assert live.error is None
    assert live.log.record().events
    assert words in (live.unkept or "")
    assert kept.store.page(None).total == 0


async def test_missing_folder(tmp_path: Path, opened: Open) -> None:
    """A data folder that cannot be made (a file is in its place) stops no race either."""
    (tmp_path / "data").write_text("in the way")
    live = await go(world(), opened())
    assert live.error is None
    assert (live.unkept or "").startswith("The run store cannot be used")
    assert str(tmp_path) not in (live.unkept or "")


@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_file_that_vanishes_in_the_middle(opened: Open, file: Path, how: str) -> None:
    """A database file deleted or replaced under a running page is noticed: the run is kept whole in the new one."""
    gate = asyncio.Event()
    place, kept = world(gate=gate), opened()
    live = place.services.registry.start(PLAN)
    kept.follow(live)
    await until(lambda: kept.store.get(live.id))
    for old in file.parent.glob("runs.db*"):
        old.unlink()
    if how == "replaced":
        Database(parse(f"sqlite:///{file}")).read(lambda connection: None)
    gate.set()
    await place.services.registry.finished(live)
    await kept.kept(live.id)
    assert live.unkept is None
    assert opened().store.record(live.id) == live.log.record()


@pytest.mark.parametrize(
    "content, words", [(b"this is no database, but it is long enough to look at" * 50, "no database")]
)
def test_foreign_files_are_left_alone(file: Path, content: bytes, words: str) -> None:
    """A file that is no database is never overwritten."""
    file.parent.mkdir()
    file.write_bytes(content)
    with pytest.raises(StoreUnavailable, match=words):
        RunStore(Database(parse(f"sqlite:///{file}"))).page(None)
    assert file.read_bytes() == content


def test_a_newer_database_is_left_alone(file: Path) -> None:
    """A store made by a later version is refused in words, not migrated backwards."""
    made = Database(parse(f"sqlite:///{file}"))
    made.write(lambda connection: connection.execute(sa.text("update alembic_version set version_num = '9999'")))
    made.close()
    with pytest.raises(StoreUnavailable, match="newer specdemo"):
        RunStore(Database(parse(f"sqlite:///{file}"))).page(None)


def test_no_server_is_asked_again_and_again() -> None:
    """A database server out of reach is asked once in a while; in between the same sentence comes at once."""
    now = [0.0]
    store = RunStore(Database(parse("postgresql://u:secret@127.0.0.1:1/x"), clock=lambda: now[0]))
    with pytest.raises(StoreUnavailable, match="cannot be reached") as caught:
        store.page(None)
    assert "secret" not in str(caught.value)
    refused = store.database._refused
    assert refused is not None
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        store.page(None)
    assert store.database._refused is refused
    now[0] = 11.0
    with pytest.raises(StoreUnavailable):
        store.page(None)
    assert store.database._refused is not refused


async def test_two_replicas_share_one_server(server: str) -> None:
    """On one PostgreSQL, what one copy of the page writes the other lists, as running until it ends."""
    gate, first, second = asyncio.Event(), *(Keeper(RunStore(Database(parse(server))), every=0.01) for _ in range(2))
    place = world(gate=gate)
    live = place.services.registry.start(PLAN, owner="both")
    first.follow(live)
    row = None
    while row is None:
        row = await second.call(second.store.get, live.id)
    assert second.running_elsewhere(row)
    assert not first.running_elsewhere(row)
    gate.set()
    await place.services.registry.finished(live)
    await first.kept(live.id)
    assert await second.call(second.store.record, live.id) == live.log.record()
    with pytest.raises(StoreError):
        await second.bring(b"{}", owner="both")
    await second.delete(live.id, "both")
    for one in (first, second):
        await one.aclose()


async def test_an_orderly_end_keeps_the_ends(file: Path) -> None:
    """A page that is told to end stops its runs and then writes their ends: they are stopped, not interrupted."""
    place, kept = world(gate=asyncio.Event()), Keeper(RunStore(Database(parse(f"sqlite:///{file}"))), every=5.0)
    live = place.services.registry.start(PLAN)
    kept.follow(live)
    await until(lambda: len(live.log) >= 4)
    await place.services.registry.aclose()
    await kept.aclose()
    after = RunStore(Database(parse(f"sqlite:///{file}")))
    row = after.get(live.id)
    assert row is not None
    assert row.state == "cancelled"
    assert after.record(live.id) == live.log.record()
    after.database.close()
