"""What servers say instead of an answer, in all the shapes seen in the wild: inside a stream, or as a body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specdemo.engines.wire import fields

Mask = Callable[[str], str]
SPEECHLESS = "an error without a message"
_LONGEST = 500
_DEEPEST = 6
_MOST = 20
_STATUS_DIGITS = 3
_TELLING = ("message", "msg", "error_message", "error_msg", "errorMessage", "errmsg", "Message", "faultstring")
"""Names under which an error's text stands; the longer ones are those of clouds and gateways."""
_SAYING = (*_TELLING, "error", "errors", "detail", "title", "reason", "description", "fault")
_CODES = ("code", "status_code", "status", "error_code", "statusCode")
_FAILING = ("abort", "cancel", "error", "fail", "insufficient", "interrupt")


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error inside the stream or in a body. ``code`` is its HTTP-like code if it has one."""

    message: str
    code: int | None = None


def gave_up(reason: str) -> bool:
    """Whether a finish reason means that the answer was broken off: abort, cancelled, error, server_error …"""
    plain = reason.strip().lower()
    return plain.startswith(_FAILING) or plain.endswith(("error", "timeout"))


def server_error(payload: Any, mask: Mask = str) -> ServerError | None:
    """The error that a payload carries, None if it carries none. ``mask`` sees the whole message before it is cut."""
    if type(payload) is str:
        return ServerError(fields.excerpt(payload, _LONGEST, mask) or "an empty message")
    if type(payload) is list:
        inside = (server_error(item, mask) for item in payload[:_MOST] if type(item) is dict)
        return next((error for error in inside if error is not None), None)
    return None if type(payload) is not dict else _of_object(payload, mask)


def choice_error(choice: dict[str, Any], mask: Mask = str) -> ServerError | None:
    """An error inside a choice, or in place of its finish reason (``{"type": "abort", "message": …}``)."""
    if found := choice.get("error"):
        return said_error(found, choice, mask)
    reason = choice.get("finish_reason")
    if type(reason) is not dict:
        return None
    kind = reason.get("type")
    if type(kind) is str and not gave_up(kind):
        return None
    return said_error(reason, choice, mask) if type(kind) is str or _words(reason, 0) else None


def _of_object(payload: dict[str, Any], mask: Mask) -> ServerError | None:
    found: Any = payload.get("error") or payload.get("errors") or payload.get("fault")
    if not found and "error" in (payload.get("object"), payload.get("type")):
        found = payload
    if not found and "choices" not in payload:
        found = payload.get("detail")
        if not found and (_told(payload) or payload.get("error_code")):
            found = payload
        if not found and any(type(payload.get(name)) in (dict, list, str) for name in ("error", "errors")):
            return ServerError(SPEECHLESS, _code(payload))  # {"error": {}}: the name alone says it
    return said_error(found, payload, mask) if found else None


def said_error(found: Any, around: dict[str, Any], mask: Mask) -> ServerError:
    """``found`` as an error; its code may stand ``around`` it."""
    said = _words(found, 0) or _told(around) or (str(found) if found else SPEECHLESS)
    return ServerError(fields.excerpt(said, _LONGEST, mask) or SPEECHLESS, _code(fields.mapping(found), around))


def _told(payload: dict[str, Any]) -> str:
    """The text right beside an error that has none itself: ``{"error": true, "message": …}``."""
    names = (*_TELLING, "text") if payload.get("error_code") else _TELLING
    return next((said for name in names if type(said := payload.get(name)) is str and said), "")


def _code(*owners: dict[str, Any]) -> int | None:
    """The first HTTP-like code that one of them names, as a number or in text."""
    codes = (_number(owner.get(name)) for owner in owners for name in _CODES)
    return next((code for code in codes if code is not None), None)


def _number(value: Any) -> int | None:
    if type(value) is str and len(value) == _STATUS_DIGITS and value.isascii() and value.isdecimal():
        return int(value)
    return fields.count(value)


def _words(value: Any, depth: int) -> str:
    """The text inside ``value``, wherever it stands; "" if there is none."""
    if type(value) is str:
        return value
    if depth > _DEEPEST or type(value) not in (list, dict):
        return ""
    if type(value) is list:
        return "; ".join(filter(None, (_words(item, depth + 1) for item in value[:_MOST])))
    said = next((said for name in _SAYING if name in value and (said := _words(value[name], depth + 1))), "")
    where = value.get("loc")  # which field a validation error is about
    if said and type(where) is list:
        named = ".".join(str(part) for part in where[:_MOST] if type(part) in (str, int))
        return f"{named}: {said}" if named else said
    return said
