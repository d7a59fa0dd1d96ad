"""What the page needs from the rest: runs behind a registry, engines under control, limits, recorded runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from specdemo.core.choice import Switching
from specdemo.core.engine import EngineState, EngineStatus
from specdemo.core.events import Side
from specdemo.core.run import RunPlan
from specdemo.core.sentences import sentence, spoken
from specdemo.errors import EngineUnavailable, SpecDemoError, UsageError
from specdemo.runs.jobs import Jobs
from specdemo.runs.ports import EngineControl, MethodControl
from specdemo.runs.registry import LiveRun, Registry
from specdemo.store.keeper import Keeper
from specdemo.ui.feed import Feed, Feeds
from specdemo.ui.library import Library
from specdemo.ui.presence import Presence
from specdemo.ui.quota import Quota, Refused
from specdemo.ui.recordings import Recording
from specdemo.ui.telemetry import Telemetry
from specdemo.ui.visitors import NOBODY, Visitor

Mode = Literal["managed", "attached", "replay"]
Action = Literal["start", "stop", "restart"]

_OWN_FIELDS = ("command", "log_tail", "last_line", "stage", "error", "pid", "base_url", "memory_bytes")
"""Fields of an engine's status that name files, addresses or processes: strangers do not get them."""


@dataclass(frozen=True, slots=True)
class Services:
    """One page's world. ``control`` is None without engines; ``reason`` then says why, in one sentence.

    ``public`` hides engine controls and logs. Limits: output tokens, characters of the prompt, seconds that a
    finished run is kept in memory, bytes of an imported file. ``keeper`` keeps runs for longer; ``together`` makes all
    visitors one (a page for this machine alone), else each sees his or her own runs and those that are shared.
    """

    registry: Registry
    mode: Mode
    control: EngineControl | None = None
    reason: str = ""
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    public: bool = False
    max_tokens: int = 2048
    kept_s: float = 3600.0
    feeds: Feeds = field(default_factory=Feeds)
    quota: Quota = field(default_factory=Quota)
    telemetry: Telemetry = field(default_factory=Telemetry)
    method: MethodControl | None = None
    jobs: Jobs | None = None
    keeper: Keeper | None = None
    together: bool = True
    import_bytes: int = 16_000_000
    library: Library = field(init=False)
    presence: Presence = field(init=False)

    def __post_init__(self) -> None:
        """The library is made of the rest, and so is what ends a run with its page."""
        made = Library(self.registry, self.feeds, self.recordings, self.keeper, self.together)
        object.__setattr__(self, "library", made)
        object.__setattr__(self, "presence", Presence(self.registry.end))

    def start(self, plan: RunPlan, who: Visitor = NOBODY, *, keep: bool = True) -> LiveRun:
        """Queue a run within its visitor's limits, and keep it if it is to be kept.

        Raises SpecDemoError with the sentence for the visitor.
        """
        try:
            release = self.quota.run(who)
        except Refused as error:
            self.telemetry.refused(error.reason)
            raise
        try:
            live = self.registry.start(plan, owner=who.id, keep=keep)
        except SpecDemoError as error:
            self.telemetry.refused(error.kind)
            release()
            raise
        self.telemetry.began(live)
        self.library.follow(live)
        if live.task is not None:
            live.task.add_done_callback(lambda _: release())
        return live

    def feed_of(self, live: LiveRun) -> Feed:
        """The frames of a run of the registry."""
        return self.feeds.get(live.id) or self.feeds.put(live.id, Feed.live(live))

    def live(self, run_id: str) -> LiveRun | None:
        """The run in the registry, if it is one."""
        return self.registry.get(run_id)

    def engines(self) -> dict[str, Any]:
        """What the engine panel shows (``assets/js/engines.mjs`` tells the form)."""
        sides = [self._status(status) for status in self.control.statuses()] if self.control else []
        found = self.method.switching() if self.method is not None and self.controllable else None
        return {
            "mode": self.mode, "reason": self.reason, "controls": self.controllable, "sides": sides,
            "switch": _shown(found) if found is not None else None,
        }  # fmt: skip

    @property
    def controllable(self) -> bool:
        """Whether visitors may start and stop engines."""
        return self.mode == "managed" and not self.public and self.control is not None

    def unready(self) -> tuple[EngineStatus, ...]:
        """The engines that cannot take a run now."""
        statuses = self.control.statuses() if self.control else ()
        return tuple(status for status in statuses if status.state is not EngineState.READY)

    def check_ready(self) -> None:
        """Raises EngineUnavailable with the sentence for the visitor unless both engines can take work now."""
        if self.control is None:
            raise EngineUnavailable(
                f"No engine is connected, so only recorded runs can be played. {self.reason}".strip()
            )
        waiting = self.unready()
        if waiting and self.mode == "managed":
            first = waiting[0]
            if first.state in (EngineState.LOADING, EngineState.WAITING):
                left = [status.eta_s for status in waiting]
                known = [seconds for seconds in left if seconds is not None]
                when = f"ready in about {max(1, round(max(known)))} s" if len(known) == len(left) else "try again soon"
                raise EngineUnavailable(f"The engines are still loading: {when}.")
            raise EngineUnavailable(f"The {first.side} engine is {first.state}; the engine panel below says more.")

    async def command(self, side: str, action: str) -> None:
        """Start, stop or restart a managed engine. Raises UsageError when that is not this page's to do."""
        if not self.controllable or self.control is None:
            raise UsageError("Engines cannot be controlled from this page.")
        if side not in tuple(Side) or action not in ("start", "stop", "restart"):
            raise UsageError("There is no such engine or command.")
        if action == "start":
            await self.control.start(Side(side))
        elif action == "stop":
            await self.control.stop(Side(side))
        else:
            await self.control.restart(Side(side))

    async def switch(self, name: str, k: int | None) -> None:
        """Change the speculation method; ``restore`` goes back to the former one. Raises SpecDemoError.

        Refused while a run has the engines, this page's or another command's: nothing is stopped without a word.
        """
        if not self.controllable or self.method is None:
            raise UsageError(sentence("method_not_here"))
        async with self.registry.engines_free():
            await (self.method.restore() if name == "restore" else self.method.switch(name, k))

    def _status(self, status: EngineStatus) -> dict[str, Any]:
        shown = asdict(status)
        shown["side"], shown["state"] = str(status.side), str(status.state)
        if self.public:
            for name in _OWN_FIELDS:
                shown.pop(name)
            if status.error:
                shown["error"] = sentence("engine_problem")
        return spoken(shown)


def _shown(found: Switching) -> dict[str, Any]:
    """The method switch with what makes its sentences sayable in another language."""
    shown = asdict(found)
    shown["choices"] = [spoken(choice) for choice in shown["choices"]]
    return shown
