"""Which engines there are: managed by us, attached by address, those of a running ``specdemo serve``, or none."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_dir, user_data_dir

from specdemo.compose.attached import open_attached
from specdemo.compose.managed import ManagedPair, hardware
from specdemo.compose.running import Running, find_running, open_running
from specdemo.core.events import Side
from specdemo.core.prompt import Prompt
from specdemo.engines.environment import EngineEnvironment, find_engine_python, inspect
from specdemo.engines.safety import REPAIR_SETTING, refusal
from specdemo.errors import ConfigError
from specdemo.runs.ports import Engine, EngineControl
from specdemo.runs.preflight import Facts
from specdemo.runs.race import Surroundings
from specdemo.settings import Settings

_log = logging.getLogger(__name__)

Mode = Literal["managed", "attached", "replay"]

GET_ENGINES = (
    "No engine environment was found, so only recorded runs can be played. To get engines: run `make setup`, or set "
    "SPECDEMO_ENGINE__PYTHON to a Python that has vLLM, or attach two running engines with --standard-url and "
    "--speculative-url."
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """What there is to work with. ``engines`` and ``control`` are None in replay; ``reason`` says in one sentence
    why it is this mode. ``managed`` is set when this process runs the engines itself.
    """

    mode: Mode
    reason: str
    engines: Mapping[Side, Engine] | None = None
    control: EngineControl | None = None
    managed: ManagedPair | None = None
    around: Surroundings = field(default_factory=Surroundings)

    async def wait_ready(self, timeout_s: float) -> None:
        """Until both engines are ready; at once unless we start them. Raises EngineUnavailable or SetupError."""
        if self.managed is not None:
            await self.managed.wait_ready(timeout_s)


@dataclass(frozen=True, slots=True)
class Folders:
    """Where things are kept: ``data`` for state, logs and runs, ``cache`` for what can be made again."""

    data: Path
    cache: Path


def folders(settings: Settings) -> Folders:
    """The folders that the settings name, else the system's own for this user."""
    return Folders(
        settings.data_dir or Path(user_data_dir("specdemo", appauthor=False)),
        settings.cache_dir or Path(user_cache_dir("specdemo", appauthor=False)),
    )


@asynccontextmanager
async def open_deployment(
    settings: Settings, *, reuse: bool = True, autostart: bool = True
) -> AsyncIterator[Deployment]:
    """The engines that the settings ask for, closed or stopped afterwards.

    ``reuse`` takes the engines of a running ``specdemo serve`` of this user when they are what the settings ask for.
    ``autostart`` begins to load managed engines at once, in the background. Raises ConfigError.
    """
    mode, reason = _mode(settings)
    around = Surroundings(limit_s=settings.limits.run_s, refuse=_refuse, prompt_tokens=settings.limits.prompt_tokens)
    if mode == "replay":
        yield Deployment("replay", reason, around=around)
        return
    if mode == "attached":
        async with open_attached(settings) as (engines, control):
            yield Deployment("attached", reason, engines, control, around=around)
        return
    environment = _environment(settings)
    if environment is None:
        raise ConfigError(GET_ENGINES)
    places = folders(settings)
    pair = ManagedPair(settings, environment, data=places.data, cache=places.cache)
    around = replace(around, hardware=hardware(environment))
    running = find_running(places.data) if reuse else None
    if running is not None and _wanted(pair, running):
        async with open_running(running, settings) as (engines, control):
            reason = f"These are the engines of the specdemo that runs as process {running.pid}."
            yield Deployment("attached", reason, engines, control, around=around)
        return
    async with pair:
        if autostart:
            pair.begin()
        yield Deployment("managed", reason, pair.engines, pair, pair, around)


def _mode(settings: Settings) -> tuple[Mode, str]:
    """The mode, and why. Raises ConfigError where the settings contradict themselves."""
    given = [side.base_url is not None for side in (settings.standard, settings.speculative)]
    if settings.mode == "attached" or (settings.mode == "auto" and any(given)):
        if not all(given):
            missing = "standard" if not given[0] else "speculative"
            raise ConfigError(
                f"Two engines are needed and the {missing} one has no address: give --{missing}-url, or set "
                f"SPECDEMO_{missing.upper()}__BASE_URL."
            )
        return "attached", "Two addresses were given."
    if settings.mode == "replay":
        return "replay", "The settings ask for recorded runs only."
    if settings.mode == "managed":
        return "managed", "The settings ask for engines of our own."
    try:
        environment = _environment(settings)
    except ConfigError as error:
        return "replay", str(error)
    if environment is None:
        return "replay", GET_ENGINES
    if environment.problem is not None:
        return "replay", f"Only recorded runs can be played: {environment.problem}"
    return "managed", "An engine environment was found."


def _environment(settings: Settings) -> EngineEnvironment | None:
    python = find_engine_python(settings.engine.python)
    return inspect(python) if python is not None else None


def _refuse(prompt: Prompt, facts: Facts) -> str | None:
    """What would harm an engine. What one merely rejects is left to it, since its own words belong on the page."""
    harmful = replace(prompt.sampling, min_p=0.0)
    for known in facts:
        if known is not None:
            repaired = dict(known.settings).get(REPAIR_SETTING) == "on"
            reason = refusal(
                harmful,
                speculating=bool(known.speculating),
                device=known.device,
                repaired=repaired,
                version=known.version,
            )
            if reason is not None:
                return reason
    return None


def _wanted(pair: ManagedPair, running: Running) -> bool:
    """Whether running engines are what these settings would start."""
    try:
        wanted = pair.specs_if_known()
    except ConfigError:
        return False
    if wanted is None or wanted == running.specs:
        return wanted is not None
    _log.warning("A specdemo runs as process %s, but its engines are not what these settings ask for.", running.pid)
    return False
