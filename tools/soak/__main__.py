"""``python -m tools.soak``: 20 visitors for 10 minutes, with stops, reloads, dead tabs and killed engines.

    --visitors 20 --minutes 10 --kills 6 --viewers 50 --browsers 1 [--write]

What must hold: every run that was begun is there afterwards and whole, unless its engine was killed; an engine stops
answering within a second of a closed tab; memory at run 1,000 is within 5 % of that at run 100; viewers of one run are
within a second of each other and cost less than a core. Exit code 1 if anything did not.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import httpx
import psutil

from tools.soak import browsers
from tools.soak.ledger import Ledger
from tools.soak.visitor import Run, Seen, Visitor
from tools.soak.world import ROOT, World, world

RESULT = ROOT / "benchmarks" / "results" / "soak.txt"
WAYS = ("finish",) * 14 + ("stop", "stop", "reload", "reload", "dead", "dead")
LEAK_S = 1.0
SLOW_TOKENS = 600


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.soak", description=__doc__.partition("\n")[0])
    parser.add_argument("--visitors", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--browsers", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"keep the result in {RESULT.relative_to(ROOT)}")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="specdemo-soak-") as folder:
        ledger = asyncio.run(soak(Path(folder), options))
    text = ledger.report()
    print(text)
    if options.write:
        RESULT.write_text(text + "\n", encoding="utf-8")
    return 1 if ledger.faults else 0


async def soak(folder: Path, options: argparse.Namespace) -> Ledger:
    """Everything, in order; what was seen is in the ledger."""
    ledger = Ledger(
        f"{options.visitors} visitors, {options.minutes:g} min, {options.kills} engine kills, seed {options.seed}; "
        f"{psutil.cpu_count()} cores, load {psutil.getloadavg()[0]:.1f} at the start, Python {sys.version.split()[0]}"
    )
    async with world(folder, together=options.visitors + options.browsers) as place:
        until = asyncio.get_running_loop().time() + options.minutes * 60
        chance = random.Random(options.seed)  # noqa: S311 - to be repeatable
        visitors = [Visitor(place.url, f"v{number:02d}") for number in range(options.visitors)]
        async with asyncio.TaskGroup() as going:
            watching = asyncio.create_task(_watch(place, ledger))
            going.create_task(_kill(place, options.kills, options.minutes * 60))
            for _ in range(options.browsers):
                going.create_task(browsers.browse(place.url, until, ledger))
            for visitor in visitors:
                going.create_task(_visit(visitor, place, until, random.Random(chance.random()), ledger))  # noqa: S311
        watching.cancel()
        await _account(visitors, place, ledger)
        await _crowd(place, options.viewers, ledger)
        for visitor in visitors:
            await visitor.aclose()
    return ledger


async def _visit(visitor: Visitor, place: World, until: float, chance: random.Random, ledger: Ledger) -> None:
    now = asyncio.get_running_loop().time
    await asyncio.sleep(chance.random() * 2)
    await visitor.open()
    while now() < until:
        how, prompt, begun = chance.choice(WAYS), visitor.marker(), now()
        try:
            async with asyncio.timeout(120):
                seen = await _once(visitor, place, how, prompt, chance, ledger)
        except (httpx.HTTPError, RuntimeError, TimeoutError, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and (task := asyncio.current_task()) and task.cancelling():
                raise
            ledger.fault(f"{prompt} ({how}): {type(error).__name__} {error}")
            continue
        ledger.saw(visitor.name, Seen(seen[0], how, begun, now(), *seen[1:]))
        await asyncio.sleep(chance.random() * 1.5)


async def _once(
    visitor: Visitor, place: World, how: str, prompt: str, chance: random.Random, ledger: Ledger
) -> tuple[str, tuple[str, ...], int]:
    async with visitor.running(prompt, tokens=24 if how == "finish" else SLOW_TOKENS) as run:
        found = await run.id
        if how == "finish":
            words = await _read(visitor, found)
            await run.over.wait()
            return found, _states(await visitor.result(found)), words
        await _some(visitor, found, chance.randrange(1, 8))
        if how == "stop":
            await _stopped(run, place, visitor, prompt, ledger)
            return found, (), 0
        gone = time.monotonic()
    # The tab is gone: by a reload, or for good.
    await visitor.close()
    await _free(place, visitor, prompt, gone, ledger)
    await visitor.open()
    words = await _read(visitor, found) if how == "reload" else 0
    return found, (), words


async def _stopped(run: Run, place: World, visitor: Visitor, prompt: str, ledger: Ledger) -> None:
    pressed = time.monotonic()
    await run.stop()
    await _free(place, visitor, prompt, pressed, ledger)


async def _free(place: World, visitor: Visitor, prompt: str, since: float, ledger: Ledger) -> None:
    """Wait until no engine answers this prompt any more, and note how long that took, by the engines' own clocks."""
    while await place.answering(prompt, visitor.http):
        if time.monotonic() - since > 10 * LEAK_S:
            ledger.fault(f"{prompt}: an engine still answers {time.monotonic() - since:.1f} s after it was left")
            return
        await asyncio.sleep(0.05)
    ended = await place.ended(prompt, visitor.http)
    if ended is not None:  # else its engine was killed
        ledger.left.append(max(0.0, ended - since))


