"""One prompt on both engines: ``race`` both at once, ``measure`` one at a time, ``control`` the standard one twice.

preflight ─► warm-up ─► two producers ─► log ─► probe at the split, re-check

Each side has its own producer and neither waits for the other: a slow or failed side costs the other nothing. An
engine's failure is an event; only what forbids the run altogether (a prompt that cannot be sent) is raised.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Event, Failed, FailureKind, Finished, Noted, NoteKind, Side, Started
from specdemo.core.run import Probe, RunHeader, RunPlan, RunRecord
from specdemo.errors import EngineProtocolError
from specdemo.runs.log import RunLog
from specdemo.runs.ports import Clock, Engine
from specdemo.runs.preflight import Ids, Preflight, Refusal, examine
from specdemo.runs.probe import probe
from specdemo.runs.request import check_request
from specdemo.runs.streams import closing
from specdemo.runs.warmup import SENTENCE, Warmth

_log = logging.getLogger(__name__)

# vLLM writes "chat template" and "tokenizer.chat_template"; a refused chat_template_kwargs is another matter.
_NO_TEMPLATE = re.compile(r"chat[-_ ]template(?!_?kwargs)", re.IGNORECASE)
PLAIN_OFFER = (
    "The model of the {side} engine has no chat template, so it cannot answer a chat. Send the prompt as plain text to "
    'both engines instead (the page\'s switch "Plain completion", or --plain).'
)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a run needs besides plan and engines. ``wall`` gives s since 1970, for the label only.

    ``refuse`` may forbid a prompt; ``limit_s`` is the longest time both streams may take,
    ``prompt_tokens`` the longest prompt.
    """

    clock: Clock = time.monotonic
    wall: Clock = time.time
    refuse: Refusal | None = None
    warmth: Warmth = field(default_factory=Warmth)
    hardware: str | None = None
    limit_s: float | None = None
    prompt_tokens: int | None = None


def new_id() -> str:
    """A run's id: 22 characters, 128 bits of chance, since whoever knows a shared run's id may see it."""
    return secrets.token_urlsafe(16)


async def run(
    plan: RunPlan,
    engines: Mapping[Side, Engine],
    *,
    log: RunLog,
    around: Surroundings | None = None,
    run_id: str | None = None,
    title: str | None = None,
) -> RunRecord:
    """Do what the plan says, writing into ``log``, and return the whole record.

    Cancelling the task closes both HTTP streams, marks the unfinished sides as cancelled and closes the log with
    what there is. Raises PromptError, before anything is sent, for a prompt that cannot be sent.
    """
    return await _Run(plan, engines, log, around or Surroundings(), run_id or new_id(), title).go()


