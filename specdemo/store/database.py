"""One database behind the store: opened when first needed, brought up to date under a lock, its faults in plain words.

Everything here blocks; ``keeper.py`` calls it from threads. Sentences name no path, host or user, since visitors read
them; the log has what the database itself said, without the password.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from filelock import FileLock, Timeout
from sqlalchemy import event
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from specdemo.core.sentences import sentence
from specdemo.errors import ConfigError, StoreError

_log = logging.getLogger(__name__)

BUSY_S = 5.0
"""How long a write waits for another program's (s)."""
LOCK_S = 60.0
"""How long a start waits for another's migration (s)."""
RETRY_S = 10.0
"""After a database server was out of reach, the next try comes so much later (s): each try may wait."""
_MIGRATIONS = Path(__file__).with_name("migrations")
_ADVISORY = 0x5BECDE30
"""Name of PostgreSQL's lock around migrations: any number, the same in all versions."""

T = TypeVar("T")


class StoreUnavailable(StoreError):
    """The database itself cannot be used now; what was to be kept may be offered again."""

    kind = "store_unavailable"


_SQLITE = (
    ("SQLITE_BUSY", "locked"), ("SQLITE_LOCKED", "locked"), ("SQLITE_FULL", "full"), ("SQLITE_READONLY", "read_only"),
    ("SQLITE_CANTOPEN", "unopened"), ("SQLITE_NOTADB", "foreign"), ("SQLITE_CORRUPT", "damaged"),
    ("SQLITE_IOERR", "disk"),
)  # fmt: skip
_POSTGRESQL = (
    ("53100", "full"), ("25006", "read_only"), ("55P03", "locked"), ("40", "locked"), ("57014", "slow"),
    ("28", "login"), ("3D000", "name"), ("42501", "rights"),
)  # fmt: skip
"""Beginnings of error codes, and what they mean: a part of ``core/wording_store.py``."""


def parse(address: str) -> URL:
    """The database's address. Raises ConfigError; the text does not repeat the address, which may hold a password."""
    try:
        url = _known(sa.make_url(address))
        if url is not None:
            url.get_dialect()().create_connect_args(url)  # reads host, port and options, and opens nothing
            return url
    except (SQLAlchemyError, ValueError, TypeError):
        pass  # a ValueError repeats the part that it cannot read, such as a password with a colon
    raise ConfigError(
        "store.url is no address of a database that runs can be kept in; write "
        "postgresql://user:password@host/name or sqlite:////path/to/runs.db, or leave it out for the data folder."
    )


def _known(url: URL) -> URL | None:
    """The address with our driver; None where no runs can be kept."""
    kind, database = url.get_backend_name(), url.database or ""
    if "\0" in database or (url.port is not None and not 0 < url.port < 65536):
        return None
    if kind in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if kind == "sqlite" and database and database != ":memory:" and not database.startswith("file:"):
        return url.set(drivername="sqlite+pysqlite")
    return None


