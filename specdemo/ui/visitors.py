"""Who asks: an anonymous visitor by a signed cookie, and the address behind the proxies that are trusted.

The cookie holds a random name and nothing else. A forged or missing one makes its bearer a visitor known by address
alone, which is what programs without cookies are.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import secrets
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from itsdangerous import BadSignature, Signer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

COOKIE = "specdemo_visitor"
LIFETIME_S = 180 * 24 * 3600
KEY_FILE = "cookie.key"
_FORWARDED = (b"x-forwarded-", b"forwarded", b"x-real-ip")
_NOBODYS = b"x-gradio-server"
"""By this header any visitor could give the page another server's address; none of our proxies sends it."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Visitor:
    """One visitor. ``id`` is empty without a valid cookie; ``address`` is a host, or the /64 network of an IPv6 one."""

    id: str = ""
    address: str = ""

    @property
    def key(self) -> str:
        """What this visitor's own things are kept under."""
        return self.id or f"@{self.address}"


NOBODY = Visitor()
"""Whoever asks past the guard: tests, and the process itself."""


class Cookies:
    """Reads and makes visitors' cookies, signed with ``secret``."""

    def __init__(self, secret: str, *, path: str = "/", framed: bool = False) -> None:
        self._signer = Signer(secret, salt="specdemo visitor", digest_method=hashlib.sha256)
        self._path = path or "/"
        self._framed = framed

    def read(self, headers: Headers) -> str:
        """The name in a request's cookie; empty if there is none that we signed.

        Cut by hand, as browsers join them: the standard library drops all cookies when another site of this host has
        set one that it cannot read. And a second specdemo under another path may have one of the same name.
        """
        for part in ";".join(headers.getlist("cookie")).split(";"):
            name, _, value = part.strip().partition("=")
            if name == COOKIE and len(value) <= _LONGEST:
                with suppress(BadSignature, UnicodeError):
                    return self._signer.unsign(value).decode("ascii")
        return ""

    def fresh(self) -> str:
        """A new visitor's name."""
        return secrets.token_urlsafe(12)

    def header(self, name: str, *, secure: bool) -> str:
        """The Set-Cookie header for ``name``. In a frame of another site only partitioned cookies are kept."""
        value = self._signer.sign(name).decode("ascii")
        kind = "SameSite=None; Secure; Partitioned" if self._framed else f"SameSite=Lax{'; Secure' if secure else ''}"
        return f"{COOKIE}={value}; Path={self._path}; Max-Age={LIFETIME_S}; HttpOnly; {kind}"


class Proxies:
    """Which peers are reverse proxies whose word counts. Anybody else's X-Forwarded-* headers are dropped."""

    def __init__(self, trusted: str = "127.0.0.1,::1") -> None:
        self._networks = [
            _unmapped_network(ipaddress.ip_network(part.strip(), strict=False))
            for part in trusted.split(",")
            if part.strip()
        ]
        self._trusted = [str(network) for network in self._networks]

    def before(self, app: ASGIApp) -> ASGIApp:
        """``app``, seeing each visitor's own address and scheme.

        A listener on ``::`` names an IPv4 peer ``::ffff:10.0.0.5``: such addresses are written as IPv4 before anybody
        compares them, those in X-Forwarded-For too.
        """
        believing = ProxyHeadersMiddleware(app, trusted_hosts=self._trusted) if self._trusted else app  # type: ignore[arg-type]

        async def handling(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] in ("http", "websocket"):
                scope = _unmapped_scope(scope)
            if scope["type"] == "http" and not self._trusts(scope):
                scope = {**scope, "headers": [pair for pair in scope["headers"] if not pair[0].startswith(_FORWARDED)]}
                await app(scope, receive, send)
            else:
                await believing(scope, receive, send)  # type: ignore[arg-type]

        return handling

    def _trusts(self, scope: Scope) -> bool:
        try:
            peer = ipaddress.ip_address((scope.get("client") or ("",))[0])
        except ValueError:
            return False
        return any(peer in network for network in self._networks)


_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")


def _unmapped(host: str) -> str:
    """``::ffff:10.0.0.5`` → ``10.0.0.5``; any other text as it is."""
    try:
        mapped = ipaddress.IPv6Address(host).ipv4_mapped
    except ValueError:
        return host
    return host if mapped is None else str(mapped)


def _unmapped_network(network: _Network) -> _Network:
    if isinstance(network, ipaddress.IPv6Network) and network.subnet_of(_MAPPED):
        start = ipaddress.IPv4Address(int(network.network_address) & 0xFFFF_FFFF)
        return ipaddress.IPv4Network((start, network.prefixlen - 96))
    return network


def _unmapped_hop(hop: str) -> str:
    host, port = hop.strip(), ""
    if host.startswith("["):
        host, _, port = host[1:].partition("]")
    plain = _unmapped(host)
    return hop if plain == host else plain + port


def _unmapped_hops(value: bytes) -> bytes:
    hops = [hop for hop in value.decode("latin1").split(",") if hop.strip()]  # an empty one is nobody's address
    return ",".join(map(_unmapped_hop, hops)).encode("latin1")


def _first_scheme(value: bytes) -> bytes:
    """``HTTPS, http`` → ``https``: of several proxies the first one met the visitor."""
    return value.split(b",")[0].strip().lower()


_READ = {b"x-forwarded-for": _unmapped_hops, b"x-forwarded-proto": _first_scheme}
"""Headers that are written in one way before anybody reads them."""


def _unmapped_scope(scope: Scope) -> Scope:
    peer = scope.get("client")
    given: list[tuple[bytes, bytes]] = [pair for pair in scope["headers"] if pair[0] != _NOBODYS]
    headers = [pair for pair in given if pair[0] not in _READ]
    for name, read in _READ.items():
        if values := [value for other, value in given if other == name]:
            headers.append((name, read(b",".join(values))))  # some proxies add a line of their own to a chain
    return {**scope, "client": (_unmapped(str(peer[0])), *peer[1:]) if peer else peer, "headers": headers}


def address_of(scope: Scope) -> str:
    """The visitor's address for limits: one IPv6 customer has a whole /64, so that counts as one."""
    given = str((scope.get("client") or ("",))[0])
    try:
        found = ipaddress.ip_address(given)
    except ValueError:
        return given[:_LONGEST]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


def signing_key(folder: Path) -> str:
    """The key that signs cookies, made once and kept in ``folder``, for this user alone.

    Where nothing can be kept it lives as long as the process, and a restart makes every visitor a new one.
    """
    path = folder / KEY_FILE
    fresh = secrets.token_urlsafe(32)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(fresh)
    except FileExistsError:
        try:
            return path.read_text(encoding="ascii").strip() or fresh
        except (OSError, UnicodeError):
            return fresh
    except OSError:
        return fresh
    return fresh
