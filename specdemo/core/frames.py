"""A run's events as the browser receives them: small JSON deltas, described in ``docs/frames.md``.

:class:`FrameEncoder` is fed events in log order and asked for a frame now and then. Each frame holds what came since
the last one, with the arrival times of the events, and the numbers that changed. The encoder measures nothing and
reads no clock: ``now`` is the caller's, in seconds since the run's zero. ``tests/golden/frames.json`` fixes the form
for both languages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from specdemo.core.assess import assess, badge
from specdemo.core.events import SIDES, Event, Failed, Finished, Noted, Side, Started, TokenLogprob, Tokens
from specdemo.core.meters import meter_for
from specdemo.core.outcome import chunk_tokens
from specdemo.core.packing import packed, packed_step
from specdemo.core.provenance import live_origins, provenance
from specdemo.core.results import Note, SideMetrics
from specdemo.core.run import Assessment, Probe, RunHeader, RunRecord
from specdemo.core.sentences import spoken
from specdemo.core.verdict import LiveVerdict

VERSION = 2
MOST_IN_A_CHUNK = 65_536
"""Tokens that one chunk may add by the server's word alone: each of them gets a letter."""
NUMBERS_EVERY = 0.1
"""Seconds between two sets of live numbers: text may come more often than numbers can be read."""

