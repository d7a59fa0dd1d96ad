"""What stands in front of every request: who asks, sign-in, what is open, limits, sub-path, security headers.

    proxies ─► visitor ─► sub-path ─► name, surface, origin ─► sign-in ─► limits ─► the page ─► headers, cookie

Plain ASGI on purpose: nothing here may buffer an event stream.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from contextlib import ExitStack

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from specdemo.ui import surface
from specdemo.ui.door import Door
from specdemo.ui.i18n import Lang, language
from specdemo.ui.presence import Presence
from specdemo.ui.quota import Quota, Refused
from specdemo.ui.visitors import Cookies, Visitor, address_of

_SOURCES = {
    "default-src": "'self'",
    # Gradio builds component scripts with Function(). Its inline scripts carry a nonce, so that no other one runs.
    "script-src": "'self' 'nonce-{nonce}' 'unsafe-eval'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self' data:",
    "connect-src": "'self'",
    "media-src": "'self' blob:",
    "worker-src": "'self' blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}
CONTENT_POLICY = "; ".join(f"{name} {sources}" for name, sources in _SOURCES.items())
FILE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"
"""For all that is not the page: a document that is opened by itself may show text and its own styles, nothing more."""
FIXED_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Answered without sign-in and limits: a load balancer has no password, and nothing is told there."""
_SCRIPT = re.compile(rb"<script(?=[\s>])")


def _language(scope: Scope) -> Lang:
    """Gradio's events carry the page's own query, and with it the language that was chosen there."""
    return language(QueryParams(scope.get("query_string", b"")), Headers(scope=scope).get("accept-language"))


