"""The small run behind ``frames.json``: one text with everything a browser must cope with, one side failing.

Run this file to write ``frames.json`` anew after a deliberate change of the form; both test suites then read it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from specdemo.core.engine import EngineFacts
from specdemo.core.events import (
    Event,
    Failed,
    Finished,
    Noted,
    RequestSpeculation,
    Side,
    Started,
    TokenLogprob,
    Tokens,
    TopToken,
    Usage,
)
from specdemo.core.frames import FrameEncoder
from specdemo.core.prompt import Sampling, chat
from specdemo.core.results import Check
from specdemo.core.run import RunHeader, RunPlan

GOLDEN = Path(__file__).with_name("frames.json")
STD, SPEC = Side.STANDARD, Side.SPECULATIVE

HEADER = RunHeader(
    id="golden1",
    started_at=1_760_000_000.0,
    plan=RunPlan(prompt=chat("Say it.", system="Be brief.", sampling=Sampling(max_tokens=32), logprobs=1)),
    facts=(
        EngineFacts(side=STD, model="tiny", version="0.32.0", speculating=False, device_key="cpu:0-1@host"),
        EngineFacts(
            side=SPEC, model="tiny", version="0.32.0", speculating=True, method="ngram", k=4, device_key="cpu:0-1@host"
        ),
    ),
    checks=(Check("model", "ok", "both serve tiny"), Check("device", "warn", "both engines share a device")),
)


def _tok(side: Side, at: float, ids: tuple[int, ...], pieces: tuple[str, ...], **more: Any) -> Tokens:
    return Tokens(side, at, ids=ids, text="".join(pieces), pieces=pieces, **more)


EVENTS: tuple[Event, ...] = (
    Started(STD, 0.001),
    Started(SPEC, 0.002),
    Tokens(STD, 0.031),
    Tokens(SPEC, 0.032),
    _tok(SPEC, 0.081, (5,), ("Hello",), logprobs=(TokenLogprob(5, "Hello", -0.01, (TopToken(5, "Hello", -0.01),)),)),
    _tok(STD, 0.0825, (5,), ("Hello",)),
    _tok(SPEC, 0.131, (6, 7, 8, 9), (", ", "<b>", "你", "好")),
    _tok(STD, 0.143, (6,), (", ",)),
    _tok(STD, 0.204, (7,), ("<b>",)),
    # One emoji over two tokens: the first brings no text.
    _tok(SPEC, 0.211, (10, 11, 12), ("", "👩‍👩‍👧", "\n")),
    Noted(SPEC, 0.212, "coalesced", "Two steps arrived in one chunk."),
    _tok(STD, 0.265, (8,), ("你",)),
    # No pieces known for this burst, and a last burst cut by the limit.
    Tokens(SPEC, 0.292, ids=(13, 14), text=" $5 مرحبا"),
    Finished(
        SPEC, 0.2925, "length", usage=Usage(12, 10),
        speculation=RequestSpeculation(
            steps=3, drafted=12, accepted=7, max_draft=4, histogram=(0, 0, 2, 1, 0),
            accepted_per_step=(3, 2, 2), drafted_per_step=(4, 4, 4),
        ),
    ),
    Failed(STD, 0.41, "interrupted", "The standard engine closed the stream before it had finished."),
)  # fmt: skip
CUTS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35)


def frames() -> list[dict[str, Any]]:
    """The frames of the run, as a live page would have received them."""
    encoder = FrameEncoder(HEADER)
    made, waiting = [], list(EVENTS)
    for cut in CUTS:
        while waiting and waiting[0].at < cut:
            encoder.feed(waiting.pop(0))
        made.append(encoder.frame(cut))
    for event in waiting:
        encoder.feed(event)
    made.append(encoder.close(0.45))
    return [frame for frame in made if frame is not None]


def expected() -> dict[str, Any]:
    """What a reader of the frames must end up with, straight from the events."""
    found: dict[str, Any] = {}
    for side in (STD, SPEC):
        bursts = [event for event in EVENTS if isinstance(event, Tokens) and event.side is side]
        found[str(side)] = {
            "text": "".join(burst.text for burst in bursts),
            "tokens": sum(len(burst.ids) for burst in bursts),
            "state": "failed" if side is STD else "finished",
        }
    return found


if __name__ == "__main__":
    document = {"about": "Frames of one small run; written by frames_run.py.", "frames": frames(), "expect": expected()}
    GOLDEN.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