Frame = dict[str, Any]
_LETTER = {"draft": "d", "target": "t", "unknown": "u"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where a recording comes from: ISO date, hardware in words, and the badge it had when it was live.

    ``imported``: it came as a file from another machine, so nothing in it was measured here.
    """

    date: str
    hardware: str
    how: str
    imported: bool = False


class FrameEncoder:
    """Turns one run into frames. Feed events, ask for frames, and close with the whole record.

    A frame without news is None, so that a quiet engine costs nothing. Frames are numbered without gaps from 0.
    """

    def __init__(self, header: RunHeader, *, recorded: Recorded | None = None, run_id: str | None = None) -> None:
        self._header = header
        self._id = run_id or header.id
        self._head: Frame | None = _head(header, recorded)
        self._seq = 0
        self._fresh: list[Frame] = []
        self._sides = {side: _SideState(side, header) for side in SIDES}
        self._live = LiveVerdict()
        self._events: list[Event] = []
        self._notes: list[Note] = []
        self._sent: Frame = {}
        self._numbers_at: float | None = None
        self._pressing = False
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the last frame was made."""
        return self._done

    def feed(self, event: Event) -> None:
        """Take one event of the log; order is the log's."""
        self._events.append(event)
        side = self._sides[event.side]
        side.meter.feed(event)
        self._live.feed(event)
        if isinstance(event, Noted):
            self._notes.append(Note(event.kind, event.message, event.side))
        entry = side.encode(event)
        if entry is not None:
            self._fresh.append(entry)
        if isinstance(event, Finished | Failed):
            correction = side.correction(self._events)
            if correction is not None:
                self._fresh.append(correction)
        self._pressing = self._pressing or isinstance(event, Started | Finished | Failed) or side.first_tokens

    def frame(self, now: float) -> Frame | None:
        """What came since the last frame; None if there is nothing to say. ``now``: seconds since the run's zero."""
        frame = self._open(now)
        due = self._numbers_at is None or self._pressing or now - self._numbers_at >= NUMBERS_EVERY
        if due:
            self._numbers_at, self._pressing = now, False
            self._add_numbers(frame, {side: s.meter.snapshot(now) for side, s in self._sides.items()}, exact=False)
            self._add(frame, "verdict", _live_verdict(self._live))
            self._add(frame, "notes", [plain(note) for note in self._notes])
        if not frame["ev"] and len(frame) == _BARE:
            return None
        return self._sealed(frame)

    def close(self, now: float, probe: Probe | None = None, *, assessment: Assessment | None = None) -> Frame:
        """The last frame: the remaining events, the exact numbers, the verdict. ``probe`` as in the record."""
        final = assessment or assess(RunRecord(self._header, tuple(self._events), probe))
        frame = self._open(now)
        self._add_numbers(
            frame, {Side.STANDARD: final.standard.metrics, Side.SPECULATIVE: final.speculative.metrics}, exact=True
        )
        self._add(frame, "speedup", plain(final.speedup))
        self._add(frame, "verdict", {**plain(final.verdict), "live": False})
        self._add(frame, "theory", plain(final.theory))
        self._add(frame, "notes", [plain(note) for note in final.notes])
        self._add(frame, "checks", [plain(check) for check in final.checks])
        if probe is not None:
            frame["probe"] = plain(probe)
        frame["done"] = True
        self._done = True
        return self._sealed(frame)

    def _open(self, now: float) -> Frame:
        frame: Frame = {"seq": self._seq, "t": round(max(now, 0.0), 3)}
        if self._head is not None:
            frame |= {"v": VERSION, "run": self._id, "head": self._head}
            self._sent["checks"] = self._head["checks"]
        frame["ev"] = packed(self._fresh)
        return frame

    def _sealed(self, frame: Frame) -> Frame:
        self._seq, self._fresh, self._head = self._seq + 1, [], None
        return frame

    def _add(self, frame: Frame, key: str, value: Any) -> None:
        if self._sent.get(key, [] if key == "notes" else None) != value:
            self._sent[key] = frame[key] = value

    def _add_numbers(self, frame: Frame, metrics: dict[Side, SideMetrics], *, exact: bool) -> None:
        changed = {}
        for side, values in metrics.items():
            new = self._sides[side].changed_numbers(values, exact=exact)
            if new:
                changed[str(side)] = spoken(new)
        if changed:
            frame["m"] = changed


_BARE = 3
"""Keys of a frame without news: seq, t, ev."""


class _SideState:
    """What the encoder remembers of one side."""

    def __init__(self, side: Side, header: RunHeader) -> None:
        self.side = side
        self.meter = meter_for(side, header.facts[SIDES.index(side)], control=header.plan.control)
        self.first_tokens = False
        self._state = "waiting"
        self._counted = 0
        self._reported = 0
        self._letters: list[str] = []
        self._numbers: Frame = {}

    def encode(self, event: Event) -> Frame | None:
        """The event as ``docs/frames.md`` spells it; None for what only feeds numbers."""
        self.first_tokens = False
        base: Frame = {"k": "", "s": str(event.side), "at": round(event.at, 5)}
        match event:
            case Started():
                self._state = "running"
                return {**base, "k": "start"}
            case Tokens():
                burst = self._burst(event)
                return {**base, "k": "tok", **burst} if burst["n"] or burst["x"] or "r" in burst else None
            case Finished():
                self._state = "finished"
                return {**base, "k": "end", "state": "finished", "reason": event.finish_reason}
            case Failed():
                self._state = "cancelled" if event.kind == "cancelled" else "failed"
                end = {**base, "k": "end", "state": self._state, "kind": event.kind, "message": event.message}
                return spoken(end)
            case _:
                return None

    def _burst(self, event: Tokens) -> Frame:
        count = chunk_tokens(event)
        if event.reported_total is not None:
            count = count or min(max(0, event.reported_total - self._reported), MOST_IN_A_CHUNK)
            self._reported = max(self._reported, event.reported_total)
        first = self._counted == 0
        self.first_tokens = first and (count > 0 or bool(event.text))
        self._counted += count
        origins = live_origins(count, first=first) if not self.meter.plain else ("target",) * count
        letters = "".join(_LETTER[origin] for origin in origins)
        self._letters.append(letters)
        burst: Frame = {"n": count, "x": event.text, "o": letters}
        if event.reasoning:
            burst["r"] = event.reasoning
        if event.pieces is not None and count > 1:  # one token's piece is the text itself
            burst["p"] = list(event.pieces)
        if event.logprobs is not None:
            burst["lp"] = [_logprob(token) for token in event.logprobs]
        return burst

    def correction(self, events: Sequence[Event]) -> Frame | None:
        """The exact provenance, if the finished side's own account says more than what was shown."""
        exact = provenance(events, self.side, plain=self.meter.plain)
        letters = "".join(_LETTER[origin] for origin in exact.origins)
        known = any(step.drafted or step.accepted for step in exact.steps)
        if not exact.origins or (letters == "".join(self._letters) and not known):
            return None
        return {
            "k": "prov", "s": str(self.side), "at": round(events[-1].at, 5), "o": letters,
            "steps": [packed_step(step) for step in exact.steps],
        }  # fmt: skip

    def changed_numbers(self, metrics: SideMetrics, *, exact: bool) -> Frame:
        """Numbers that differ from those last sent. Live ones have four digits, final ones all."""
        now: Frame = plain(metrics)
        now["state"] = self._state
        if not exact:
            now = {key: float(f"{value:.4g}") if isinstance(value, float) else value for key, value in now.items()}
        changed = {key: value for key, value in now.items() if self._numbers.get(key, _UNSENT.get(key)) != value}
        self._numbers.update(changed)
        return changed


_UNSENT: Frame = {"reasons": {}, "final": False, "count_source": "none"}


def replay(
    record: RunRecord, *, recorded: Recorded | None = None, run_id: str | None = None, every: float = 0.05
) -> Iterator[Frame]:
    """All frames of a finished run, cut at fixed ``every`` seconds of its own time; the same each time it is asked.

    ``run_id`` is the id it is shown under, its own if None.
    """
    encoder = FrameEncoder(record.header, recorded=recorded, run_id=run_id)
    part, last = 0, 0.0
    for event in record.events:
        # The sum keeps 0.15 // 0.05 from being 2.
        now_in = int(event.at / every + 1e-9)
        if now_in > part:
            frame = encoder.frame((part + 1) * every)
            if frame is not None:
                yield frame
            part = now_in
        encoder.feed(event)
        last = max(last, event.at)
    yield encoder.close(last, record.probe, assessment=assess(record))


def plain(value: Any) -> Any:
    """A result value as JSON-ready data under its contract names; tuples become lists, ``cls`` becomes ``class``."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {_NAMES.get(f.name, f.name): plain(getattr(value, f.name)) for f in fields(value)}
        if "reasons" in found:
            found["reasons"] = dict(found["reasons"])
        return spoken(found)
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, Side):
        return str(value)
    return value


_NAMES = {"cls": "class"}


def _logprob(token: TokenLogprob) -> list[Any]:
    return [token.logprob, [[top.text, top.logprob] for top in token.top]]


def _live_verdict(live: LiveVerdict) -> Frame:
    shown: Frame = {"live": True, "compared": live.compared}
    return shown if live.position is None else {**shown, "position": live.position}


def _head(header: RunHeader, recorded: Recorded | None) -> Frame:
    prompt = header.plan.prompt
    system = next((m.content for m in prompt.messages if m.role == "system"), "")
    user = (
        prompt.text
        if prompt.text is not None
        else "\n\n".join(m.content for m in prompt.messages if m.role != "system")
    )
    sides: Frame = {}
    for side, facts in zip(SIDES, header.facts, strict=True):
        sides[str(side)] = {
            "model": facts.model if facts else None,
            "method": facts.method if facts else None,
            "k": facts.k if facts else None,
        }
    return {
        "mode": header.plan.mode,
        "order": [str(side) for side in header.plan.order],
        "badge": badge(header, recorded=recorded is not None),
        "recorded": plain(recorded) if recorded else None,
        "title": header.title,
        "started_at": header.started_at,
        "prompt": {"system": system, "user": user},
        "greedy": prompt.greedy,
        "max_tokens": prompt.sampling.max_tokens,
        "temperature": prompt.sampling.temperature,
        "sides": sides,
        "checks": [plain(check) for check in header.checks],
    }
