"""Closing a stream of events for sure: it is what makes an engine abort the request."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from specdemo.core.events import Event


@asynccontextmanager
async def closing(stream: AsyncIterator[Event]) -> AsyncIterator[AsyncIterator[Event]]:
    """The stream inside the block; afterwards it is closed, also when the block was cancelled.

    The port promises an iterator; async generators have ``aclose`` and a plain iterator needs none.
    """
    try:
        yield stream
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
