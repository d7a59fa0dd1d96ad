"""What may be asked for at all: of Gradio's many routes those that this page uses, and requests of a sane size.

Gradio brings routes for proxying, recording, editing its own source, deep links into another session's state and more.
A list of what is open cannot forget one that a later version adds.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.types import Message, Receive

_API = "/gradio_api/"
_GET = (
    "info", "app_id", "startup-events", "theme.css", "heartbeat/", "queue/data", "queue/status", "call/", "file=",
    "upload_progress", "openapi.json",
)  # fmt: skip
_POST = ("queue/join", "call/", "run/", "api/", "cancel", "reset", "upload", "component_server")
_CLOSED = ("/login", "/logout", "/monitoring", "/svelte/", "/pwa_icon", "/dev/", "/custom_component/", "/runs-archive")
_FILES = ("/assets/", "/static/", "/theme.css", "/favicon.ico", "/manifest.json", "/robots.txt")
_STREAMS = ("/gradio_api/heartbeat/", "/gradio_api/queue/data", "/gradio_api/call/")
JSON_BYTES = 4_000_000
"""Largest request body beside uploads (bytes): a form with a very long prompt fits, and is then refused in words."""
UPLOADS = frozenset({"/gradio_api/upload", "/runs"})
"""Where files are sent to: prompts, and runs from another machine."""
SLACK_BYTES = 16_384
"""What the wrapping of an upload may add (bytes)."""


def is_open(method: str, path: str) -> bool:
    """Whether this page answers to such a request."""
    if path.startswith(_API):
        rest = path[len(_API) :]
        allowed = _GET if method in ("GET", "HEAD") else _POST if method == "POST" else ()
        return rest.startswith(allowed)
    return not path.startswith(_CLOSED)


def is_file(path: str) -> bool:
    """A static file, the same for everybody."""
    return path.startswith(_FILES) or path == "/gradio_api/theme.css"


def is_stream(method: str, path: str) -> bool:
    """An answer that stays open for as long as its reader likes."""
    if method != "GET":
        return False
    return path.startswith(_STREAMS) or (path.startswith("/runs/") and path.endswith("/events"))


def is_foreign(method: str, headers: Mapping[str, str]) -> bool:
    """A request that changes something and was sent by a page of another site.

    The browser adds cookies and passwords to it, so they prove nothing. Programs send neither of these headers. A
    browser that does not say where a request comes from (plain http) asks first before it sends JSON, and is told no;
    only the old form types come through unasked.
    """
    if method in ("GET", "HEAD", "OPTIONS"):
        return False
    site = headers.get("sec-fetch-site", "")
    if site:
        return site not in ("same-origin", "none")
    origin = headers.get("origin", "")
    if not origin or headers.get("content-type", "").lower().startswith("application/json"):
        return False
    host = _first(headers.get("x-forwarded-host") or headers.get("host", ""))
    # Many proxies hand on the name alone, and the port in a header of its own.
    port = _first(headers.get("x-forwarded-port", ""))
    scheme, _, place = origin.lower().partition("://")
    usual = {"http": ":80", "https": ":443"}.get(scheme, "\n")  # left out by the browser, not by all proxies
    return not place or place.removesuffix(usual) not in {name.removesuffix(usual) for name in (host, f"{host}:{port}")}


def _first(listed: str) -> str:
    return listed.split(",", maxsplit=1)[0].strip().lower()


class Body:
    """A request's body as it comes in, at most ``most`` bytes of it: then it ends, as if the sender had gone."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most

    @property
    def too_large(self) -> bool:
        """Whether more came than may."""
        return self._left < 0

    async def receive(self) -> Message:
        """The next message."""
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self.too_large:
                return {"type": "http.disconnect"}
        return message
