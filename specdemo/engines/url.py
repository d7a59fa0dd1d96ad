"""Base URLs as people write them → the API root (…/v1) and the server root beside it."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import httpx

from specdemo.errors import ConfigError

_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_HOST = re.compile(r"^(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?$", re.IGNORECASE)
_ENDPOINTS = ("/chat/completions", "/completions", "/models")
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

    def __str__(self) -> str:
        return self.root


def is_loopback(host: str) -> bool:
    """localhost, 127.0.0.0/8, ::1, and 0.0.0.0 or :: which people copy from server logs."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
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
    for endpoint in _ENDPOINTS:
        if clean.endswith("/v1" + endpoint):
            clean = clean.removesuffix(endpoint)
            break
    while clean.endswith("/v1"):
        clean = clean.removesuffix("/v1").rstrip("/")
    return clean
