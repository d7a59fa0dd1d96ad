"""What happens on a click: form values become a plan, a plan a run, and the run's state one line beside the button.

The text never passes through here; the browser reads it from the run's own stream. A handler holds no state of its
own: everything of one visitor lives in its arguments and locals.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import gradio as gr

from specdemo.core import sentences
from specdemo.core.assess import assess
from specdemo.core.contract import contract
from specdemo.core.prompt import Prompt, Sampling, chat
from specdemo.core.run import RunPlan
from specdemo.errors import PromptError, SpecDemoError, UsageError
from specdemo.runs.registry import LiveRun
from specdemo.ui import panes
from specdemo.ui.i18n import Lang, say, tell
from specdemo.ui.quota import sentence
from specdemo.ui.services import Services
from specdemo.ui.visitors import NOBODY, Visitor

TICK = 0.25
"""Seconds between two looks at a run: a closed tab is noticed at the next yield."""
REMEMBERED = 1000
"""Visitors whose latest run is known by their session."""
STOP_WAIT = 5.0
"""Longest wait for a run's end after Stop (s)."""
BEST_TOKENS = 3
"""Candidates whose log-probabilities are asked for when the visitor wants details."""


@dataclass(frozen=True, slots=True)
class Form:
    """The form as filled in. An emptied field arrives as None, a raw API call may send anything."""

    prompt: object
    system: object = ""
    mode: str = "race"
    max_tokens: float | None = 256
    temperature: float | None = 0.0
    top_p: float | None = 1.0
    top_k: float | None = 0
    min_p: float | None = 0.0
    seed: float | None = None
    presence_penalty: float | None = 0.0
    frequency_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0
    ignore_eos: bool = False
    plain: bool = False
    logprobs: bool = False

    def plan(self) -> RunPlan:
        """The run that this form asks for. Raises PromptError for a value that is not one."""
        if not isinstance(self.prompt, str) or not self.prompt.strip():
            raise PromptError(sentences.sentence("prompt_empty"))
        if self.mode not in ("race", "measure"):
            raise UsageError(sentences.sentence("no_mode"))
        mode: Literal["race", "measure"] = "measure" if self.mode == "measure" else "race"
        return RunPlan(prompt=self._prompt(self.prompt), mode=mode)

    def _prompt(self, text: str) -> Prompt:
        sampling = Sampling(
            max_tokens=_whole("Output tokens", self.max_tokens, 256),
            temperature=_number("Temperature", self.temperature, 0.0),
            top_p=_number("top_p", self.top_p, 1.0),
            top_k=_whole("top_k", self.top_k, 0),
            min_p=_number("min_p", self.min_p, 0.0),
            seed=None if self.seed is None else _whole("Seed", self.seed, 0),
            presence_penalty=_number("Presence penalty", self.presence_penalty, 0.0),
            frequency_penalty=_number("Frequency penalty", self.frequency_penalty, 0.0),
            repetition_penalty=_number("Repetition penalty", self.repetition_penalty, 1.0),
            ignore_eos=bool(self.ignore_eos),
        )
        logprobs = BEST_TOKENS if self.logprobs else None
        if self.plain:
            return Prompt(text=text, sampling=sampling, logprobs=logprobs)
        system = self.system if isinstance(self.system, str) and self.system.strip() else ""
        return chat(text, system=system, sampling=sampling, logprobs=logprobs)


def _number(name: str, value: Any, default: float) -> float:
    if value is None or value == "":
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise PromptError(sentences.sentence("not_a_number", name=name))
    return float(value)


def _whole(name: str, value: Any, default: int) -> int:
    number = _number(name, value, default)
    if number != int(number):
        raise PromptError(sentences.sentence("not_whole", name=name))
    return int(number)


Update = tuple[Any, Any, Any, Any]
"""(arena, status line, "measure the same prompt" button, Run button)"""


