"""A run's owner deletes or shares it while its first write is on its way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from specdemo.core.prompt import chat
from specdemo.core.run import RunPlan
from specdemo.store import keeper
from specdemo.store.database import Database, StoreUnavailable, parse
from specdemo.store.keeper import Keeper
from specdemo.store.runs import RunStore
from tests.unit.ui.pair import world

PLAN = RunPlan(prompt=chat("go"), warmup=False)


@pytest.fixture
async def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Keeper]:
    """A keeper that tries again at once."""
    monkeypatch.setattr(keeper, "AGAIN_S", (0.0, 0.0))
    made = Keeper(RunStore(Database(parse(f"sqlite:///{tmp_path}/runs.db"))), every=0.01)
    yield made
    await made.aclose()


@pytest.mark.parametrize("late", [False, True])
async def test_deleted_before_its_first_write(kept: Keeper, monkeypatch: pytest.MonkeyPatch, late: bool) -> None:
    """A finished run whose row is not there yet (or just being made) does not come back after its owner deleted it."""
    place = world()
    begin, tried, go_on = kept.store.begin, threading.Event(), threading.Event()

    def slow(*args: Any) -> None:
        if tried.is_set() and not late:
            begin(*args)
            return
        tried.set()
        go_on.wait(5)
        if not late:
            raise StoreUnavailable("locked")
        begin(*args)

    monkeypatch.setattr(kept.store, "begin", slow)
    live = place.services.registry.start(PLAN, owner="me")
    kept.follow(live)
    await place.services.registry.finished(live)
    assert await asyncio.to_thread(tried.wait, 5)
    assert await kept.delete(live.id, "me", own=True) is True
    go_on.set()
    await kept.kept(live.id)
    assert kept.store.get(live.id) is None
    assert kept._deleted == set()


@pytest.mark.parametrize("before", [False, True])
async def test_the_share_switch_while_the_row_is_made(
    kept: Keeper, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    """Turned on or off while the first write is on its way, the switch is kept as it was turned last."""
    place = world()
    begin, tried, go_on = kept.store.begin, threading.Event(), threading.Event()

    def slow(*args: Any) -> None:
        tried.set()
        go_on.wait(5)
        begin(*args)

    monkeypatch.setattr(kept.store, "begin", slow)
    live = place.services.registry.start(PLAN, owner="me")
    live.shared = before
    kept.follow(live)
    assert await asyncio.to_thread(tried.wait, 5)
    live.shared = not before
    assert await kept.call(kept.store.share, live.id, "me", shared=not before) is False
    go_on.set()
    await place.services.registry.finished(live)
    await kept.kept(live.id)
    found = kept.store.get(live.id)
    assert found is not None
    assert found.shared is not before
