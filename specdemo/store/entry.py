"""What a list says of a kept run: its row. Every number in it is measured, or None."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from specdemo.core.assess import assess
from specdemo.core.events import SIDES, Failed, Finished, Side
from specdemo.core.run import RunHeader, RunRecord

Kind = Literal["run", "benchmark", "validation"]
State = Literal["interrupted", "finished", "failed", "cancelled"]
"""``interrupted`` from the first checkpoint on until the end is written: what a crash leaves is marked already."""

CUT_OFF = "specdemo ended before this run did; what had arrived by its last checkpoint is kept."
TITLE_CHARS = 300
SEARCH_CHARS = 4000


@dataclass(frozen=True, slots=True)
class Entry:
    """One kept run, benchmark or validation.

    ``method`` is vLLM's name of it, "none" without speculation, None when unknown. ``stored_at`` and ``updated_at`` are
    this machine's s since 1970, ``started_at`` is the document's own. ``size`` is bytes in the database. ``imported``
    marks a document that came from elsewhere: not measured here.
    """

    id: str
    kind: Kind
    state: State
    stored_at: float
    started_at: float
    updated_at: float
    title: str
    search: str
    owner: str
    model: str | None = None
    method: str | None = None
    k: int | None = None
    mode: str | None = None
    badge: str | None = None
    hardware: str | None = None
    speedup: float | None = None
    verdict: str | None = None
    shared: bool = False
    imported: bool = False
    writer: str = ""
    size: int = 0


def begun(header: RunHeader, *, owner: str, now: float, writer: str) -> Entry:
    """The row of a run that has just begun: interrupted, until its end says otherwise."""
    asked = _prompt(header)
    facts = header.facts[SIDES.index(Side.SPECULATIVE)]
    standard = header.facts[SIDES.index(Side.STANDARD)]
    model = (facts or standard).model if facts or standard else None  # type: ignore[union-attr]
    # A method that an attached engine does not tell stays unknown; "none" is told.
    method = (facts.method or ("none" if facts.speculating is False else None)) if facts else None
    return Entry(
        id=header.id,
        kind="run",
        state="interrupted",
        stored_at=now,
        started_at=header.started_at,
        updated_at=now,
        title=clean(" ".join((header.title or asked).split()), TITLE_CHARS),
        search=clean(f"{asked} {header.title or ''} {model or ''} {method or ''}".casefold(), SEARCH_CHARS),
        owner=owner,
        model=model and clean(model, TITLE_CHARS),
        method=method and clean(method, 64),
        k=facts.k if facts else None,
        mode=header.plan.mode,
        badge=None,
        hardware=header.hardware and clean(header.hardware, TITLE_CHARS),
        writer=writer,
    )


def results(record: RunRecord) -> dict[str, Any]:
    """The columns that only a run's end knows: state, badge, speedup, verdict."""
    found = assess(record)
    states = {found.standard.state, found.speculative.state}
    state: State = "finished" if states == {"finished"} else "cancelled" if "cancelled" in states else "failed"
    decode = found.speedup.decode
    return {
        "state": state,
        "badge": found.badge,
        "speedup": decode if decode is not None and math.isfinite(decode) else None,
        "verdict": found.verdict.cls,
    }


def ended(record: RunRecord) -> RunRecord:
    """The run with an end on both sides: what a crash cut off says so, so that players and numbers know it."""
    open_sides = set(SIDES) - {event.side for event in record.events if isinstance(event, Finished | Failed)}
    if not open_sides:
        return record
    last = max((event.at for event in record.events), default=0.0)
    cut = tuple(Failed(side, last, "interrupted", CUT_OFF) for side in SIDES if side in open_sides)
    return RunRecord(record.header, (*record.events, *cut), record.probe)


def clean(text: str, most: int) -> str:
    """Text that every database takes: without NUL and half characters, at most ``most`` characters."""
    short = text if len(text) <= most else text[: most - 1] + "…"
    return short.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _prompt(header: RunHeader) -> str:
    prompt = header.plan.prompt
    if prompt.text is not None:
        return prompt.text
    said = [message.content for message in prompt.messages if message.role == "user"] or [
        message.content for message in prompt.messages
    ]
    return said[-1] if said else "(token ids)"
