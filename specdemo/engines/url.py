"""Base URLs as people write them → the API root (…/v1) and the server root beside it."""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urlsplit

import httpx

from specdemo.errors import ConfigError

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HOST = re.compile(r"^(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$", re.IGNORECASE)
_MANGLED = re.compile(r"^https?[:;]?//|^[a-z][a-z0-9+.-]*:/(?!/)", re.IGNORECASE)
_UNDER_V1 = re.compile(
    r"/v1/(audio|chat|classify|completions|embeddings|health|load|messages|metrics|models|moderations|ping|pooling|rerank"
    r"|responses|score|tokenize|detokenize|version)(/.*)?$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"/(chat/completions|completions|detokenize|docs|embeddings|health|invocations|load|metrics|models|openapi\.json|ping"
    r"|redoc|responses|tokenize|v2/rerank|version)$",
    re.IGNORECASE,
)
"""Servers' own addresses, as people copy them. A path that ends in ``/chat`` alone may be a proxy's."""
_STRANGE = re.compile(r"/v1/(?!v1$)[^/]+$", re.IGNORECASE)
_EXAMPLE = "an address such as http://127.0.0.1:8000 is needed"


@dataclass(frozen=True, slots=True)
class BaseUrl:
    """``api`` ends in /v1, ``root`` is what /health, /metrics and /tokenize hang on; neither has a trailing slash.

    ``auth`` are user and password from the address; they are in no other field and never printed.
    """

    api: str
    root: str
    host: str
    port: int
    secure: bool
    auth: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def loopback(self) -> bool:
        """Whether it is this machine: then no proxy may stand between."""
        return is_loopback(self.host)

    @property
    def key(self) -> str:
        """Equal for two addresses of the same server process (localhost and 127.0.0.1 count as one)."""
        return f"{'loopback' if self.loopback else self.host}:{self.port}"

    @property
    def with_login(self) -> str:
        """``root`` with user and password in it, as an HTTP client takes them; never to be shown."""
        if self.auth is None:
            return self.root
        scheme, _, rest = self.root.partition("://")
        return f"{scheme}://{quote(self.auth[0], safe='')}:{quote(self.auth[1], safe='')}@{rest}"

    def __str__(self) -> str:
        return self.root


def is_loopback(host: str) -> bool:
    """localhost, 127.0.0.0/8, ::1, and 0.0.0.0 or :: which people copy from server logs.

    IPv4 in every form that the system's resolver takes: 127.1, 2130706433, 0x7f.1, 0.
    """
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        try:
            address = ipaddress.IPv4Address(socket.inet_aton(name))
        except (OSError, UnicodeError):
            return False
    mapped = getattr(address, "ipv4_mapped", None) or address
    return bool(mapped.is_loopback or mapped.is_unspecified)


def parse_base_url(text: str) -> BaseUrl:
    """Any usual form: ``host:8000``, with or without scheme, ``/v1``, endpoint, trailing slash, spaces around.

    Raises ConfigError with one sentence; a password in the text is never repeated.
    """
    given = text.strip()
    if not given:
        raise ConfigError(f"The engine address is empty; {_EXAMPLE}.")
    if any(char.isspace() or not char.isprintable() for char in given) or "\\" in given:
        raise ConfigError(f"The engine address contains blanks, control characters or backslashes; {_EXAMPLE}.")
    if not _SCHEME.match(given):
        if _MANGLED.match(given):
            raise ConfigError(f"The engine address has a broken beginning; {_EXAMPLE}.")
        given = "http://" + given.removeprefix("//")
    try:
        parts = urlsplit(given)
        port = parts.port
    except ValueError:
        raise ConfigError(f"The engine address has a bad host or port; {_EXAMPLE}.") from None
    if parts.scheme.lower() not in ("http", "https"):
        raise ConfigError(f"The engine address must begin with http:// or https://, not {parts.scheme}://.")
    if parts.query or parts.fragment:
        raise ConfigError(f"The engine address must not have a ? or # part; {_EXAMPLE}.")
    if port == 0:
        raise ConfigError(f"The engine address has port 0, which nothing can listen on; {_EXAMPLE}.")
    host = _host(parts.hostname or "")
    if "://" in parts.path or (host in ("http", "https") and parts.path.startswith("//")):
        raise ConfigError(f"The engine address holds http:// twice; {_EXAMPLE}.")
    secure = parts.scheme.lower() == "https"
    netloc = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme.lower()}://{netloc}" + (f":{port}" if port else "")
    root = origin + _server_path(parts.path)
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username), unquote(parts.password or ""))
    return BaseUrl(f"{root}/v1", root, host, port or (443 if secure else 80), secure, auth)


def _host(host: str) -> str:
    if not host:
        raise ConfigError(f"The engine address has no host; {_EXAMPLE}.")
    if ":" in host:
        host = host.replace("%25", "%", 1)  # before a zone, as RFC 6874 has it in URLs; the system wants it bare
        try:
            ipaddress.IPv6Address(host)
        except ValueError:
            raise ConfigError("The engine address has a bad IPv6 host; write it as http://[::1]:8000.") from None
        return host
    try:
        url = httpx.URL(scheme="http", host=host)
        ascii_host = url.raw_host.decode("ascii") if url.host else ""
    except (httpx.InvalidURL, UnicodeError):
        ascii_host = ""
    if not _HOST.match(ascii_host) or len(ascii_host) > 253:
        raise ConfigError(f"The engine address has a bad host name; {_EXAMPLE}.")
    return ascii_host


def _server_path(path: str) -> str:
    """The path without endpoint and /v1, so that each is added exactly once."""
    clean = re.sub(r"/{2,}", "/", path).rstrip("/")
    if not clean.lower().endswith("/v1"):
        clean = _UNDER_V1.sub("/v1", _BARE.sub("", clean))
        if _STRANGE.search(clean):
            raise ConfigError(
                "The engine address goes on after /v1 with what no engine has there; end it with /v1, or leave /v1 out."
            )
    while clean.lower().endswith("/v1"):
        clean = clean[: -len("/v1")].rstrip("/")
    return clean
