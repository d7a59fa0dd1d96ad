"""What happens on a click: form values become a plan, a plan a run, and the run's state one line beside the button.

The text never passes through here; the browser reads it from the run's own stream. A handler holds no state of its
own: everything of one visitor lives in its arguments and locals.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from specdemo.core.assess import assess
from specdemo.core.contract import contract
from specdemo.errors import SpecDemoError
from specdemo.runs.registry import LiveRun
from specdemo.ui import panes
from specdemo.ui.form import Form
from specdemo.ui.i18n import Lang, say, tell
from specdemo.ui.quota import worded
from specdemo.ui.services import Services
from specdemo.ui.visitors import NOBODY, Visitor

TICK = 0.25
"""Seconds between two looks at a run."""
BEAT = 1.0
"""Seconds between two values that say nothing new. Each costs Gradio milliseconds; at one of them a visitor's leaving
is noticed whose page is not followed (see ``presence``)."""
REMEMBERED = 1000
"""Visitors whose latest run is known by their session."""
KEPT_WAIT = 2.0
"""Longest wait for a finished run to be in the store before its last line is written (s)."""
STOP_WAIT = 5.0
"""Longest wait for a run's end after Stop (s)."""

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
        # A program may send 0 or "no": only what asks for it plainly, or says nothing, is kept.
        return self._services.start(plan, who, keep=form.keep in (True, None))

    async def run(self, form: Form, lang: Lang, visitor: str = "", who: Visitor = NOBODY) -> AsyncIterator[Update]:
        """One run as long as its visitor is there; leaving, in whatever way, stops both engines."""
        no = gr.skip()
        hidden = gr.update(visible=False)
        try:
            live = self.begin(form, who)
        except SpecDemoError as error:
            # Else the last word on an earlier run would take this sentence's place.
            if self.settled(lang, visitor, who) is not None:
                self._latest.pop(visitor, None)
            yield no, panes.status(worded(error, lang), "error"), hidden, gr.update(interactive=True)
            return
        self._remember(visitor, live.id)
        try:
            with self._services.presence.waits(visitor, live.id, listens=True):
                yield self._shown(live.id, lang, who), self._line(live, lang), hidden, gr.update(interactive=False)
                said, unsaid = "", 0.0
                while live.ended_at is None:
                    await _wait(live, TICK)
                    line, unsaid = self._line(live, lang), unsaid + TICK
                    if line != said or unsaid >= BEAT:
                        yield no, line if line != said else no, no, no
                        said, unsaid = line, 0.0
                await self._services.library.settled(live, KEPT_WAIT)
                yield (
                    no,
                    self._last_line(live, lang, who),
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

    def _shown(self, run_id: str, lang: Lang, who: Visitor, *, replay: bool = False) -> str:
        """The arena's value for a run; its own address stands in it where the usual one would not do."""
        address = self._services.library.address(run_id, "events", replay=replay, who=who)
        plain = f"runs/{run_id}/events"
        # Opened again, it plays again.
        nonce = secrets.token_hex(4) if replay else ""
        return panes.shown(run_id, lang, replay=replay, nonce=nonce, events_url=address if address != plain else "")

    def _last_line(self, live: LiveRun, lang: Lang, who: Visitor) -> str:
        library = self._services.library
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
        text = say(lang, key)
        if live.unkept or (library.trouble and live.keep):
            text = f"{text} {say(lang, 'status_unkept', reason=tell(lang, live.unkept or library.trouble or ''))}"
        elif not live.keep:
            text = f"{text} {say(lang, 'status_not_kept')}"
        return panes.status(text, "done", run_id=live.id, **self._offers(live.id, lang, who, shared=live.shared))

    def _offers(self, run_id: str, lang: Lang, who: Visitor, *, shared: bool) -> dict[str, Any]:
        """Links of a finished run: its address (which only its owner can open until it is shared) and its document."""
        library = self._services.library
        return {
            "links": (
                (f"?run={run_id}", say(lang, "status_link")),
                (library.address(run_id, "record", who=who), say(lang, "status_download")),
            ),
            "share": None
            if library.together or shared
            else (run_id, say(lang, "status_share"), say(lang, "status_shared")),
        }

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

    async def stopped(self, shown: str, lang: Lang, visitor: str = "", who: Visitor = NOBODY) -> Update:
        """After Stop, which ends the visitor's own handler: wait until that has stopped its run, and say so.

        Only the starter's handler may stop a run; whoever merely watches one changes nothing here. Stop can come
        before the page knows its run's id; the visitor's latest run is meant then.
        """
        named, latest = _run_of(shown), self._latest.get(visitor, "")
        live = self._services.live(named or latest)
        # The arena's value comes from the browser and may name anybody's run.
        if live is None or (live.id != latest and not self._services.library.may_see(live, who)):
            return gr.skip(), panes.status(say(lang, "status_idle")), gr.skip(), gr.update(interactive=True)
        await _wait(live, STOP_WAIT)
        line = self._last_line(live, lang, who) if live.ended_at is not None else self._line(live, lang)
        return gr.skip(), line, gr.skip(), gr.update(interactive=True)

    def settled(self, lang: Lang, visitor: str, who: Visitor = NOBODY) -> str | None:
        """The last word on a visitor's latest run, for when its handler has ended in whatever way; None if it has not.

        A message of the handler that was already on its way can reach the page after that of Stop.
        """
        live = self._services.live(self._latest.get(visitor, ""))
        return self._last_line(live, lang, who) if live is not None and live.ended_at is not None else None

    async def opened(self, run_id: str, lang: Lang, who: Visitor = NOBODY) -> Update:
        """Show a run by id: live as it goes on; a finished one is played as a recording."""
        services = self._services
        ready = gr.update(interactive=services.control is not None)
        hidden = gr.update(visible=False)
        trouble = say(lang, "run_unknown")
        try:
            found = await services.library.find(run_id, who) if run_id else None
        except SpecDemoError as error:
            found, trouble = None, tell(lang, str(error))
        if found is None:
            return panes.shown(None, lang), panes.status(trouble, "error"), hidden, ready
        if found.recording is not None:
            return panes.shown(run_id, lang, replay=True), panes.status(say(lang, "status_recorded")), hidden, ready
        live = found.live
        if live is not None and (found.running or live.log.header is None):
            line = self._line(live, lang) if found.running else self._last_line(live, lang, who)
            return self._shown(run_id, lang, who), line, hidden, ready
        imported = found.entry is not None and found.entry.imported
        shared = live.shared if live is not None else found.entry is not None and found.entry.shared
        offers = self._offers(run_id, lang, who, shared=shared or not found.mine)
        text = say(lang, "status_imported" if imported else "status_opened")
        return (
            self._shown(run_id, lang, who, replay=True),
            panes.status(text, "done", run_id=run_id, **offers),
            hidden,
            ready,
        )

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

    async def race(self, form: Form, who: Visitor = NOBODY, session: str = "") -> dict[str, Any]:
        """For programs: the whole run, then its result as ``specdemo race --json`` prints it."""
        live = self._begin_or_tell(form, who)
        try:
            with self._services.presence.waits(session, live.id):
                while live.ended_at is None:
                    await _wait(live, TICK)
        finally:
            await self._services.registry.stop(live.id)
        if live.error is not None or live.log.header is None:
            raise gr.Error(str(live.error or "The run was stopped before it began."), print_exception=False)
        record = live.log.record()
        return contract(record, assess(record))

    async def race_stream(self, form: Form, who: Visitor = NOBODY, session: str = "") -> AsyncIterator[str]:
        """For programs: the same frames that the page reads, one JSON text each."""
        live = self._begin_or_tell(form, who)
        try:
            with self._services.presence.waits(session, live.id):
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
