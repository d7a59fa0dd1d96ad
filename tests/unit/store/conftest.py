"""A store for each test: SQLite in its folder, and PostgreSQL where the machine has its server programs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from specdemo.store.database import Database, parse
from specdemo.store.runs import RunStore
from specdemo.store.tables import parts, runs
from tests.fakes import postgres


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a real PostgreSQL server."""
    found = postgres.programs()
    if found is None:
        pytest.skip("no PostgreSQL server programs: install Debian's package postgresql")
    with postgres.serving(found) as address:
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where the store lies."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/data/runs.db"
    return str(request.getfixturevalue("server"))


@pytest.fixture
def store(address: str) -> Iterator[RunStore]:
    """An empty store."""
    opened = Database(parse(address))

    def empty(connection: sa.Connection) -> None:
        connection.execute(parts.delete())
        connection.execute(runs.delete())

    opened.write(empty)
    yield RunStore(opened)
    opened.close()
