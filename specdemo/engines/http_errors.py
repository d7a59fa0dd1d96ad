"""Foreign errors → our error tree, in one table. A test fails if httpx has an exception that is not in it."""

from __future__ import annotations

import errno
import re
import ssl
from urllib.parse import unquote, urlsplit

import httpx

from specdemo.core.sentences import sentence
from specdemo.engines.wire.fields import excerpt, parse
from specdemo.engines.wire.problems import Mask, ServerError, server_error
from specdemo.errors import (
    EngineError,
    EngineInterrupted,
    EngineProtocolError,
    EngineRejected,
    EngineStalled,
    EngineUnavailable,
)

TABLE: dict[type[Exception], tuple[type[EngineError], str]] = {
    httpx.ConnectTimeout: (EngineUnavailable, "No connection to {where} in time; check address, port and firewall."),
    httpx.ConnectError: (EngineUnavailable, "Nobody answers at {where}; start the engine or check address and port."),
    httpx.PoolTimeout: (EngineUnavailable, "Too many requests to {where} are open; try again when some are done."),
    httpx.ReadTimeout: (EngineStalled, "The engine at {where} accepted the request but did not answer in time."),
    httpx.WriteTimeout: (EngineStalled, "The engine at {where} did not take the request in time."),
    httpx.TimeoutException: (EngineStalled, "The engine at {where} did not answer in time."),
    httpx.ReadError: (EngineInterrupted, "The connection to {where} broke while reading; look at the engine's log."),
    httpx.WriteError: (EngineInterrupted, "The connection to {where} broke while sending; look at the engine's log."),
    httpx.CloseError: (EngineInterrupted, "The connection to {where} broke while closing; look at the engine's log."),
    httpx.NetworkError: (EngineInterrupted, "The connection to {where} broke; look at the engine's log."),
    httpx.RemoteProtocolError: (EngineInterrupted, "{where} closed the connection too early; see the engine's log."),
    httpx.LocalProtocolError: (EngineProtocolError, "The request to {where} cannot be written; check key and address."),
    httpx.ProtocolError: (EngineProtocolError, "{where} does not speak proper HTTP; check the address."),
    httpx.ProxyError: (EngineUnavailable, "The proxy did not let the request to {where} through; check its settings."),
    httpx.UnsupportedProtocol: (EngineProtocolError, "{where} is not an http or https address."),
    httpx.TransportError: (EngineUnavailable, "The request to {where} did not get through."),
    httpx.DecodingError: (EngineProtocolError, "The reply of {where} is damaged."),
    httpx.TooManyRedirects: (EngineRejected, "{where} redirects in circles; check the address."),
    httpx.HTTPStatusError: (EngineRejected, "{where} refused the request."),
    httpx.RequestError: (EngineUnavailable, "The request to {where} did not get through."),
    httpx.HTTPError: (EngineUnavailable, "The request to {where} did not get through."),
    httpx.InvalidURL: (EngineProtocolError, "{where} is not an address that can be requested."),
    httpx.CookieConflict: (EngineProtocolError, "{where} sent cookies that contradict each other."),
    httpx.StreamConsumed: (EngineProtocolError, "The reply of {where} was read twice."),
    httpx.StreamClosed: (EngineInterrupted, "The reply of {where} was closed while it was read."),
    httpx.ResponseNotRead: (EngineProtocolError, "The reply of {where} was used before it was read."),
    httpx.RequestNotRead: (EngineProtocolError, "The request to {where} was used before it was read."),
    httpx.StreamError: (EngineProtocolError, "The reply of {where} could not be read."),
}
"""Each httpx exception; the nearest base class counts for those that are not in it."""

_WRONG_CERTIFICATE = frozenset({9, 10, 62, 64})
"""OpenSSL's numbers for not yet valid, expired, another host, another address: no authority's file helps there."""
_GATEWAY = frozenset({502, 504, *range(520, 525)})
"""What proxies say when the server behind them does not answer, a content network's own numbers among them."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL})
"""This machine has no file handle or port left for one more connection: not the engine's doing."""

FOREIGN: tuple[type[Exception], ...] = (httpx.HTTPError, httpx.InvalidURL, httpx.CookieConflict, httpx.StreamError)
"""What to catch around httpx."""


def translate(error: Exception, where: str) -> EngineError:
    """The EngineError for an httpx exception. ``where`` is an address without secrets."""
    cause = error.__cause__
    if isinstance(cause, ssl.SSLCertVerificationError):
        reason = excerpt(str(getattr(cause, "verify_message", "") or "unknown reason"), 80).rstrip(".")
        if getattr(cause, "verify_code", None) in _WRONG_CERTIFICATE:
            return EngineUnavailable(sentence("wrong_certificate", where=where, reason=reason))
        return EngineUnavailable(sentence("no_certificate", where=where, reason=reason))
    if isinstance(cause, OSError) and cause.errno in _EXHAUSTED:
        error = httpx.PoolTimeout("")
    # The greeting of TLS broken off: somebody listens there, who may expect http://.
    broken_off = isinstance(error, httpx.ConnectError) and type(cause) in (ConnectionResetError, ConnectionAbortedError)
    if isinstance(cause, ssl.SSLError) or (broken_off and where.startswith("https:")):
        return EngineUnavailable(sentence("no_tls", where=where))
    for kind in type(error).__mro__:
        if (found := TABLE.get(kind)) is not None:
            return found[0](found[1].format(where=where))
    return EngineError(f"The request to {where} failed ({type(error).__name__}).")


