"""What a request says of itself: its visitor, its page, its language, the run it asks for, what its event carries."""

from __future__ import annotations

import json

import gradio as gr
from starlette.requests import Request

from specdemo.ui.i18n import Lang, language_of
from specdemo.ui.presence import page_key
from specdemo.ui.visitors import NOBODY, Visitor


def visitor_of(request: gr.Request | Request | None) -> Visitor:
    """Who asks, as the guard found out. A request that passed no guard is nobody's."""
    inner = request.request if isinstance(request, gr.Request) else request
    found = inner.scope.get("state", {}).get("visitor") if inner is not None else None
    return found if isinstance(found, Visitor) else NOBODY


def session_of(request: gr.Request | None) -> str:
    """The page that asks, as its visitor's own; empty for a program."""
    return page_key(visitor_of(request), str(getattr(request, "session_hash", None) or ""))


def lang_of(request: gr.Request | None) -> Lang:
    """The visitor's language, for the sentences above."""
    return language_of(request)


def asked_run(request: gr.Request | None) -> str | None:
    """The run that the address names (``?run=ID``)."""
    query = dict(request.query_params or {}) if request is not None else {}
    found = query.get("run")
    return str(found)[:80] if found else None


def asked_tab(request: gr.Request | None) -> str | None:
    """The tab that the address names (``?tab=runs``)."""
    query = dict(request.query_params or {}) if request is not None else {}
    found = query.get("tab")
    return str(found)[:20] if found else None


def event_data(event: gr.EventData) -> dict[str, str]:
    """What the page's script sent with an event; anything else than texts is dropped."""
    data = getattr(event, "_data", None)
    if isinstance(data, str):
        try:
            data = json.loads(data)
        except ValueError:
            data = None
    if not isinstance(data, dict):
        return {}
    return {str(key): value for key, value in data.items() if isinstance(value, str)}
