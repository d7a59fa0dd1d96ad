"""Meters for a side, as far as its engine tells how it drafts."""

from __future__ import annotations

from collections.abc import Iterable

from specdemo.core.engine import EngineFacts
from specdemo.core.events import Event, Side
from specdemo.core.metrics import SideMeter
from specdemo.core.results import SideMetrics

ALWAYS_DRAFTS = frozenset({"draft_model", "eagle", "eagle3", "mtp", "medusa"})
"""Methods that draft k tokens in every step; others (n-gram, suffix) only when they find something."""


def meter_for(side: Side, facts: EngineFacts | None, *, control: bool = False) -> SideMeter:
    """A meter that knows what the engine says of its drafting, if it does; in a control both are the standard one."""
    engine = Side.STANDARD if control else side
    plain = engine is Side.STANDARD
    if facts is None:
        return SideMeter(side, plain=plain, engine=engine)
    plain = plain if facts.speculating is None else not facts.speculating
    return SideMeter(side, k=facts.k, always_drafts=facts.method in ALWAYS_DRAFTS, plain=plain, engine=engine)


def side_metrics(events: Iterable[Event], side: Side, *, k: int | None = None) -> SideMetrics:
    """The numbers of one side over a whole list of events."""
    meter = SideMeter(side, k=k)
    for event in events:
        meter.feed(event)
    return meter.snapshot()