def status_error(status: int, body: bytes, location: str | None, where: str, mask: Mask = str) -> EngineError:
    """The EngineError for a reply that is not 200. The server's own words are kept, on one line.

    ``mask`` sees all of them before they are cut.
    """
    said = body_message(body, mask)
    tail = f': "{said.rstrip(".")}".' if said else "."
    if 300 <= status < 400:
        named = _place(location, mask) if location else ""
        if not named:
            return EngineRejected(sentence("redirects", where=where))
        return EngineRejected(sentence("redirects_to", where=where, target=named))
    if status in (401, 403):
        return EngineRejected(f"{where} refused the API key (HTTP {status}){tail}")
    if status == 404 and "model" not in said.lower():
        return EngineRejected(f"{where} has no such route (HTTP 404), so it may be no OpenAI-compatible server{tail}")
    if status == 429:
        return EngineRejected(f"{where} limits the rate of requests (HTTP 429){tail}")
    if status == 503:
        return EngineUnavailable(f"The engine at {where} takes no requests now (HTTP 503){tail}")
    if status in _GATEWAY:
        return EngineUnavailable(f"A proxy before {where} gets no answer from the engine (HTTP {status}){tail}")
    if status >= 500:
        return EngineError(f"The engine at {where} failed (HTTP {status}){tail}")
    return EngineRejected(f"The engine at {where} refused the request (HTTP {status}){tail}")


def _place(location: str, mask: Mask) -> str:
    """Where a redirect leads, without what may be secret there: no login, no query."""
    try:
        parts = urlsplit(location.strip())
    except ValueError:
        return ""
    path = parts.path
    if "@" in path:  # a login where the address is malformed
        path = f"…{path.rpartition('@')[2]}"
    if mask(unquote(path)) != unquote(path):
        path = "/…"
    host = parts.netloc.rpartition("@")[2]
    origin = f"{parts.scheme}://{host}" if parts.scheme and host else f"//{host}" if host else ""
    return excerpt(origin + path + ("?…" if parts.query else ""), 120, mask)


def in_band_error(error: ServerError, tokens: int, where: str, *, had_text: bool = False) -> EngineError:
    """The EngineError for an error inside a stream with HTTP 200, after ``tokens`` tokens or text without ids."""
    said = f'"{error.message.rstrip(".")}"'
    if tokens or had_text:
        received = count_words(tokens) if tokens else "part of the text"
        return EngineInterrupted(f"The engine at {where} failed after {received}: {said}.")
    if error.code == 503:
        return EngineUnavailable(f"The engine at {where} takes no requests now: {said}.")
    if error.code is not None and error.code >= 500:
        return EngineError(f"The engine at {where} failed: {said}.")
    return EngineRejected(f"The engine at {where} refused the request: {said}.")


def count_words(tokens: int) -> str:
    """``1 token``, ``5 tokens``."""
    return "1 token" if tokens == 1 else f"{tokens} tokens"


_TEXT = r'"\s*:\s*"([^"\\]*(?:\\.[^"\\]*)*)'
_IN_CUT_JSON = tuple(
    re.compile(pattern + _TEXT, re.DOTALL)
    for pattern in (r'"error"\s*:\s*\{[^{}]*?"(?:message|msg)', '"(?:message|msg)', '"(?:error|detail)')
)
_LONG_ENOUGH = 2000
"""Characters of a message without an end from which on its end is not shown; half a secret could stand there."""


def body_message(body: bytes, mask: Mask = str) -> str:
    """What an error body says, whatever its shape: an object, a string, plain text, or a web page (then its kind).

    Of JSON that was cut the message alone is looked for.
    """
    try:
        found = server_error(parse(body), mask)
    except EngineProtocolError:
        text = excerpt(body, 300, mask)
        if text.lower().startswith(("<!doctype", "<html")):
            return "a web page instead of an API reply"
        return (_in_cut_json(body, mask) if text.startswith(("{", "[")) else "") or text
    return "" if found is None else found.message


def _in_cut_json(body: bytes, mask: Mask) -> str:
    text = body.decode("utf-8", "replace")
    for pattern in _IN_CUT_JSON:
        found = pattern.search(text)
        if found is None or not found[1] or (found.end() == len(text) and len(found[1]) < _LONG_ENOUGH):
            continue
        try:
            said = parse(f'"{found[1]}"'.encode())
        except EngineProtocolError:
            said = found[1]
        return excerpt(str(said), 500, mask)
    return ""
