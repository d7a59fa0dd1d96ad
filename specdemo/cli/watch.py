"""A run as it happens: two live columns in a terminal, plain lines elsewhere. Both only follow the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from specdemo.cli.output import calm
from specdemo.core.events import SIDES, Event, Failed, Finished, Side, Started, Tokens
from specdemo.core.metrics import SideMeter
from specdemo.core.results import SideMetrics
from specdemo.runs.log import RunLog

_EVERY_S = 0.08
_STYLES = {Side.STANDARD: "cyan", Side.SPECULATIVE: "magenta"}


async def watch(log: RunLog, console: Console) -> None:
    """Show the run until its log closes; returns at once when the run never begins."""
    if await log.opened() is None:
        return
    if console.is_terminal:
        await _columns(log, console)
    else:
        await _lines(log, lambda line: console.print(line, markup=False))


async def _lines(log: RunLog, say: Callable[[str], None]) -> None:
    """One line for each thing that a reader of a log wants to know."""
    meters = {side: SideMeter(side) for side in SIDES}
    spoke: set[Side] = set()
    async for batch in log.follow():
        for event in batch:
            meters[event.side].feed(event)
            line = _line(event, meters[event.side], spoke)
            if line:
                say(calm(f"{event.at:8.2f} s  {event.side:<12} {line}"))


def _line(event: Event, meter: SideMeter, spoke: set[Side]) -> str | None:
    match event:
        case Started():
            return "request sent"
        case Tokens() if event.side not in spoke and (event.ids or event.text or event.reasoning):
            spoke.add(event.side)
            return "first token"
        case Finished():
            return f"finished ({event.finish_reason or 'no reason given'}): {_brief(meter.snapshot())}"
        case Failed():
            return f"{'stopped' if event.kind == 'cancelled' else 'failed'}: {event.message}"
        case _:
            return None


def _brief(metrics: SideMetrics) -> str:
    parts = [f"{metrics.output_tokens} tokens" if metrics.output_tokens is not None else "no tokens"]
    rate = metrics.decode_tokens_per_s if metrics.final else metrics.live_tokens_per_s
    if rate is not None:
        parts.append(f"{rate:.1f} tokens/s")
    if metrics.acceptance.rate is not None:
        parts.append(f"{100 * metrics.acceptance.rate:.0f} % accepted")
    return ", ".join(parts)


class _Columns:
    def __init__(self) -> None:
        self._texts: dict[Side, list[str]] = {side: [] for side in SIDES}
        self._meters = {side: SideMeter(side) for side in SIDES}
        self._states = dict.fromkeys(SIDES, "waiting")

    def feed(self, event: Event) -> None:
        self._meters[event.side].feed(event)
        match event:
            case Started():
                self._states[event.side] = "running"
            case Tokens():
                self._texts[event.side] += [calm(event.reasoning), calm(event.text)]
            case Finished():
                reason = f" ({calm(event.finish_reason)})" if event.finish_reason else ""
                self._states[event.side] = f"finished{reason}"
            case Failed():
                self._states[event.side] = "stopped" if event.kind == "cancelled" else "failed"
            case _:
                pass

    def draw(self, now: float | None, height: int) -> RenderableType:
        layout = Layout(size=height)
        layout.split_row(*(Layout(self._pane(side, now, height)) for side in SIDES))
        return layout

    def _pane(self, side: Side, now: float | None, height: int) -> Panel:
        metrics = self._meters[side].snapshot(now)
        # Only the end can be seen; more lines than the pane has would be cut at the wrong end.
        text = "".join(self._texts[side])[-height * 200 :]
        lines = text.split("\n")[-height:]
        return Panel(
            _tail("\n".join(lines), height - 2),
            title=f"{side}: {self._states[side]}",
            subtitle=_brief(metrics),
            border_style=_STYLES[side],
            height=height,
        )


def _tail(text: str, height: int) -> RenderableType:
    return _Tail(text, height)


class _Tail:
    """The last lines of a text as they fold at the width that the pane turns out to have."""

    def __init__(self, text: str, height: int) -> None:
        self._text, self._height = text, height

    def __rich_console__(self, console: Console, options):  # type: ignore[no-untyped-def]
        folded = Text(self._text).wrap(console, options.max_width)
        yield Text("\n").join(folded[-self._height :])


async def _columns(log: RunLog, console: Console) -> None:
    columns, seen = _Columns(), 0
    loop = asyncio.get_running_loop()
    begun: float | None = None
    height = max(8, min(24, console.height - 4))
    with Live(console=console, auto_refresh=False, transient=True, vertical_overflow="crop") as live:
        while True:
            closed = log.closed
            for event in log.since(seen):
                columns.feed(event)
                begun = loop.time() - event.at if begun is None else begun
                seen += 1
            now = loop.time() - begun if begun is not None and not closed else None
            live.update(columns.draw(now, height), refresh=True)
            if closed:
                return
            await asyncio.sleep(_EVERY_S)
