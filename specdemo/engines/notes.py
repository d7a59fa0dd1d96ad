"""How a stream's troubles are told: remarks on the quality of its data, and the event for a failure."""

from __future__ import annotations

from specdemo.core.events import Failed, FailureKind, Side
from specdemo.errors import EngineError

RETRIED = "The kept connection had been closed by the engine; the request was sent once more on a new one."
NO_IDS = "The engine sends no token ids, so tokens are counted from its usage and compared as text."
IDS_LOST = "Some chunks had text but no token ids, so the ids are incomplete."
NO_USAGE = "The engine sent no usage, so its own token count is unknown."
NOT_STREAMED = "The engine answered in one piece instead of a stream, so there are no times between tokens."
NO_REASON = "The engine ended the stream without saying why it stopped."

_KINDS: dict[str, FailureKind] = {
    "unavailable": "unavailable", "rejected": "rejected", "protocol": "protocol", "interrupted": "interrupted",
    "stalled": "stalled", "exited": "exited",
}  # fmt: skip


def failure(side: Side, at: float, error: EngineError) -> Failed:
    """The event for an error."""
    return Failed(side, at, _KINDS.get(error.kind, "error"), str(error))