async def _read(visitor: Visitor, run: str) -> int:
    """The frames to the end, each once and in order; returns how many events there were."""
    length, last = 0, -1
    async for frame in visitor.frames(run):
        if frame["seq"] != last + 1:
            raise RuntimeError(f"frame {frame['seq']} came after {last}")
        last = frame["seq"]
        length += len(frame["ev"])
    return length


async def _some(visitor: Visitor, run: str, count: int) -> None:
    async for frame in visitor.frames(run):
        if frame["seq"] >= count or frame.get("done"):
            return


def _states(result: dict[str, object] | None) -> tuple[str, ...]:
    sides = result["sides"] if result else {}
    return tuple(str(side["state"]) for side in sides.values()) if isinstance(sides, dict) else ()


async def _kill(place: World, kills: int, seconds: float) -> None:
    """Engines die in turn, evenly over the time, and come back a second or two later."""
    for number in range(kills):
        await asyncio.sleep(seconds / (kills + 1))
        await list(place.engines.values())[number % 2].kill(1.0 + number % 2)


async def _watch(place: World, ledger: Ledger) -> None:
    zero = place.cpu_s(), time.monotonic()
    while True:
        await asyncio.sleep(0.5)
        ledger.memory.append((ledger.runs, place.memory()))
        ledger.cores = (place.cpu_s() - zero[0]) / (time.monotonic() - zero[1])


async def _account(visitors: list[Visitor], place: World, ledger: Ledger) -> None:
    """Every run that was begun is there, and every one that nobody disturbed is whole on both sides."""
    lost: Counter[str] = Counter()
    for visitor in visitors:
        for seen in ledger.seen.get(visitor.name, ()):
            found = await visitor.result(seen.run)
            if found is None:
                lost[seen.how] += 1
                continue
            disturbed = any(engine.was_down(seen.begun, seen.ended) for engine in place.engines.values())
            if seen.how == "finish" and not disturbed and _states(found) != ("finished", "finished"):
                ledger.fault(f"{visitor.name}: run {seen.run} is {_states(found)} although nothing disturbed it")
            ledger.disturbed += disturbed
    if lost:
        ledger.fault(f"runs that are no longer there, by how their visitor left: {dict(lost)}")


async def _crowd(place: World, viewers: int, ledger: Ledger) -> None:
    """Many viewers of one live run: how far the last is behind the first, and what they cost."""
    if not viewers:
        return
    starter = Visitor(place.url, "crowd")
    await starter.open()
    async with starter.running(starter.marker(), tokens=SLOW_TOKENS) as run:
        found = await run.id
        cpu, begun = place.cpu_s(), time.monotonic()
        arrivals = await asyncio.gather(*(_view(starter, found) for _ in range(viewers)))
        spent = (place.cpu_s() - cpu) / (time.monotonic() - begun)
    await starter.aclose()
    frames = set.intersection(*(set(times) for times in arrivals))
    spread = [max(times[n] for times in arrivals) - min(times[n] for times in arrivals) for n in sorted(frames)]
    whole = {max(times) for times in arrivals}
    ledger.crowd(viewers, spread, spent, whole=len(whole) == 1 and frames == set(arrivals[0]))


async def _view(starter: Visitor, run: str) -> dict[int, float]:
    times: dict[int, float] = {}
    async with httpx.AsyncClient(base_url=starter.http.base_url, cookies=starter.http.cookies, timeout=120) as http:
        visitor = Visitor(str(http.base_url), "viewer")
        visitor.http.cookies = starter.http.cookies
        async for frame in visitor.frames(run):
            times[frame["seq"]] = time.monotonic()
        await visitor.aclose()
    return times


if __name__ == "__main__":
    sys.exit(main())
