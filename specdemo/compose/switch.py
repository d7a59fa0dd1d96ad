"""Changing what the speculative engine speculates with while the page is open.

choice and k ─► checked like a setting ─► its engine alone restarts ─► ready, or its sentence and the way back

A configuration is vLLM's own, so going back brings back exactly what ran before. Fulfils runs.ports.MethodControl.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from specdemo.core.choice import CONFIGURED, DRAFT_MODEL, K_CHOICES, NGRAM, NONE, Choice, Picked, Switching
from specdemo.core.engine import EngineSpec, EngineState, EngineStatus, Speculation
from specdemo.core.events import Side
from specdemo.core.sentences import sentence
from specdemo.engines.drafts import check_speculation, package_beside
from specdemo.engines.environment import EngineEnvironment
from specdemo.engines.footprint import draft_bytes
from specdemo.engines.profiles import first_k
from specdemo.engines.speculation import PRESETS, as_config, describe, parse_speculation
from specdemo.engines.supervisor import Supervisor
from specdemo.errors import ConfigError, EngineUnavailable, SpecDemoError, UsageError
from specdemo.settings import Settings

_SPEC = Side.SPECULATIVE


class MethodSwitch:
    """``supervisor`` gives the engines once they were prepared; ``draft`` names the draft model that fits a target;
    ``busy`` tells whether the speculative engine answers somebody now.

    Raises UsageError, ConfigError or EngineUnavailable with the sentence for the page.
    """

    def __init__(
        self,
        settings: Settings,
        environment: EngineEnvironment,
        supervisor: Callable[[], Supervisor | None],
        draft: Callable[[str], str | None],
        busy: Callable[[], Awaitable[bool]],
    ) -> None:
        self._settings = settings
        self._environment = environment
        self._supervisor = supervisor
        self._draft = draft
        self._busy = busy
        self._first: Speculation | None = None
        self._begun = False
        self._good: tuple[Speculation | None] | None = None
        self._changing = asyncio.Lock()
        self._memory: dict[Speculation | None, tuple[int | None, int]] = {}
        self._kept: tuple[object, tuple[Choice, ...]] = (None, ())

    def switching(self) -> Switching | None:
        """What can be chosen and what runs; None until the engines were prepared. Reads small files, once a change."""
        supervisor = self._supervisor()
        if supervisor is None:
            return None
        spec, status = self._looked_at(supervisor)
        current = spec.speculation
        if status.state is EngineState.READY:
            self._good = (current,) if self._good is None else self._good
        key = (current, status.state, tuple(self._memory.items()))
        if self._kept[0] != key:
            self._kept = (key, tuple(self._choice(supervisor, spec, name) for name in self._names()))
        former = self._good[0] if self._good is not None and self._good != (current,) else current
        return Switching(
            current=self._picked(current),
            former=None if former == current else self._picked(former),
            choices=self._kept[1],
            k_limits=self._k_limits(),
        )

    async def switch(self, name: str, k: int | None) -> None:
        """Restart the speculative engine with this choice; returns when it has begun to load."""
        supervisor = self._ready_to_change()
        spec, status = self._looked_at(supervisor)
        if name not in self._names():
            raise UsageError(sentence("method_unknown", names=", ".join(self._names())))
        wanted = self._speculation(spec, name, k)
        if wanted == spec.speculation and status.state not in (EngineState.FAILED, EngineState.DEAD):
            raise UsageError(sentence("method_same", method=describe(wanted)))
        await self._change(supervisor, replace(spec, speculation=wanted), status)

    async def restore(self) -> None:
        """Back to the last configuration that was ready."""
        supervisor = self._ready_to_change()
        spec, status = self._looked_at(supervisor)
        if self._good is None or self._good == (spec.speculation,):
            raise UsageError(sentence("method_no_former"))
        await self._change(supervisor, replace(spec, speculation=self._good[0]), status)

    async def _change(self, supervisor: Supervisor, spec: EngineSpec, status: EngineStatus) -> None:
        async with self._changing:
            if status.state is EngineState.READY:
                if await self._busy():
                    raise UsageError(sentence("method_answering"))
                self._good = (supervisor.spec(_SPEC).speculation,)
            await supervisor.reconfigure(spec)

    def _ready_to_change(self) -> Supervisor:
        supervisor = self._supervisor()
        if supervisor is None:
            raise EngineUnavailable(sentence("method_preparing"))
        if self._changing.locked():
            raise UsageError(sentence("method_under_way"))
        return supervisor

    def _looked_at(self, supervisor: Supervisor) -> tuple[EngineSpec, EngineStatus]:
        """The engine as it is; its memory right after a start is remembered by configuration."""
        spec, status = supervisor.spec(_SPEC), supervisor.status(_SPEC)
        if not self._begun:
            self._first, self._begun = spec.speculation, True
        seen = self._memory.get(spec.speculation)
        if status.state is EngineState.READY and status.memory_bytes and (seen is None or seen[0] != status.pid):
            self._memory[spec.speculation] = (status.pid, status.memory_bytes)
        return spec, status

    def _names(self) -> tuple[str, ...]:
        usual = (NGRAM, DRAFT_MODEL, NONE)
        return usual if self._picked(self._first).name in usual else (CONFIGURED, *usual)

    def _k_limits(self) -> tuple[int, int]:
        first = self._first.k if self._first is not None else None
        return K_CHOICES[0], max(K_CHOICES[1], first or 0)

    def _picked(self, speculation: Speculation | None) -> Picked:
        if speculation is None:
            return Picked(NONE)
        name = speculation.method if speculation.method in (NGRAM, DRAFT_MODEL) else CONFIGURED
        return Picked(name, speculation.method, speculation.k)

    def _first_k(self, name: str) -> int | None:
        """The draft length to begin with: the settings' own where they ask for this method, else the preset's."""
        first = self._first
        if first is not None and self._picked(first).name == name:
            return first.k
        return first_k(name, self._environment.device)

    def _speculation(self, spec: EngineSpec, name: str, k: int | None) -> Speculation | None:
        """The choice as vLLM's configuration, checked as a setting is. Raises UsageError or ConfigError."""
        if name == NONE:
            return None
        first = self._first
        own = first is not None and self._picked(first).name == name
        config = as_config(first) if own and first is not None else dict(PRESETS[name] or {})
        usual = self._first_k(name)
        if usual is not None:
            k = usual if k is None else k
            low, high = self._k_limits()
            if isinstance(k, bool) or not low <= k <= high:
                raise UsageError(sentence("method_k", low=low, high=high))
            config["num_speculative_tokens"] = k
        if name == DRAFT_MODEL and not config.get("model"):
            draft = self._settings.engine.draft_model or self._draft(spec.model)
            if draft is None:
                raise ConfigError(sentence("method_no_draft"))
            config["model"] = draft
        wanted = parse_speculation(config, allow_lossy=self._settings.engine.allow_lossy)
        check_speculation(
            wanted,
            target=spec.model,
            device=spec.device,
            version=self._environment.version,
            tensor_parallel=spec.tensor_parallel,
            has_package=partial(package_beside, self._environment.python),
        )
        return wanted

    def _choice(self, supervisor: Supervisor, spec: EngineSpec, name: str) -> Choice:
        try:
            wanted = self._speculation(spec, name, None)
        except SpecDemoError as error:
            return Choice(name, None if name == CONFIGURED else name, self._first_k(name), reason=str(error))
        low, high = self._k_limits()
        lengths = range(low, high + 1) if wanted is not None and wanted.k is not None else (None,)
        starts = []
        for k in lengths:
            asked = self._speculation(spec, name, k)
            seconds = supervisor.expected_seconds(replace(spec, speculation=asked))
            if seconds is not None:
                starts.append((k or 0, seconds))
        memory = next((size for known, (_, size) in reversed(self._memory.items()) if _alike(known, wanted)), None)
        return Choice(
            name,
            wanted.method if wanted is not None else None,
            wanted.k if wanted is not None else None,
            draft=Path(wanted.draft_model).name if wanted is not None and wanted.draft_model else None,
            extra_bytes=draft_bytes(replace(spec, speculation=wanted)),
            memory_bytes=memory,
            start_s=tuple(starts),
        )


def _alike(one: Speculation | None, other: Speculation | None) -> bool:
    """Whether two configurations need the same memory: the draft length hardly matters for it."""
    if one is None or other is None:
        return one is other
    return (one.method, one.draft_model) == (other.method, other.draft_model)
