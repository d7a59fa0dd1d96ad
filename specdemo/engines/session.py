"""HTTP to one engine: transport, key, certificates, size and time limits, and masking of secrets in every message."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpx
import orjson

from specdemo.core.masking import login_forms
from specdemo.core.sentences import sentence
from specdemo.engines.http_errors import FOREIGN, status_error, translate
from specdemo.engines.limits import Limits
from specdemo.engines.transport import BODY, Body, DirectTransport, StaleConnection
from specdemo.engines.url import BaseUrl
from specdemo.engines.wire import fields
from specdemo.engines.wire.encoding import coding
from specdemo.errors import ConfigError, EngineError, EngineProtocolError, EngineStalled

Clock = Callable[[], float]
MASK = "***"


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole small reply."""

    status: int
    headers: httpx.Headers
    body: bytes

    def json(self) -> Any:
        """The body as JSON; raises EngineProtocolError."""
        return fields.parse(self.body)


class Feed:
    """A reply's body, piece by piece, decompressed; ``at`` is the clock when the piece arrived.

    ``direct`` is the body itself where the transport is ours; its pieces, too, go through ``plain``.
    """

    def __init__(self, response: httpx.Response, clock: Clock, limit: int) -> None:
        body = response.extensions.get(BODY)
        self._body = self.direct = body if isinstance(body, Body) else None
        self._raw = None if self._body is not None else response.aiter_raw().__aiter__()
        named = response.headers.get("content-encoding", "")
        self._coding = None if named in ("", "identity") else coding(named, limit)
        self._left = limit
        self._clock = clock
        self.at = 0.0
        self.ended = False

    async def next(self, deadline: float) -> bytes | None:
        """The next bytes as received, for ``plain``. Raises TimeoutError at ``deadline`` (loop time)."""
        if self._body is not None:
            self._body.watch(lambda: deadline)
            return await self._body.read()
        assert self._raw is not None  # noqa: S101 - one of the two is set
        async with asyncio.timeout_at(deadline):
            return await anext(self._raw, None)

    def plain(self, data: bytes | None) -> list[bytes] | None:
        """What ``next`` gave, counted and decompressed; None at the end."""
        self.at = self._clock() if self._body is None else self._body.at
        if data is None:
            self.ended = True
            return None
        self._left -= len(data)
        if self._left < 0:
            raise EngineProtocolError(sentence("reply_large"))
        return [data] if self._coding is None else self._coding.decode(data)