class Guard:
    """ASGI middleware. ``root_path`` is stripped when a proxy left it on; ``auth`` is ``name:password`` or None.

    ``frame_ancestors`` are the sites that may show the page in a frame; ``door`` replaces ``auth`` where more is
    needed; ``opened`` are paths that ask for a key of their own; ``refused`` hears the reason of every refusal,
    ``presence`` that a page has gone.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        root_path: str = "",
        auth: str | None = None,
        frame_ancestors: tuple[str, ...] = ("'self'",),
        head: str = "",
        door: Door | None = None,
        quota: Quota | None = None,
        cookies: Cookies | None = None,
        upload_bytes: int = surface.JSON_BYTES,
        opened: frozenset[str] = frozenset(),
        refused: Callable[[str], None] = lambda _: None,
        presence: Presence | None = None,
    ) -> None:
        self._app = app
        self._root = root_path.rstrip("/")
        self._door = door or Door(auth)
        self._ancestors = f"frame-ancestors {' '.join(frame_ancestors)}"
        self._head = head.encode()
        self._quota = quota or Quota()
        self._cookies = cookies
        self._upload_bytes = upload_bytes
        self._opened = opened
        self._refused = refused
        self._presence = presence or Presence(lambda _: None)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or say in one sentence why not."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        visitor = Visitor(self._cookies.read(headers) if self._cookies else "", address_of(scope))
        if self._root and scope["path"] == self._root:
            # Relative addresses on the page need the slash.
            await RedirectResponse(self._root + "/", 307)(scope, receive, self._with_headers(send))
            return
        scope = self._without_root(scope)
        scope["state"] = {**scope.get("state", {}), "visitor": visitor}
        is_page = scope["path"] == "/" and scope["method"] == "GET"
        nonce = secrets.token_urlsafe(16) if is_page else ""
        send = self._with_headers(send, nonce=nonce, cookie=self._new_cookie(visitor, scope))
        with ExitStack() as held:
            refusal = self._refusal(scope, headers, visitor, held)
            if refusal is not None:
                await refusal(scope, receive, send)
                return
            most = self._upload_bytes + surface.SLACK_BYTES if scope["path"] in surface.UPLOADS else surface.JSON_BYTES
            body = surface.Body(receive, most)
            onward = self._with_head(send, nonce) if is_page else send

            async def sending(message: Message) -> None:
                if not body.too_large:  # else our own answer follows
                    await onward(message)

            try:
                with self._presence.watch(scope, visitor, body.receive, sending) as ends:
                    await self._app(scope, *ends)
            except Exception:
                if not body.too_large:
                    raise
            if body.too_large:
                await self._too_large(scope, most)(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers, visitor: Visitor, held: ExitStack) -> Response | None:
        """The answer to a request that may not go on; whatever is held for one that may is put into ``held``."""
        method, path = scope["method"], scope["path"]
        if path in OPEN_PATHS:
            return None
        if not self._door.answers_to(headers):
            return self._no(
                "host", 421, "This page does not go by that name; whoever runs it can add it to SPECDEMO_SERVER__HOSTS."
            )
        if not surface.is_open(method, path):
            return self._no("closed_route", 404, "There is nothing here.")
        if surface.is_foreign(method, headers):
            return self._no("cross_site", 403, "This request came from a page of another site.")
        try:
            if path not in self._opened:
                refusal = self._sign_in(headers, visitor)
                if refusal is not None:
                    return refusal
            self._quota.request(visitor, weight="file" if surface.is_file(path) else "request")
            if surface.is_stream(method, path):
                held.callback(self._quota.stream(visitor))
        except Refused as error:
            return self._limited(error, scope)
        size = headers.get("content-length", "")
        most = self._upload_bytes + surface.SLACK_BYTES if path in surface.UPLOADS else surface.JSON_BYTES
        return self._too_large(scope, most) if size.isdigit() and int(size) > most else None

    def _sign_in(self, headers: Headers, visitor: Visitor) -> Response | None:
        if not self._door.locked:
            return None
        wait = self._quota.sign_in_wait(visitor) if self._door.tried(headers) else 0.0
        if wait > 0:
            raise Refused("sign_in", retry_s=wait)
        if self._door.opens(headers):
            return None
        if self._door.tried(headers):
            self._quota.sign_in_failed(visitor)
            self._refused("sign_in")
        asking = {"www-authenticate": 'Basic realm="specdemo"'}
        return PlainTextResponse("This page asks for a name and a password.\n", 401, asking)

    def _limited(self, error: Refused, scope: Scope) -> Response:
        text = error.text(_language(scope))
        again = {"retry-after": str(error.retry_s)} if error.retry_s else {}
        return self._no(error.reason, 429, text, again)

    def _too_large(self, scope: Scope, most: int) -> Response:
        error = Refused("size", limit=max(1, round(most / 1_000_000)))
        return self._no("size", 413, error.text(_language(scope)))

    def _no(self, reason: str, status: int, sentence: str, headers: dict[str, str] | None = None) -> Response:
        self._refused(reason)
        # Gradio's page shows "detail"; our own script and programs read "error".
        return JSONResponse({"error": sentence, "detail": sentence}, status, headers)

    def _without_root(self, scope: Scope) -> Scope:
        path = scope["path"]
        if self._root and path.startswith(self._root + "/"):
            stripped = path[len(self._root) :]
            return {**scope, "path": stripped, "raw_path": stripped.encode()}
        return {**scope}

    def _new_cookie(self, visitor: Visitor, scope: Scope) -> str:
        """A cookie for a browser that opens the page without one; files and programs need none."""
        if self._cookies is None or visitor.id or scope["path"] != "/":
            return ""
        return self._cookies.header(self._cookies.fresh(), secure=scope.get("scheme") == "https")

    def _with_headers(self, send: Send, *, nonce: str = "", cookie: str = "") -> Send:
        policy = CONTENT_POLICY.format(nonce=nonce) if nonce else FILE_POLICY

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in FIXED_HEADERS.items():
                    headers.setdefault(name, value)
                headers["content-security-policy"] = f"{policy}; {self._ancestors}"
                if cookie:
                    headers.append("set-cookie", cookie)
                    headers["cache-control"] = "no-store"
            await send(message)

        return sending

    def _with_head(self, send: Send, nonce: str) -> Send:
        """Put ``head`` first into the page's head: it must run before Gradio's own scripts read the language.

        Every script of the page gets the nonce; what comes into the document later has none and does not run.
        """
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
                body = _SCRIPT.sub(b'<script nonce="' + nonce.encode() + b'"', body)
                headers["content-length"] = str(len(body))
            held.clear()
            await send(start)
            await send({"type": "http.response.body", "body": body})

        return sending
