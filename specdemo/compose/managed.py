"""Two engines of our own: model made ready, specs built, children supervised, each reachable at its current address.

Preparing (environment, model, profile) takes time and can fail, so it runs behind the page and its stage is shown like
any other stage of loading.
"""

from __future__ import annotations

import asyncio
import logging
import os
import platform
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from specdemo.compose.attached import limits
from specdemo.compose.switch import MethodSwitch
from specdemo.compose.texts import token_texts
from specdemo.core.engine import EngineFacts, EngineSpec, EngineState, EngineStatus
from specdemo.core.events import SIDES, Event, Failed, Side, SpecCounters, TopToken
from specdemo.core.prompt import Prompt
from specdemo.engines import profiles
from specdemo.engines.client import VllmEngine
from specdemo.engines.environment import EngineEnvironment, gpus
from specdemo.engines.models import embedded_folder, model_source, resolve_model
from specdemo.engines.safety import REPAIR_SETTING, REPAIR_SWITCH
from specdemo.engines.shipped import shipped_draft
from specdemo.engines.slot import Timing
from specdemo.engines.supervisor import Supervisor, vllm_launcher
from specdemo.errors import EngineError, EngineUnavailable, SetupError, SpecDemoError
from specdemo.runs.ports import Engine, ScoredToken
from specdemo.runs.streams import closing
from specdemo.settings import Settings

_log = logging.getLogger(__name__)

SpecPair = tuple[EngineSpec, EngineSpec]


