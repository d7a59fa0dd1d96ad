"""The run store as the settings ask for it, and who shares it."""

from __future__ import annotations

import ipaddress

from specdemo.compose.deployment import folders
from specdemo.core.run import RunRecord
from specdemo.errors import StoreError
from specdemo.settings import Settings, hosted
from specdemo.store.database import Database, parse
from specdemo.store.keeper import Keeper
from specdemo.store.runs import Retention, RunStore

FILE = "runs.db"


def open_keeper(settings: Settings) -> Keeper:
    """What keeps runs. Nothing is opened before it is needed. Raises ConfigError for an address that is none."""
    wanted = settings.store
    if wanted.url is not None:
        url = parse(wanted.url.get_secret_value())
    else:
        url = parse(f"sqlite:///{folders(settings).data / FILE}")
    retention = Retention(
        days=wanted.days, count=wanted.runs, size=int(wanted.megabytes * 1e6), each_owner=settings.limits.stored_runs
    )
    return Keeper(RunStore(Database(url), retention), keep=wanted.keep)


def keep_run(settings: Settings, record: RunRecord) -> str | None:
    """Keep one finished run of the command line; the sentence why it was not, if so. It belongs to nobody's browser."""
    keeper = open_keeper(settings)
    try:
        keeper.take_now(record, owner="")
        keeper.store.make_room()
    except StoreError as error:
        return f"This run is not among the kept ones: {error}"
    finally:
        keeper.store.database.close()
    return None


def together(settings: Settings) -> bool:
    """Whether everybody at the page is whoever runs it: a page for this machine alone, without sign-in or proxy."""
    server = settings.server
    signed_in = server.auth is not None or server.token is not None
    if server.public or signed_in or server.root_path or server.hosts or hosted():
        return False
    try:
        return ipaddress.ip_address(server.host).is_loopback
    except ValueError:
        return server.host == "localhost"
