"""Whose page is still open: a run ends at once when the page that started it goes, not when somebody next looks.

Gradio notices a closed page at its handler's next value. The guard sees the connection end, and tells it here.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from starlette.datastructures import QueryParams
from starlette.types import Message, Receive, Scope, Send

from specdemo.ui.visitors import Visitor

_MESSAGES = "/gradio_api/queue/data"  # open for as long as a page waits for a handler
_HEARTBEAT = "/gradio_api/heartbeat/"  # open for as long as the page is; a program that waits has none

GRACE_S = 5.0
"""How long a page that was never heard of may take from its run's beginning to opening a stream (s)."""
SOON_S = 2.0
"""The same for a page that was here and holds nothing open when its run begins (s)."""
MOST_KNOWN = 2000
"""Pages known by their streams; the ones longest unheard of are forgotten first."""


def page_key(visitor: Visitor, session: str) -> str:
    """A page as its visitor's own: its name comes from the browser and proves nothing by itself. Empty for none."""
    return f"{visitor.key}/{session[:80]}" if session else ""


class Presence:
    """The runs that open pages wait for; ``end`` begins to stop one, and returns at once."""

    def __init__(self, end: Callable[[str], object]) -> None:
        self._end = end
        self._waiting: dict[str, list[str]] = {}
        self._listening: Counter[str] = Counter()
        self._beating: Counter[str] = Counter()
        self._known: OrderedDict[str, None] = OrderedDict()

    @contextmanager
    def waits(self, page: str, run_id: str, *, listens: bool = False) -> Iterator[None]:
        """Within the block the run ends with the page. An unnamed page (a program's) is not followed.

        A page may be gone before its run begins; it gets a moment in which to come back. ``listens`` says that it is a
        page of ours, which always listens to its run; of another one that was never heard of nobody can tell.
        """
        if not page:
            yield
            return
        self._waiting.setdefault(page, []).append(run_id)
        looking = asyncio.get_running_loop().call_later(
            GRACE_S if page not in self._known or self._open(page) else SOON_S, self._look, page, listens
        )
        try:
            yield
        finally:
            looking.cancel()
            runs = self._waiting.get(page, [])
            if run_id in runs:
                runs.remove(run_id)
            if not runs:
                self._waiting.pop(page, None)

    def left(self, page: str) -> None:
        """The page is gone."""
        for run_id in tuple(self._waiting.get(page, ())):
            self._end(run_id)

    def _look(self, page: str, listens: bool) -> None:
        if (listens or page in self._known) and not self._open(page):
            self.left(page)

    def _open(self, page: str) -> bool:
        return bool(self._listening[page] or self._beating[page])

    @contextmanager
    def watch(self, scope: Scope, visitor: Visitor, receive: Receive, send: Send) -> Iterator[tuple[Receive, Send]]:
        """The two ends of a request; a page's stream that breaks off before its end says that the page left.

        A heartbeat says so only of a page that does not listen to its run: proxies cut long connections.
        """
        session = _session(scope)
        if not session:
            yield receive, send
            return
        page, ended = page_key(visitor, session), False
        beats = scope["path"] != _MESSAGES
        held = self._beating if beats else self._listening
        held[page] += 1
        self._remember(page)

        async def receiving() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect" and not ended:
                over()
                if not (beats and self._listening[page]):
                    self.left(page)
            return message

        def over() -> None:
            nonlocal ended
            if not ended:
                held[page] -= 1
                if not held[page]:
                    del held[page]
            ended = True

        async def sending(message: Message) -> None:
            # The last piece: whatever this page starts from now on is waited for by another stream.
            if message["type"] == "http.response.body" and not message.get("more_body"):
                over()
            await send(message)

        try:
            yield receiving, sending
        finally:
            over()

    def _remember(self, page: str) -> None:
        self._known[page] = None
        self._known.move_to_end(page)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)


def _session(scope: Scope) -> str:
    """The page whose stream this request asks for; empty for any other request."""
    path = scope["path"]
    if scope["method"] != "GET":
        return ""
    if path == _MESSAGES:
        return QueryParams(scope["query_string"]).get("session_hash", "")
    return str(path.removeprefix(_HEARTBEAT)) if path.startswith(_HEARTBEAT) else ""
