"""Two engines that somebody else runs, by address."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from specdemo.compose.texts import token_texts
from specdemo.core.engine import EngineFacts
from specdemo.core.events import SIDES, Side
from specdemo.engines.attached import AttachedControl, Target
from specdemo.engines.client import VllmEngine
from specdemo.engines.limits import Limits
from specdemo.engines.probe import Probe
from specdemo.engines.url import parse_base_url
from specdemo.errors import ConfigError
from specdemo.runs.ports import Engine
from specdemo.settings import Settings
from specdemo.settings.schema import Attached

Pair = tuple[Mapping[Side, Engine], AttachedControl]


@asynccontextmanager
async def open_attached(settings: Settings) -> AsyncIterator[Pair]:
    """Clients and a watching control for both addresses. Raises ConfigError for an address that cannot be one."""
    async with AsyncExitStack() as stack:
        engines: dict[Side, Engine] = {}
        targets = []
        for side, given in zip(SIDES, (settings.standard, settings.speculative), strict=True):
            key = given.api_key.get_secret_value() if given.api_key else None
            base = parse_base_url(given.base_url or "")
            engine = _Attached(
                side,
                given.base_url or "",
                model=given.model,
                api_key=key,
                ca_file=given.ca_file,
                limits=limits(settings),
            )
            stack.push_async_callback(engine.aclose)
            engines[side] = engine
            # A key goes before a login, as for the client; an environment's proxy stands before other machines only.
            root = base.root if key else base.with_login
            probe = Probe(root, api_key=key, verify=_verify(given), trust_env=not base.loopback)
            targets.append(Target(side, base.root, probe, given.model))
        control = AttachedControl(*targets)
        stack.push_async_callback(control.aclose)
        await control.open()
        yield engines, control


class _Attached(VllmEngine):
    """A client that learns which model the engine serves, and tells a burst's tokens apart if that model lies here."""

    async def facts(self) -> EngineFacts:
        """As the engine says. Its model's folder or hub id may lie on this machine too."""
        found = await super().facts()
        self._splitter = token_texts(found.root or "") or token_texts(found.model)
        return found


def limits(settings: Settings) -> Limits:
    """The client's limits: the settings' two, and its own defaults."""
    return Limits(
        first_token_s=settings.limits.first_token_s, stall_s=settings.limits.stall_s, total_s=settings.limits.run_s
    )


def _verify(given: Attached) -> ssl.SSLContext | bool:
    if given.ca_file is None:
        return True
    with contextlib.suppress(OSError):
        return ssl.create_default_context(cafile=str(given.ca_file))
    raise ConfigError(f"The certificate authority file {given.ca_file} cannot be read as PEM; correct its path.")