class Database:
    """A database that may be missing, locked, full, read-only or gone at any time. Safe for threads."""

    def __init__(self, url: URL, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._url = url
        self._file = Path(url.database) if url.get_backend_name() == "sqlite" and url.database else None
        self._clock = clock
        self._mutex = threading.Lock()
        self._engine: Engine | None = None
        self._identity: tuple[int, int] | None = None
        self._refused: tuple[float, str] | None = None

    @property
    def local(self) -> bool:
        """Whether it is a file of this machine; a server may have other writers."""
        return self._file is not None

    def read(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in a transaction that only reads. Raises StoreUnavailable."""
        with _told(), self._ready().connect() as connection, connection.begin():
            return work(connection)

    def write(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in a transaction: all of it is kept or nothing. Raises StoreUnavailable."""
        with _told(), self._ready().connect().execution_options(writing=True) as connection, connection.begin():
            return work(connection)

    def close(self) -> None:
        """Give connections back; the next use opens anew."""
        with self._mutex:
            self._drop()

    def _drop(self) -> None:
        if self._engine is not None:
            self._engine.dispose()
        self._engine = None

    def _ready(self) -> Engine:
        with self._mutex:
            if self._engine is not None and self._identity != self._seen():
                # A deleted file would take writes for ever, and lose them.
                _log.warning("The run store's file was replaced or removed; it is opened anew.")
                self._drop()
            if self._engine is None:
                if self._refused is not None and self._clock() < self._refused[0]:
                    raise StoreUnavailable(self._refused[1])
                try:
                    self._engine = self._open()
                except StoreUnavailable as error:
                    # A file costs nothing to try again.
                    self._refused = None if self.local else (self._clock() + RETRY_S, str(error))
                    raise
            return self._engine

    def _seen(self) -> tuple[int, int] | None:
        if self._file is None:
            return None
        try:
            found = self._file.stat()
        except OSError:
            return (0, 0)
        return (found.st_dev, found.st_ino)

    def _open(self) -> Engine:
        with _told():
            if self._file is not None:
                self._file.parent.mkdir(parents=True, exist_ok=True)
            engine = _engine(self._url)
            try:
                self._migrate(engine)
            except BaseException:
                engine.dispose()
                raise
            self._identity = self._seen()
        return engine

    def _migrate(self, engine: Engine) -> None:
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        scripts = ScriptDirectory.from_config(config)
        with engine.connect() as connection:
            if _revision(connection, scripts) == scripts.get_current_head():
                return
        with self._lock(), engine.connect().execution_options(writing=True) as connection, connection.begin():
            if self._file is None:
                connection.execute(sa.text("SET LOCAL lock_timeout = 60000"))
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_ADVISORY)))
            if _revision(connection, scripts) != scripts.get_current_head():
                config.attributes["connection"] = connection
                command.upgrade(config, "head")

    @contextmanager
    def _lock(self) -> Iterator[None]:
        if self._file is None:
            yield
            return
        try:
            with FileLock(f"{self._file}.lock", timeout=LOCK_S):
                yield
        except Timeout:
            raise StoreUnavailable(_sentence("locked")) from None


def _revision(connection: Connection, scripts: ScriptDirectory) -> str | None:
    found = MigrationContext.configure(connection).get_current_revision()
    if found is not None and found not in {script.revision for script in scripts.walk_revisions()}:
        raise StoreUnavailable(_sentence("newer"))
    return found


def _engine(url: URL) -> Engine:
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(
            url,
            pool_pre_ping=True,
            connect_args={"connect_timeout": 5, "options": "-c lock_timeout=5000 -c statement_timeout=30000"},
        )
    engine = sa.create_engine(url, connect_args={"timeout": BUSY_S})

    def connected(connection: sqlite3.Connection, _: Any) -> None:
        # Transactions are begun by us: the driver's own begin leaves migrations half done after a crash.
        connection.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")

    def begun(connection: Connection) -> None:
        # A transaction that first reads and then writes could not wait for another's lock.
        writing = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    event.listen(engine, "connect", connected)
    event.listen(engine, "begin", begun)
    return engine


@contextmanager
def _told() -> Iterator[None]:
    """Whatever the database or its disk throws, as a StoreUnavailable."""
    try:
        yield
    except DBAPIError as error:
        _log.warning("The run store failed: %s", error.orig)
        raise StoreUnavailable(_words(error.orig)) from None
    except (PoolTimeout, SQLAlchemyError, sqlite3.Error) as error:
        _log.warning("The run store failed: %s", error)
        raise StoreUnavailable(_words(error)) from None
    except OSError as error:
        _log.warning("The run store failed: %s", error)
        raise StoreUnavailable(_sentence("system", quote=os.strerror(error.errno or 0).lower())) from None


def _sentence(cause: str, **values: str) -> str:
    return sentence("store_unusable", cause=sentence(f"part_store_{cause}", **values))


def _words(error: object) -> str:
    name = getattr(error, "sqlite_errorname", None)
    state = getattr(error, "sqlstate", None)
    code, known = (name, _SQLITE) if isinstance(name, str) else (state, _POSTGRESQL)
    if not isinstance(code, str):
        return _sentence("unreachable")
    cause = next((cause for prefix, cause in known if code.startswith(prefix)), None)
    return _sentence("code", code=code) if cause is None else _sentence(cause)
