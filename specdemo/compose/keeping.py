"""The run store as the settings ask for it, and who shares it."""

from __future__ import annotations

import ipaddress

from specdemo.compose.deployment import folders
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
