"""How the page meets the outside world, from the settings: sign-in, names, proxies, visitors' limits, a slow end."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from pathlib import Path

from pydantic import SecretStr

from specdemo.runs.registry import Registry
from specdemo.settings import Settings, hosted
from specdemo.ui.door import LOCAL, host_name
from specdemo.ui.front import Front
from specdemo.ui.quota import Allowance, Quota
from specdemo.ui.visitors import signing_key

_log = logging.getLogger(__name__)


def front(settings: Settings, data: Path) -> Front:
    """The front that the settings ask for. ``data`` keeps the key of visitors' cookies."""
    server = settings.server
    return Front(
        auth=_plain(server.auth),
        token=_plain(server.token),
        hosts=_hosts(settings),
        proxies=server.proxies,
        secret=_plain(server.secret) or signing_key(data),
        metrics=not server.public if server.metrics is None else server.metrics,
        metrics_token=_plain(server.metrics_token),
        upload_bytes=int(settings.limits.upload_mb * 1_000_000),
        framed=hosted(),
    )


def allowance(settings: Settings) -> Allowance:
    """What one visitor may have."""
    limits = settings.limits
    return Allowance(
        runs_per_minute=limits.runs_per_minute,
        open_runs=limits.open_runs,
        requests_per_minute=limits.requests_per_minute,
        streams=limits.streams,
        per_address=limits.per_address,
    )


async def drain(quota: Quota, registry: Registry, seconds: float) -> None:
    """Take no new run and let the others end, for at most ``seconds``."""
    quota.closing = True
    tasks = [live.task for live in registry.live() if live.task is not None]
    if tasks and seconds > 0:
        await asyncio.wait(tasks, timeout=seconds)
    if left := len(registry.live()):
        _log.warning("%s runs were still going when the page ended", left)


def _hosts(settings: Settings) -> frozenset[str] | None:
    """The names that this page answers to; None for any."""
    server = settings.server
    named = frozenset(host_name(part) for part in server.hosts.split(",") if part.strip())
    if named:
        return named | {LOCAL}
    guarded = server.public or server.auth is not None or server.token is not None or server.root_path
    return None if guarded or not _loopback(server.host) else frozenset({LOCAL})


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _plain(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret is not None else None