class Session:
    """Requests to one engine. Safe to use from several tasks of one event loop."""

    def __init__(
        self,
        base: BaseUrl,
        *,
        api_key: str | None,
        ca_file: Path | str | None,
        clock: Clock,
        limits: Limits,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.base = base
        self.limits = limits
        self.clock = clock
        self._secrets = _secrets(base, api_key)
        headers = {"accept": "*/*", "accept-encoding": "identity", "user-agent": "specdemo"}
        if api_key:
            headers["authorization"] = f"Bearer {_checked(api_key)}"
        elif base.auth is not None:
            headers["authorization"] = f"Basic {_basic(base.auth)}"
        self._headers = httpx.Headers({**headers, "connection": "keep-alive"})
        self._json_headers = httpx.Headers({**self._headers, "content-type": "application/json"})
        self._urls: dict[str, httpx.URL] = {}
        # Straight to the transport: a client's cookies, redirects and hooks are not wanted, and cost half of a request.
        self._transport = transport or _transport(base, ca_file, clock, limits)

    @property
    def where(self) -> str:
        """The address for messages, without secrets."""
        return self.base.root

    def masked(self, text: str) -> str:
        """Text without key and password, even where the server repeats them."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text

    def masked_error(self, error: EngineError) -> EngineError:
        """The same error with masked text."""
        text = str(error)
        return error if self.masked(text) == text else type(error)(self.masked(text))

    async def open(self, method: str, url: str, body: object = None, *, wait_s: float) -> httpx.Response:
        """Send; the reply's body is still to be read. Raises httpx errors. ``wait_s`` bounds the wait for the head."""
        address = self._urls.get(url)
        if address is None:
            address = self._urls[url] = httpx.URL(url)
        timeout = {"connect": self.limits.connect_s, "read": wait_s, "write": wait_s, "pool": wait_s}
        request = httpx.Request(
            method,
            address,
            headers=self._headers if body is None else self._json_headers,
            content=None if body is None else orjson.dumps(body),
            extensions={"timeout": timeout},
        )
        return await self._transport.handle_async_request(request)

    async def fetch(
        self, method: str, url: str, body: object = None, *, within_s: float | None = None, limit: int | None = None
    ) -> Reply:
        """A whole reply, whatever its status. Raises EngineError; one retry when a kept connection proved dead."""
        wait = self.limits.request_s if within_s is None else within_s
        try:
            async with asyncio.timeout(wait):
                try:
                    return await self._fetch(method, url, body, wait, limit or self.limits.body_bytes)
                except StaleConnection:
                    return await self._fetch(method, url, body, wait, limit or self.limits.body_bytes)
        except TimeoutError:
            raise EngineStalled(sentence("not_within", where=self.where, seconds=f"{wait:g}")) from None
        except FOREIGN as error:
            raise self.masked_error(translate(error, self.where)) from error

    async def _fetch(self, method: str, url: str, body: object, wait: float, limit: int) -> Reply:
        response = await self.open(method, url, body, wait_s=wait)
        try:
            content = await self.content(response, limit, wait)
        finally:
            await response.aclose()
        return Reply(response.status_code, response.headers, content)

    async def content(self, response: httpx.Response, limit: int, wait: float) -> bytes:
        """The whole body of an open reply; raises EngineProtocolError over ``limit`` bytes."""
        feed = Feed(response, self.clock, limit)
        deadline = asyncio.get_running_loop().time() + wait
        pieces: list[bytes] = []
        while (found := feed.plain(await feed.next(deadline))) is not None:
            pieces += found
        return b"".join(pieces)

    async def ask(self, method: str, url: str, body: object = None, *, within_s: float | None = None) -> Any:
        """The JSON of a reply with status 2xx; raises EngineError otherwise."""
        reply = await self.fetch(method, url, body, within_s=within_s)
        if not 200 <= reply.status < 300:
            raise self.error(reply)
        return fields.parse(reply.body, self.masked)

    def error(self, reply: Reply) -> EngineError:
        """The error for a reply that is not 2xx."""
        location = reply.headers.get("location")
        return self.masked_error(status_error(reply.status, reply.body, location, self.where, self.masked))

    async def aclose(self) -> None:
        """Close all connections at once."""
        await self._transport.aclose()


def _checked(key: str) -> str:
    if not key.isascii() or not key.isprintable():
        raise ConfigError("The API key contains characters that cannot be sent; check it for line breaks.")
    return key


def _basic(auth: tuple[str, str]) -> str:
    """User and password as the header carries them."""
    return base64.b64encode(f"{auth[0]}:{auth[1]}".encode()).decode("ascii")


def _secrets(base: BaseUrl, api_key: str | None) -> tuple[str, ...]:
    """Longest first, so that no part of one is left over by another. Very short ones would mask ordinary text."""
    known = [api_key or "", *((*base.auth, *login_forms(*base.auth)) if base.auth else ())]
    return tuple(sorted((secret for secret in known if len(secret) > 3), key=len, reverse=True))


def tls_context(ca_file: Path | str | None) -> ssl.SSLContext:
    """The system's certificate authorities, and a private one beside them. Raises ConfigError for a bad file."""
    context = ssl.create_default_context()
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=str(ca_file))
        except (OSError, ssl.SSLError):
            raise ConfigError(f"The CA file {ca_file} cannot be read as PEM certificates; check the path.") from None
    return context


def _transport(base: BaseUrl, ca_file: Path | str | None, clock: Clock, limits: Limits) -> httpx.AsyncBaseTransport:
    """Direct, unless the environment names a proxy for a host that is not this machine (faults B19, C24)."""
    context = tls_context(ca_file) if base.secure else None
    proxy = None if base.loopback or _bypassed(base) else _environment_proxy(base.secure)
    if proxy is None:
        return DirectTransport(clock, limits, context)
    try:
        return httpx.AsyncHTTPTransport(proxy=httpx.Proxy(proxy), verify=context or True, trust_env=False)
    except (ValueError, ImportError, httpx.InvalidURL):
        raise ConfigError(
            "The proxy named in the environment cannot be used; correct it or add the host to NO_PROXY."
        ) from None


def _bypassed(base: BaseUrl) -> bool:
    """Whether NO_PROXY names the host, alone or with its port."""
    return bool(proxy_bypass(base.host) or (":" not in base.host and proxy_bypass(f"{base.host}:{base.port}")))


def _environment_proxy(secure: bool) -> str | None:
    found = getproxies()
    value = found.get("https" if secure else "http") or found.get("all")
    return value if value is None or "://" in value else f"http://{value}"