class Desk:
    """The handlers over one page's services."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._latest: dict[str, str] = {}

    def begin(self, form: Form, who: Visitor = NOBODY) -> LiveRun:
        """Queue a run, within its visitor's limits. Raises SpecDemoError with the sentence for the visitor."""
        plan = form.plan()
        self._services.check_ready()
        return self._services.start(plan, who)

    async def run(
        self, form: Form, lang: Lang, visitor: str = "", who: Visitor = NOBODY
    ) -> AsyncIterator[Update]:
        """One run as long as its visitor is there; leaving, in whatever way, stops both engines."""
        no = gr.skip()
        hidden = gr.update(visible=False)
        try:
            live = self.begin(form, who)
        except SpecDemoError as error:
            yield no, panes.status(sentence(error, lang), "error"), hidden, gr.update(interactive=True)
            return
        self._remember(visitor, live.id)
        try:
            yield panes.shown(live.id, lang), self._line(live, lang), hidden, gr.update(interactive=False)
            said = ""
            while live.ended_at is None:
                await _wait(live, TICK)
                line = self._line(live, lang)
                # An unchanged line still goes out as a skip: only a yield notices that the visitor has left.
                yield no, line if line != said else no, no, no
                said = line
            yield (
                no,
                self._last_line(live, lang),
                gr.update(visible=self._worth_measuring(live)),
                gr.update(interactive=True),
            )
        finally:
            await self._services.registry.stop(live.id)

    def _line(self, live: LiveRun, lang: Lang) -> str:
        ahead = self._services.registry.position(live)
        if ahead:
            return panes.status(say(lang, "status_waiting", ahead=ahead), run_id=live.id)
        if live.log.header is None:
            return panes.status(say(lang, "status_starting"), run_id=live.id)
        key = "status_measuring" if live.plan.mode == "measure" else "status_running"
        return panes.status(say(lang, key), run_id=live.id)

    def _last_line(self, live: LiveRun, lang: Lang) -> str:
        if live.error is not None:
            return panes.status(tell(lang, str(live.error)), "error", run_id=live.id)
        if live.log.header is None:
            return panes.status(say(lang, "status_stopped"), run_id=live.id)
        states = {side.state for side in _sides(live)}
        key = (
            "status_stopped"
            if "cancelled" in states
            else "status_finished"
            if "finished" in states
            else "status_failed"
        )
        links = (
            (f"?run={live.id}", say(lang, "status_link")),
            (f"runs/{live.id}/record", say(lang, "status_download")),
        )
        return panes.status(say(lang, key), "done", run_id=live.id, links=links)

    def _worth_measuring(self, live: LiveRun) -> bool:
        if live.error is not None or live.log.header is None:
            return False
        result = assess(live.log.record())
        return result.badge == "race_shared" and {result.standard.state, result.speculative.state} == {"finished"}

    def _remember(self, visitor: str, run_id: str) -> None:
        """A visitor's latest run; the oldest visitors are forgotten first."""
        self._latest.pop(visitor, None)
        self._latest[visitor] = run_id
        while len(self._latest) > REMEMBERED:
            self._latest.pop(next(iter(self._latest)))

    async def stopped(self, shown: str, lang: Lang, visitor: str = "") -> Update:
        """After Stop, which ends the visitor's own handler: wait until that has stopped its run, and say so.

        Only the starter's handler may stop a run; whoever merely watches one changes nothing here. Stop can come
        before the page knows its run's id; the visitor's latest run is meant then.
        """
        live = self._services.live(_run_of(shown) or self._latest.get(visitor, ""))
        if live is None:
            return gr.skip(), panes.status(say(lang, "status_idle")), gr.skip(), gr.update(interactive=True)
        await _wait(live, STOP_WAIT)
        line = self._last_line(live, lang) if live.ended_at is not None else self._line(live, lang)
        return gr.skip(), line, gr.skip(), gr.update(interactive=True)

    def settled(self, lang: Lang, visitor: str) -> str | None:
        """The last word on a visitor's latest run, for when its handler has ended in whatever way; None if it has not.

        A message of the handler that was already on its way can reach the page after that of Stop.
        """
        live = self._services.live(self._latest.get(visitor, ""))
        return self._last_line(live, lang) if live is not None and live.ended_at is not None else None

    def opened(self, run_id: str, lang: Lang) -> Update:
        """Show a run by id: live, finished or recorded."""
        services = self._services
        ready = gr.update(interactive=services.control is not None)
        hidden = gr.update(visible=False)
        if run_id in services.recordings:
            return panes.shown(run_id, lang, replay=True), panes.status(say(lang, "status_recorded")), hidden, ready
        live = services.live(run_id) if run_id else None
        if live is None:
            minutes = max(1, round(services.kept_s / 60))
            return panes.shown(None, lang), panes.status(say(lang, "run_gone", minutes=minutes), "error"), hidden, ready
        line = self._last_line(live, lang) if live.ended_at is not None else self._line(live, lang)
        return panes.shown(live.id, lang), line, hidden, ready

    def first(self, lang: Lang) -> Update:
        """What a visitor sees on arrival: a recorded run while engines load or when there are none."""
        services = self._services
        hidden = gr.update(visible=False)
        waiting = services.unready() if services.control else ()
        if services.control is not None and not waiting:
            return panes.shown(None, lang), panes.status(say(lang, "status_idle")), hidden, gr.update(interactive=True)
        recording = next(iter(services.recordings), None)
        arena = panes.shown(recording, lang, replay=True, loop=True) if recording else panes.shown(None, lang)
        if services.control is None:
            line = panes.status(say(lang, "engines_missing", reason=tell(lang, services.reason)), "warn")
            return arena, line, hidden, gr.update(interactive=False)
        return arena, panes.status(self._loading(lang), "warn"), hidden, gr.update(interactive=True)

    def _loading(self, lang: Lang) -> str:
        left = [status.eta_s for status in self._services.unready()]
        known = [seconds for seconds in left if seconds is not None]
        if len(known) == len(left) and known:
            return say(lang, "engines_loading", seconds=max(1, round(max(known))))
        return say(lang, "engines_loading_unknown")

    async def race(self, form: Form, who: Visitor = NOBODY) -> dict[str, Any]:
        """For programs: the whole run, then its result as ``specdemo race --json`` prints it."""
        live = self._begin_or_tell(form, who)
        try:
            while live.ended_at is None:
                await _wait(live, TICK)
        finally:
            await self._services.registry.stop(live.id)
        if live.error is not None or live.log.header is None:
            raise gr.Error(str(live.error or "The run was stopped before it began."), print_exception=False)
        record = live.log.record()
        return contract(record, assess(record))

    async def race_stream(self, form: Form, who: Visitor = NOBODY) -> AsyncIterator[str]:
        """For programs: the same frames that the page reads, one JSON text each."""
        live = self._begin_or_tell(form, who)
        try:
            feed = self._services.feed_of(live)
            async for chunk in feed.frames(comment_every=TICK):
                for frame in _bodies(chunk):
                    yield frame
        finally:
            await self._services.registry.stop(live.id)

    def _begin_or_tell(self, form: Form, who: Visitor) -> LiveRun:
        try:
            return self.begin(form, who)
        except SpecDemoError as error:
            raise gr.Error(str(error), print_exception=False) from error

    async def command(self, side: str, action: str, lang: Lang) -> str:
        """Start, stop or restart an engine; the answer is the status line."""
        try:
            await self._services.command(side, action)
        except SpecDemoError as error:
            return panes.status(tell(lang, str(error)), "error")
        words = {"side": say(lang, f"side_{side}"), "action": say(lang, f"action_{action}")}
        return panes.status(say(lang, "command_sent", **words))


async def _wait(live: LiveRun, seconds: float) -> None:
    try:
        await asyncio.wait_for(live.log.finished(), seconds)
        # The log closes a moment before the registry has noted the end.
        if live.task is not None:
            await asyncio.wait([live.task], timeout=seconds)
    except TimeoutError:
        pass


def _run_of(shown: str) -> str:
    """The run id inside the arena's value."""
    try:
        value = json.loads(shown or "{}")
    except ValueError:
        return ""
    run = value.get("run") if isinstance(value, dict) else None
    return run if isinstance(run, str) else ""


def _sides(live: LiveRun) -> tuple[Any, Any]:
    result = assess(live.log.record())
    return result.standard, result.speculative


def _bodies(chunk: bytes) -> list[str]:
    """The frames inside one piece of an event stream."""
    return [line[6:] for line in chunk.decode().split("\n") if line.startswith("data: ")]
