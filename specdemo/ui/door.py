"""Who may come in: name and password, or a token; and under which host names this page answers."""

from __future__ import annotations

import base64
import binascii
import hmac
import ipaddress

from starlette.datastructures import Headers


class Door:
    """``auth`` is ``name:password``, ``token`` a bearer token; either opens, and neither set leaves the door open.

    ``hosts`` are the names in a request's Host header that are answered; None answers to any.
    """

    def __init__(self, auth: str | None = None, token: str | None = None, hosts: frozenset[str] | None = None) -> None:
        self._auth = auth.encode() if auth else None
        self._token = token.encode() if token else None
        self._hosts = hosts

    @property
    def locked(self) -> bool:
        """Whether anything must be shown at all."""
        return self._auth is not None or self._token is not None

    def opens(self, headers: Headers) -> bool:
        """Whether this request may come in."""
        if not self.locked:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        given = given.strip()
        if scheme.lower() == "bearer":
            return self._token is not None and hmac.compare_digest(given.encode(), self._token)
        if scheme.lower() != "basic" or self._auth is None:
            return False
        try:
            return hmac.compare_digest(base64.b64decode(given, validate=True), self._auth)
        except (binascii.Error, ValueError):
            return False

    def tried(self, headers: Headers) -> bool:
        """Whether something was shown: a browser's first request, without any, is no wrong password."""
        return bool(headers.get("authorization"))

    def answers_to(self, headers: Headers) -> bool:
        """Whether the page goes by the name that this request uses."""
        if self._hosts is None:
            return True
        name = host_name(headers.get("host", ""))
        return name in self._hosts or (LOCAL in self._hosts and is_local(name))


LOCAL = "*local*"
"""Among the names of a Door: an address, or a name that no stranger can point here."""


def host_name(host: str) -> str:
    """The name in a Host header, without port and brackets, in small letters."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].rstrip(".") if host.count(":") <= 1 else host


def is_local(name: str) -> bool:
    """An address as such, or a name that is this machine's by definition.

    A stranger's site may have a name that leads to this machine (DNS rebinding); it cannot have one of these.
    """
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name == "localhost" or name.endswith((".localhost", ".local", ".internal")) or "." not in name
    return True
