"""The body of a reply that refuses: as much of it as there is, for the server's own words."""

from __future__ import annotations

import asyncio

import httpx

from specdemo.engines.http_errors import FOREIGN
from specdemo.engines.session import Feed, Reply, Session
from specdemo.engines.wire.fields import parse
from specdemo.errors import EngineError, EngineProtocolError

_BROKEN_OFF: tuple[type[Exception], ...] = (EngineError, TimeoutError, *FOREIGN)


async def refused(session: Session, response: httpx.Response) -> EngineError:
    """The error of an open reply that is not 200. What was read of its body is kept, whatever ended it."""
    limits, body = session.limits, bytearray()
    deadline = asyncio.get_running_loop().time() + limits.request_s
    try:
        feed = Feed(response, session.clock, limits.body_bytes)
        while len(body) < limits.error_bytes and (found := feed.plain(await feed.next(deadline))) is not None:
            body += b"".join(found)
    except _BROKEN_OFF:
        body = bytearray(up_to_a_word(bytes(body)))
    return session.error(Reply(response.status_code, response.headers, bytes(body[: limits.error_bytes])))


def up_to_a_word(body: bytes) -> bytes:
    """A body that broke off, without its last word, which may be half of a secret; whole where it is whole JSON."""
    try:
        parse(body)
    except EngineProtocolError:
        return body[: max(body.rfind(b" "), body.rfind(b"\n"), 0)]
    return body