class ManagedPair:
    """Fulfils runs.ports.EngineControl. ``begin`` loads in the background; leaving the block stops everything."""

    def __init__(self, settings: Settings, environment: EngineEnvironment, *, data: Path, cache: Path) -> None:
        self._settings = settings
        self._environment = environment
        self._data = data
        self._cache = cache
        self._supervisor: Supervisor | None = None
        self._loading: asyncio.Task[None] | None = None
        self._stage = ""
        self._since = time.monotonic()
        self._failure: SpecDemoError | None = None
        self._clients = {side: _Current(side, self) for side in SIDES}
        self.engines: Mapping[Side, Engine] = dict(self._clients)
        self.method = MethodSwitch(
            settings, environment, lambda: self._supervisor, shipped_draft, self._clients[Side.SPECULATIVE].busy
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])
        for client in self._clients.values():
            await client.aclose()
        if self._supervisor is not None:
            await self._supervisor.aclose()

    def begin(self) -> None:
        """Prepare and start both, behind the caller."""
        self._want(SIDES)

    async def wait_ready(self, timeout_s: float) -> None:
        """Until both are ready. Raises EngineUnavailable, SetupError or ConfigError with what went wrong."""
        begun = time.monotonic()
        if self._loading is not None:
            done, _ = await asyncio.wait([self._loading], timeout=timeout_s)
            if not done:
                raise EngineUnavailable(f"Not ready after {timeout_s:g} s: {self._stage}.")
        if self._failure is not None:
            raise self._failure
        if self._supervisor is None:
            raise EngineUnavailable("The engines were not started.")
        await self._supervisor.wait_ready(max(0.0, timeout_s - (time.monotonic() - begun)))

    @property
    def specs(self) -> SpecPair | None:
        """What runs, once it is known."""
        if self._supervisor is None:
            return None
        return self._supervisor.spec(Side.STANDARD), self._supervisor.spec(Side.SPECULATIVE)

    def specs_if_known(self) -> SpecPair | None:
        """What the settings would start; None while the embedded model is not there yet."""
        source = model_source(self._settings.engine.model)
        reference = source.reference or str(embedded_folder(self._cache))
        if source.kind == "embedded" and not Path(reference).is_dir():
            return None
        pair = self._build(reference, source.served_name)
        return pair.standard, pair.speculative

    def base_url(self, side: Side) -> str | None:
        """Where this engine answers now."""
        return self._supervisor.base_url(side) if self._supervisor is not None else None

    def repaired(self, side: Side) -> bool:
        """Whether this engine said that the CPU sampling repair is in place."""
        return self._supervisor is not None and self._supervisor.repaired(side)

    def statuses(self) -> tuple[EngineStatus, EngineStatus]:
        """Standard first. Never blocks."""
        if self._supervisor is not None:
            return self._supervisor.statuses()
        standard, speculative = (self._preparing(side) for side in SIDES)
        return standard, speculative

    async def start(self, side: Side) -> None:
        """Start one; prepares first if that has not been done or has failed."""
        if self._supervisor is not None:
            await self._supervisor.start(side)
        else:
            self._want((side,))

    async def stop(self, side: Side) -> None:
        """Stop one; while still preparing, both."""
        if self._supervisor is not None:
            await self._supervisor.stop(side)
        elif self._loading is not None:
            self._loading.cancel()
            await asyncio.wait([self._loading])

    async def restart(self, side: Side) -> None:
        """Stop if need be, then start."""
        if self._supervisor is not None:
            await self._supervisor.restart(side)
        else:
            await self.start(side)

    def connect(self, side: Side) -> VllmEngine:
        """A client for where this engine is now. Raises EngineUnavailable while it is not ready."""
        address = self.base_url(side)
        if address is None or self._supervisor is None:
            raise EngineUnavailable(_why(self.statuses()[SIDES.index(side)]))
        spec = self._supervisor.spec(side)
        return VllmEngine(
            side,
            address,
            model=spec.served_name,
            limits=limits(self._settings),
            spec=spec,
            splitter=token_texts(spec.model),
        )

    def _want(self, sides: Sequence[Side]) -> None:
        if self._loading is None or self._loading.done():
            self._failure, self._since = None, time.monotonic()
            self._loading = asyncio.create_task(self._load(sides), name="load engines")

    async def _load(self, sides: Sequence[Side]) -> None:
        try:
            supervisor = await self._prepared()
            await supervisor.open()
            self._supervisor = supervisor
            for side in sides:
                await supervisor.start(side)
        except SpecDemoError as error:
            self._failure = error
            _log.error("%s", error)
        except Exception:  # noqa: BLE001 - a background task: what is not kept here is lost
            _log.exception("engines could not be prepared")
            self._failure = SetupError("specdemo failed while it prepared the engines; its log has the details.")

    async def _prepared(self) -> Supervisor:
        self._stage = "looking at the machine"
        if self._environment.problem is not None:
            raise SetupError(self._environment.problem)
        source = await asyncio.to_thread(
            resolve_model,
            self._settings.engine.model,
            engine_python=self._environment.python,
            cache_dir=self._cache,
            progress=self._progress,
        )
        pair = await asyncio.to_thread(self._build, source.reference, source.served_name)
        return Supervisor(
            pair.standard,
            pair.speculative,
            state_dir=self._data / "engines",
            launcher=vllm_launcher(self._environment.python, version=self._environment.version),
            parallel=pair.parallel,
            timing=Timing(load=self._settings.engine.ready_timeout_s),
            version=self._environment.version,
        )

    def _progress(self, line: str) -> None:
        self._stage = line

    def _build(self, model: str, served_name: str) -> profiles.EnginePair:
        wanted = self._settings.engine
        found = gpus() if self._environment.device == "cuda" else ()
        profile = profiles.choose(self._environment.device, found) if wanted.profile == "auto" else wanted.profile
        speculation = profiles.wanted_speculation(
            profile,
            model,
            speculation=wanted.speculation,
            draft_model=wanted.draft_model,
            k=wanted.k,
            allow_lossy=wanted.allow_lossy,
        )
        return profiles.build(
            profile,
            model=model,
            served_name=served_name,
            speculation=speculation,
            tuning=profiles.Tuning(
                dtype=wanted.dtype,
                max_model_len=wanted.max_model_len,
                max_num_seqs=wanted.max_num_seqs,
                seed=wanted.seed,
                enforce_eager=wanted.enforce_eager,
                memory_share=wanted.memory_share,
                kv_cache_bytes=wanted.kv_cache_bytes,
                tensor_parallel=wanted.tensor_parallel,
                prefix_caching=wanted.prefix_caching,
                cores=(wanted.standard_cores, wanted.speculative_cores),
                gpus=(wanted.standard_gpus, wanted.speculative_gpus),
            ),
            gpus=found,
            flags=dict(wanted.flags),
            environment={} if wanted.cpu_repair else {REPAIR_SWITCH: "0"},
        )

    def _preparing(self, side: Side) -> EngineStatus:
        seconds = time.monotonic() - self._since
        if self._failure is not None:
            return EngineStatus(side, EngineState.FAILED, True, seconds=seconds, error=str(self._failure))
        if self._loading is None or self._loading.done():
            return EngineStatus(side, EngineState.STOPPED, True, seconds=seconds)
        return EngineStatus(side, EngineState.WAITING, True, stage=self._stage, seconds=seconds)


