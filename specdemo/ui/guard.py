"""What stands in front of every request: sub-path, sign-in, security headers, and the script that sets the language.

Plain ASGI on purpose: nothing here may buffer an event stream.
"""

from __future__ import annotations

import base64
import binascii
import hmac

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SOURCES = {
    "default-src": "'self'",
    # Gradio builds component scripts with Function() and inlines its configuration.
    "script-src": "'self' 'unsafe-inline' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "media-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
CONTENT_POLICY = "; ".join(f"{name} {sources}" for name, sources in _SOURCES.items())
FIXED_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
}
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Answered without sign-in: a load balancer has no password, and nothing is told there."""


class Guard:
    """ASGI middleware. ``root_path`` is stripped when a proxy left it on; ``auth`` is ``name:password`` or None.

    ``frame_ancestors`` are the sites that may show the page in a frame.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        root_path: str = "",
        auth: str | None = None,
        frame_ancestors: tuple[str, ...] = ("'self'",),
        head: str = "",
    ) -> None:
        self._app = app
        self._root = root_path.rstrip("/")
        self._auth = auth.encode() if auth else None
        self._policy = f"{CONTENT_POLICY}; frame-ancestors {' '.join(frame_ancestors)}"
        self._head = head.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or ask for the password."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if self._root and scope["path"] == self._root:
            # Relative addresses on the page need the slash.
            await RedirectResponse(self._root + "/", 307)(scope, receive, self._with_headers(send))
            return
        scope = self._without_root(scope)
        if not self._welcome(scope):
            refusal = PlainTextResponse(
                "This page asks for a name and a password.\n", 401, {"www-authenticate": 'Basic realm="specdemo"'}
            )
            await refusal(scope, receive, self._with_headers(send))
            return
        is_page = scope["path"] == "/" and scope["method"] == "GET"
        send = self._with_headers(send)
        await self._app(scope, receive, self._with_head(send) if is_page and self._head else send)

    def _without_root(self, scope: Scope) -> Scope:
        path = scope["path"]
        if self._root and path.startswith(self._root + "/"):
            stripped = path[len(self._root) :]
            return {**scope, "path": stripped, "raw_path": stripped.encode()}
        return scope

    def _welcome(self, scope: Scope) -> bool:
        if self._auth is None or scope["path"] in OPEN_PATHS:
            return True
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            credentials = base64.b64decode(given.strip(), validate=True) if scheme.lower() == "basic" else b""
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(credentials, self._auth)

    def _with_headers(self, send: Send) -> Send:
        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in FIXED_HEADERS.items():
                    headers.setdefault(name, value)
                headers["content-security-policy"] = self._policy
            await send(message)

        return sending

    def _with_head(self, send: Send) -> Send:
        """Put ``head`` first into the page's head: it must run before Gradio's own scripts read the language."""
        held: list[Message] = []

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                held.append(message)
                return
            start = held[0] if held else None
            if start is None:
                await send(message)
                return
            if message.get("more_body"):
                held.append(message)
                return
            body = b"".join(part.get("body", b"") for part in (*held[1:], message))
            headers = MutableHeaders(scope=start)
            if headers.get("content-type", "").startswith("text/html") and "content-encoding" not in headers:
                body = body.replace(b"<head>", b"<head>" + self._head, 1)
                headers["content-length"] = str(len(body))
            held.clear()
            await send(start)
            await send({"type": "http.response.body", "body": body})

        return sending
