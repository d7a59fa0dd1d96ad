"""What several tests of the page start from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from specdemo.store.database import Database, parse
from specdemo.store.keeper import Keeper
from specdemo.store.runs import RunStore
from tests.unit.ui.pair import World, world


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[World]:
    """A page whose visitors are kept apart, with a store."""
    keeper = Keeper(RunStore(Database(parse(f"sqlite:///{tmp_path}/runs.db"))), every=0.01)
    made = world(pause=0.001, keeper=keeper, together=False)
    yield made
    await made.services.registry.aclose()
    await keeper.aclose()