class _Current:
    """One managed engine, wherever it runs now: a restart changes its address, not this object."""

    def __init__(self, side: Side, pair: ManagedPair) -> None:
        self.side = side
        self._pair = pair
        self._client: VllmEngine | None = None
        self._made_for: tuple[str | None, EngineSpec | None] = (None, None)

    @property
    def model(self) -> str:
        specs = self._pair.specs
        return specs[SIDES.index(self.side)].served_name if specs else ""

    async def stream(self, prompt: Prompt, *, zero: float, cache_salt: str | None = None) -> AsyncIterator[Event]:
        try:
            client = await self._now()
        except EngineError as error:
            yield Failed(self.side, max(0.0, time.monotonic() - zero), "unavailable", str(error))
            return
        async with closing(client.stream(prompt, zero=zero, cache_salt=cache_salt)) as events:
            async for event in events:
                yield event

    async def facts(self) -> EngineFacts:
        found = await (await self._now()).facts()
        return completed(found, repaired=self._pair.repaired(self.side))

    async def tokenize(self, prompt: Prompt) -> tuple[int, ...] | None:
        return await (await self._now()).tokenize(prompt)

    async def counters(self) -> SpecCounters | None:
        return await (await self._now()).counters()

    async def busy(self) -> bool:
        """Whether it answers somebody now, whoever asked; False where it does not tell."""
        try:
            found = await self.counters()
        except EngineError:
            return False
        return found is not None and bool((found.requests_running or 0) + (found.requests_waiting or 0))

    async def candidates(self, token_ids: Sequence[int], *, wanted: Sequence[int] = ()) -> tuple[TopToken, ...]:
        return await (await self._now()).candidates(token_ids, wanted=wanted)

    async def score(
        self, prompt_ids: Sequence[int], output_ids: Sequence[int], *, top: int = 2
    ) -> tuple[ScoredToken, ...]:
        return await (await self._now()).score(prompt_ids, output_ids, top=top)

    async def aclose(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _now(self) -> VllmEngine:
        # A port can come up again, so the address alone does not tell what an engine was started with.
        specs = self._pair.specs
        now = (self._pair.base_url(self.side), specs[SIDES.index(self.side)] if specs else None)
        if self._client is None or now != self._made_for:
            await self.aclose()
            self._client, self._made_for = self._pair.connect(self.side), now
        return self._client


def completed(found: EngineFacts, *, repaired: bool) -> EngineFacts:
    """What an engine says of itself, and whether its sampling was repaired, which only its log says."""
    if not repaired:
        return found
    return replace(found, settings=tuple(sorted({**dict(found.settings), REPAIR_SETTING: "on"}.items())))


def hardware(environment: EngineEnvironment) -> str:
    """The machine in a few words, for labels: "2 CPU cores, x86_64" or the GPUs' names."""
    cards = gpus() if environment.device == "cuda" else ()
    if cards:
        names = sorted({card.name for card in cards})
        return f"{len(cards)} x {' / '.join(names)}"
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{cores} CPU core{'s' if cores != 1 else ''}, {platform.machine()}"


def _why(status: EngineStatus) -> str:
    if status.error:
        return f"The {status.side} engine is {status.state}: {status.error}"
    stage = f" ({status.stage})" if status.stage else ""
    return f"The {status.side} engine is {status.state}{stage}; wait until it is ready, or start it."
