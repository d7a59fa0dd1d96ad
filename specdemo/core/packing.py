"""Events of a frame in few bytes: a stream of single tokens would otherwise be mostly names of keys.

``assets/js/frame.mjs`` unpacks them; ``docs/frames.md`` describes the form, and ``tests/golden/frames.json`` fixes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from specdemo.core.events import SIDES
from specdemo.core.results import Step


def packed(entries: Sequence[dict[str, Any]]) -> list[Any]:
    """Events as sent: tokens, nearly all of them, as short arrays whose times count from the one before."""
    sent: list[Any] = []
    before = 0
    for entry in entries:
        if entry["k"] != "tok":
            sent.append(entry)
            continue
        at = round(1000 * entry["at"])
        sent.append(_tokens(entry, at - before))
        before = at
    return sent


def _tokens(entry: dict[str, Any], since: int) -> list[Any]:
    """``[side, ms, text or texts]``, and what differs from the usual as a fourth."""
    side = SIDES.index(entry["s"])
    pieces = entry.get("p")
    count = len(pieces) if pieces is not None else 1
    usual = "t" * count if side == 0 else "d" * (count - 1) + "t"
    more: dict[str, Any] = {key: entry[key] for key in ("r", "lp") if key in entry}
    if entry["n"] != count:
        more["n"] = entry["n"]
    if entry["o"] != usual:
        more["o"] = entry["o"]
    short = [side, since, entry["x"] if pieces is None else pieces]
    return [*short, more] if more else short


def packed_step(step: Step) -> list[int | None]:
    """``[tokens, drafted, accepted]``, or ``[tokens]`` when no draft is known; steps leave no gap."""
    known = step.drafted is not None or step.accepted is not None
    return [step.tokens, step.drafted, step.accepted] if known else [step.tokens]
