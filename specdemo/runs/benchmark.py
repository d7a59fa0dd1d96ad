"""Run a benchmark plan against two engines: quads in order, one arm at a time, every finished request kept at once.

An engine that dies ends the session: what was measured stays, the request that saw it die is not counted, and a resume
goes on where it stopped. Pausing waits between requests; stopping closes the streams in flight.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchRecord, Ending, EndState, Session
from specdemo.bench.sample import Sample
from specdemo.bench.schedule import Quad, requests, schedule
from specdemo.bench.statistics import disturbed
from specdemo.core.comparability import checks
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Side
from specdemo.errors import EngineError
from specdemo.runs.bench_block import EngineLost, Sender, Sleep, check_same
from specdemo.runs.bench_probe import probe_splits
from specdemo.runs.bench_store import BenchFile
from specdemo.runs.ports import Clock, Engine

WARMUP_TOKENS = 32
QUIET_SHARE = 0.5
"""Other programs' share of all cores above which a quad waits."""
QUIET_TRIES = 10
MOST_WAITS = 30
"""Waits in one session; a host that is never quiet is measured as it is, and the results show its noise."""
Pair = tuple[str | None, str | None]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far it is; ``elapsed_s`` is without pauses.

    ``left_s`` is None until the first quad gave a pace; ``state`` as shown to people.
    """

    state: Literal["warming", "running", "paused", "waiting", "probing", "ended"]
    done: int
    planned: int
    level: int
    workload: str
    elapsed_s: float
    left_s: float | None
    failed: int


@dataclass(frozen=True, slots=True)
class BenchAround:
    """What a benchmark needs besides plan and engines.

    ``busy`` tells other programs' share of the cores while our engines idle (None: can't tell). ``on_progress`` is
    called after every request; ``on_sample`` with each kept sample.
    """

    clock: Clock = time.monotonic
    wall: Clock = time.time
    sleep: Sleep = asyncio.sleep
    busy: Callable[[], Awaitable[float | None]] | None = None
    on_progress: Callable[[Progress], None] | None = None
    on_sample: Callable[[Sample], None] | None = None
    commands: Pair = (None, None)
    memory: Callable[[], tuple[int | None, int | None]] | None = None


@dataclass(slots=True)
class _Pace:
    """Seconds per request, by level."""

    spent: dict[int, float] = field(default_factory=lambda: defaultdict(float))
    count: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, level: int, seconds: float, made: int) -> None:
        self.spent[level] += seconds
        self.count[level] += made

    def left(self, todo: Mapping[int, int]) -> float | None:
        total = sum(self.count.values())
        if not total:
            return None
        average = sum(self.spent.values()) / total
        return sum(
            n * (self.spent[level] / self.count[level] if self.count.get(level) else average)
            for level, n in todo.items()
        )


class Benchmark:
    """One session of a benchmark: ``await run()``; ``pause``, ``resume`` and ``stop`` may be called meanwhile."""

    def __init__(
        self, record: BenchRecord, file: BenchFile, engines: Mapping[Side, Engine], around: BenchAround | None = None
    ) -> None:
        self._plan: BenchPlan = record.header.plan
        self._around = around or BenchAround()
        self._file = file
        self._arms: dict[str, Engine] = {
            "A": engines[Side.STANDARD],
            "B": engines[Side.STANDARD if self._plan.null else Side.SPECULATIVE],
        }
        self._number = len(record.sessions)
        self._before = record.facts
        self._samples = list(record.samples)
        self._known_splits = {split.prompt_id for split in record.splits}
        self._quads = schedule(self._plan)
        self._done = {sample.place.key for sample in record.samples}
        self._failed = sum(sample.state == "failed" for sample in record.samples)
        self._attempts: dict[str, int] = defaultdict(int)
        self._by_quad: dict[str, list[Sample]] = defaultdict(list)
        for sample in record.samples:
            self._attempts[sample.place.quad] = max(self._attempts[sample.place.quad], sample.place.attempt)
            self._by_quad[sample.place.quad].append(sample)
        self._planned = requests(self._quads)
        self._todo: dict[int, int] = defaultdict(int)
        for quad in self._quads:
            self._todo[quad.level] += sum(i.key not in self._done for block in quad.blocks for i in block.items)
        self._zero = 0.0
        self._pace = _Pace()
        self._waits = 0
        self._held = 0.0
        self._going = asyncio.Event()
        self._going.set()
        self._stopped = asyncio.Event()
        self._level = 0
        self._workload = ""

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All samples so far, earlier sessions included, in order of finishing."""
        return tuple(self._samples)

    def pause(self) -> None:
        """Start no further request until ``resume``; one in flight finishes."""
        self._going.clear()

    def resume(self) -> None:
        """Go on after a pause."""
        self._going.set()

    def stop(self) -> None:
        """End the session: streams in flight are closed, finished samples stay."""
        self._stopped.set()
        self._going.set()

    async def run(self) -> Ending:
        """Everything that is still to do. Engine failures end the session; they are not raised.

        Raises UsageError, and writes nothing, if these are not the engines that earlier sessions measured.
        Cancelling closes the streams in flight and writes an ending too.
        """
        around = self._around
        self._zero = around.clock()
        asked = {prompt.id: prompt for prompt in self._plan.prompts}
        self._sender = Sender(
            self._plan, self._keep, around.clock, around.sleep, self._stopped, self._zero, self._number, asked
        )
        try:
            facts = await self._facts()
            check_same(self._before, facts)
            self._begin(facts)
            state, reason = await self._levels()
            if state in ("complete", "budget") and self._plan.sampling.greedy and not self._plan.null:
                self._report("probing")
                for split in await probe_splits(self._plan, self._samples, self._arms["A"], self._known_splits):
                    self._file.append(split)
        except asyncio.CancelledError:
            self._file.append(Ending(self._number, "stopped", "Cancelled.", self._waits, self._now()))
            raise
        except EngineLost as lost:
            state, reason = (
                "engine_lost",
                f"{lost} {len(self._done)} finished requests are kept; resume when it is back.",
            )
        ending = Ending(self._number, state, reason, self._waits, self._now())
        self._file.append(ending)
        self._report("ended")
        return ending

    # ------------------------------------------------------------------ surroundings

    async def _facts(self) -> tuple[EngineFacts | None, EngineFacts | None]:
        found = []
        for arm in ("A", "B"):
            try:
                found.append(await self._arms[arm].facts())
            except EngineError as error:
                raise EngineLost(str(error)) from None
        return found[0], found[1]

    def _begin(self, facts: tuple[EngineFacts | None, EngineFacts | None]) -> None:
        first = self._plan.prompts[0].ask(self._plan.sampling)
        found = () if self._plan.null else checks(facts, (None, None), first)
        memory = self._around.memory() if self._around.memory else (None, None)
        self._file.append(
            Session(
                self._number, self._around.wall(), facts, tuple(found), self._around.commands, memory, self._plan.warmup
            )
        )

    # ------------------------------------------------------------------ order

    async def _levels(self) -> tuple[EndState, str]:
        left = [quad for quad in self._quads if not self._complete(quad)]
        for again in (False, True):  # what levels leave of their shares goes to those that were cut
            left = await self._pass(left, again=again)
            if self._stopped.is_set():
                return "stopped", f"Stopped; {len(self._done)} of {self._planned} requests are kept."
        if left:
            cut = requests(left)
            return "budget", f"The time budget was used up; {cut} of {self._planned} requests were not made."
        return "complete", f"All {self._planned} requests were made."

    async def _pass(self, todo: Sequence[Quad], *, again: bool) -> list[Quad]:
        """Each level within its share of the time that is left (all of it when ``again``); what was cut off."""
        levels = list(dict.fromkeys(quad.level for quad in todo))
        cut: list[Quad] = []
        for index, level in enumerate(levels):
            quads = [quad for quad in todo if quad.level == level]
            deadline = self._deadline(1 if again else len(levels) - index)
            least = 0 if again else 1  # no level without a quad
            if again and self._late(deadline):
                cut += quads
                continue
            await self._warm_up(level)
            for place, quad in enumerate(quads):
                if place >= least and self._late(deadline):
                    cut += quads[place:]
                    break
                await self._quad(quad)
                if self._stopped.is_set():
                    return cut
        return cut

    def _late(self, deadline: float | None) -> bool:
        return deadline is not None and self._worked() > deadline

    def _deadline(self, levels_left: int) -> float | None:
        if self._plan.budget_s is None:
            return None
        worked = self._worked()
        return worked + max(0.0, self._plan.budget_s - worked) / levels_left

    def _complete(self, quad: Quad) -> bool:
        return all(item.key in self._done for block in quad.blocks for item in block.items)

    async def _warm_up(self, level: int) -> None:
        self._level, self._workload = level, ""
        self._report("warming")
        distinct = {id(engine): engine for engine in self._arms.values()}
        for engine in distinct.values():
            for turn in range(self._plan.warmup):
                chosen = [self._plan.prompts[(turn + i) % len(self._plan.prompts)] for i in range(level)]
                sampling = replace(self._plan.sampling, max_tokens=min(WARMUP_TOKENS, self._plan.sampling.max_tokens))
                await self._sender.throw_away(engine, [prompt.ask(sampling) for prompt in chosen])
                if self._stopped.is_set():
                    return

    async def _quad(self, quad: Quad) -> None:
        self._level, self._workload = quad.level, quad.workload
        await self._quiet()
        attempt = self._attempts[quad.id]
        began, before = self._worked(), len(self._samples)
        await self._blocks(quad, attempt, rerun=False)
        alone = quad.level == 1 and self._plan.rate is None
        if not self._stopped.is_set() and attempt == 0 and alone and self._disturbed(quad):
            await self._blocks(quad, 1, rerun=True)
        self._pace.add(quad.level, self._worked() - began, max(1, len(self._samples) - before))

    async def _blocks(self, quad: Quad, attempt: int, *, rerun: bool) -> None:
        for block in quad.blocks:
            missing = tuple(item for item in block.items if rerun or item.key not in self._done)
            if not missing:
                continue
            single = quad.level == 1 and self._plan.rate is None
            if not single and len(missing) < len(block.items):
                missing = block.items  # a half-done block is done again: its load was not the whole load
                attempt = max(attempt, self._attempts[quad.id] + 1)
            held = self._now()
            await self._going.wait()
            self._held += self._now() - held
            if self._stopped.is_set():
                return
            engine = self._arms["A" if quad.kind == "control" else block.arm]
            await self._sender.block(engine, quad, block, missing, attempt)

    def _disturbed(self, quad: Quad) -> bool:
        for arm in ("A", "B"):
            gaps = [s.gap_s for s in self._by_quad[quad.id] if s.place.arm == arm and s.gap_s]
            if disturbed(gaps):
                return True
        return False

    async def _quiet(self) -> None:
        """Wait for a quiet host, but not for ever: what stays noisy is shown in the results."""
        if self._around.busy is None:
            return
        for _ in range(min(QUIET_TRIES, MOST_WAITS - self._waits)):
            share = await self._around.busy()
            if share is None or share < QUIET_SHARE or self._stopped.is_set():
                return
            self._waits += 1
            self._report("waiting")
            await self._around.sleep(2.0)

    def _keep(self, sample: Sample) -> None:
        if sample.place.level > 1 or sample.place.kind == "control":
            sample = replace(sample, prompt_ids=None)
        self._file.append(sample)
        place = sample.place
        if place.key not in self._done:
            self._done.add(place.key)
            self._todo[place.level] -= 1
        self._samples.append(sample)
        self._by_quad[place.quad].append(sample)
        self._attempts[place.quad] = max(self._attempts[place.quad], place.attempt)
        self._failed += sample.state == "failed"
        if self._around.on_sample:
            self._around.on_sample(sample)
        self._report("running" if self._going.is_set() else "paused")

    def _now(self) -> float:
        return self._around.clock() - self._zero

    def _worked(self) -> float:
        """Seconds of this session without its pauses, which use up no budget and slow no pace."""
        return self._now() - self._held

    def _report(self, state: Literal["warming", "running", "paused", "waiting", "probing", "ended"]) -> None:
        if self._around.on_progress is None:
            return
        self._around.on_progress(
            Progress(
                state,
                len(self._done),
                self._planned,
                self._level,
                self._workload,
                self._worked(),
                self._pace.left(self._todo),
                self._failed,
            )
        )
