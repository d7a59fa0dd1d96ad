"""What Gradio remembers of pages that are closed, forgotten soon: it has no setting for that.

Gradio keeps two copies of the whole page's settings for each one (0.4 MB), by default for ten thousand of them, closed
or not. A closed page never comes back, since a reload is a new one; only a connection that broke may.
"""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import gradio as gr

from specdemo.ui.memory import give_back

MOST_SESSIONS = 300
"""Pages remembered in all: a browser says when a page goes, a program does not."""
CLOSED_KEPT = 16
"""Closed ones among them, the latest: a connection that broke comes back within seconds."""
EVERY_S = 5.0
TRIM_EVERY = 6
"""Rounds after which what was freed is given back to the system."""


def forget_closed(demo: gr.Blocks, most: int = CLOSED_KEPT) -> int:
    """Forget all but the latest ``most`` closed pages, and what was still to be said to them. Returns how many."""
    holder: Any = getattr(demo, "state_holder", None)
    if holder is None:
        return 0
    queue: Any = demo._queue  # noqa: SLF001 - there is no public way
    closed = [session for session, state in tuple(holder.session_data.items()) if state.is_closed]
    gone = closed[: max(0, len(closed) - most)]
    for session in gone:
        holder.delete_state(session)
        with holder.lock:
            holder.session_data.pop(session, None)
            holder.time_last_used.pop(session, None)
    for state in tuple(holder.session_data.values()):
        # A second copy of all settings, for links into a session, which this page does not answer. What is missing in
        # it Gradio makes again.
        state.config_values.clear()
    busy = {event.session_hash for event in tuple(queue.event_ids_to_events.values())}
    for session in tuple(queue.pending_event_ids_session):
        if session not in holder.session_data and session not in busy:
            queue.pending_event_ids_session.pop(session, None)
            if session in queue.pending_messages_per_session:
                del queue.pending_messages_per_session[session]
    return len(gone)


async def forgetting(demo: gr.Blocks) -> None:
    """Forget closed pages again and again, until cancelled."""
    for number in itertools.count(1):
        await asyncio.sleep(EVERY_S)
        forget_closed(demo)
        if number % TRIM_EVERY == 0:
            await asyncio.to_thread(give_back)
