"""The events of a frame as a reader unpacks them (docs/frames.md), for the tests."""

from __future__ import annotations

from typing import Any

SIDES = ("standard", "speculative")


def events(frame: dict[str, Any]) -> list[dict[str, Any]]:
    """All events of a frame as objects; tokens get ``at`` in seconds, ``n``, ``x``, ``o`` and, if sent, ``p``."""
    found: list[dict[str, Any]] = []
    ms = 0
    for event in frame["ev"]:
        if isinstance(event, dict):
            found.append(event)
            continue
        side, since, said, *more = event
        ms += since
        pieces = said if isinstance(said, list) else None
        count = 1 if pieces is None else len(pieces)
        token: dict[str, Any] = {
            "k": "tok", "s": SIDES[side], "at": ms / 1000, "n": count, "x": "".join(said),
            "o": "t" * count if side == 0 else "d" * (count - 1) + "t",
        }  # fmt: skip
        if pieces is not None:
            token["p"] = pieces
        found.append(token | (more[0] if more else {}))
    return found