class _Run:
    def __init__(
        self,
        plan: RunPlan,
        engines: Mapping[Side, Engine],
        log: RunLog,
        around: Surroundings,
        run_id: str,
        title: str | None,
    ) -> None:
        # A control shares one engine, and two requests in one batch may differ for that reason alone: one at a time.
        self._plan = replace(plan, mode="measure") if plan.control else plan
        standard = engines[Side.STANDARD]
        speculative = standard if plan.control else engines[Side.SPECULATIVE]
        self._engines = {Side.STANDARD: standard, Side.SPECULATIVE: speculative}
        self._log = log
        self._around = around
        self._id = run_id
        self._title = title
        self._zero = around.clock()
        self._notes: list[tuple[Side, NoteKind, str]] = []
        self._unfinished = set(SIDES)
        self._ending: tuple[FailureKind, str] = ("cancelled", "Stopped.")

    async def go(self) -> RunRecord:
        """Everything, in order; whatever breaks it off leaves a closed log."""
        around, plan = self._around, self._plan
        try:
            check_request(plan.prompt)
            before = await examine(plan, self._engines, refuse=around.refuse, prompt_tokens=around.prompt_tokens)
            if before.capped:
                self._notes += [(side, "length_capped", before.capped) for side in SIDES]
            if plan.warmup:
                await self._warm_up()
            self._begin(before)
            await self._stream()
            result = await self._after(before.prompt_ids[0])
        except BaseException:
            self._break_off()
            raise
        self._log.close(result)
        return self._log.record()

    async def _warm_up(self) -> None:
        measure = self._plan.mode == "measure"
        warmed = await self._around.warmth.ensure(
            self._engines.values(), self._plan.prompt, clock=self._around.clock, together=not measure, always=measure
        )
        for side in SIDES:
            if self._engines[side].side in warmed:
                self._notes.append((side, "warmup", SENTENCE))

    def _begin(self, before: Preflight) -> None:
        self._zero = self._around.clock()
        self._log.open(
            RunHeader(
                id=self._id,
                started_at=self._around.wall(),
                plan=self._plan,
                facts=before.facts,
                checks=before.checks,
                hardware=self._around.hardware,
                title=self._title,
            )
        )

    async def _stream(self) -> None:
        """Both streams, together or in the plan's order, within the time limit."""
        limit = asyncio.timeout(self._around.limit_s)
        try:
            async with limit:
                if self._plan.mode == "race":
                    async with asyncio.TaskGroup() as both:
                        for side in SIDES:
                            both.create_task(self._produce(side))
                else:
                    for side in self._plan.order:
                        await self._produce(side)
        except TimeoutError:
            if not limit.expired():
                raise
            self._ending = ("stalled", f"The run took longer than {self._around.limit_s:g} s and was stopped.")
            self._end_open_sides()

    async def _produce(self, side: Side) -> None:
        """One side's events into the log, ending with exactly one Finished or Failed, whatever the client does."""
        engine = self._engines[side]
        salt = secrets.token_hex(16)  # a fresh one a request: no prefix cache helps either side
        try:
            async with closing(engine.stream(self._plan.prompt, zero=self._zero, cache_salt=salt)) as events:
                async for event in events:
                    self._take(side, event if event.side is side else replace(event, side=side))
        except EngineProtocolError as error:  # a bound of the log
            self._fail(side, "protocol", str(error))
        except Exception:  # noqa: BLE001 - whatever it is, it ends one side and not both, and is logged
            # A fault of our own client must not take the other side down, nor hide.
            _log.exception("The %s stream broke inside specdemo", side)
            self._fail(side, "error", "specdemo failed while it read this stream; its log has the details.")
        else:
            self._fail(side, "interrupted", "The stream ended without an end; what arrived is kept.")

    def _take(self, side: Side, event: Event) -> None:
        if side not in self._unfinished:
            return
        if isinstance(event, Failed) and _NO_TEMPLATE.search(event.message):
            self._note(side, "no_chat_template", PLAIN_OFFER.format(side=side))
        if isinstance(event, Finished | Failed):
            self._unfinished.discard(side)
        self._log.append(event)
        if isinstance(event, Started):
            for noted, kind, message in self._notes:
                if noted is side:
                    self._note(side, kind, message)

    def _note(self, side: Side, kind: NoteKind, message: str) -> None:
        self._log.append(Noted(side, self._now(), kind, message))

    def _fail(self, side: Side, kind: FailureKind, message: str) -> None:
        """Close a side that is still open; a side that ended keeps its end."""
        if side in self._unfinished:
            self._unfinished.discard(side)
            self._log.append(Failed(side, self._now(), kind, message))

    def _end_open_sides(self) -> None:
        for side in SIDES:
            self._fail(side, *self._ending)

    def _break_off(self) -> None:
        if self._log.header is not None:
            self._end_open_sides()
        self._log.close()

    async def _after(self, prompt_ids: Ids) -> Probe | None:
        record = self._log.record()
        return await probe(record, assess(record), self._engines[Side.STANDARD], prompt_ids)

    def _now(self) -> float:
        return max(0.0, self._around.clock() - self._zero)
