"""Foreign errors and statuses become our own, all of them."""

import inspect
import ssl

import httpx
import pytest

from specdemo.core.events import Side
from specdemo.engines.http_errors import FOREIGN, TABLE, body_message, in_band_error, status_error, translate
from specdemo.engines.notes import failure
from specdemo.engines.wire.completions import ServerError
from specdemo.errors import EngineError, EngineInterrupted, EngineProtocolError, EngineRejected, EngineUnavailable

WHERE = "http://h:8000"
HTTPX = [kind for _, kind in inspect.getmembers(httpx, inspect.isclass) if issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", HTTPX, ids=lambda kind: kind.__name__)
def test_the_table_is_complete(kind: type[Exception]) -> None:
    """Every exception that httpx exports has its own row and is caught (rule: one table)."""
    assert kind in TABLE
    assert issubclass(kind, FOREIGN)


@pytest.mark.parametrize("kind", list(TABLE), ids=lambda kind: kind.__name__)
def test_each_row_makes_one_sentence(kind: type[Exception]) -> None:
    """The sentence names the place and ends in a full stop."""
    error = translate(kind.__new__(kind), WHERE)
    assert type(error) is TABLE[kind][0]
    assert WHERE in str(error)
    assert str(error).endswith(".")


def test_unknown_and_derived_exceptions() -> None:
    """A subclass takes its parent's row; anything else still becomes an EngineError."""

    class Special(httpx.ConnectError):
        pass

    assert type(translate(Special("x"), WHERE)) is EngineUnavailable
    assert type(translate(RuntimeError("x"), WHERE)) is EngineError


def test_certificates() -> None:
    """A certificate that is not trusted, and TLS where there is none, are told apart from a dead port."""
    untrusted = httpx.ConnectError("x")
    untrusted.__cause__ = ssl.SSLCertVerificationError(1, "self-signed")
    assert "CA file" in str(translate(untrusted, WHERE))
    plain = httpx.ConnectError("x")
    plain.__cause__ = ssl.SSLError(1, "wrong version number")
    assert "https://" in str(translate(plain, WHERE))


@pytest.mark.parametrize(
    ("status", "body", "kind", "part"),
    [
        (
            400,
            b'{"error":{"message":"The min_p sampling parameter is not supported.","code":400}}',
            EngineRejected,
            "min_p",
        ),
        (401, b'{"error":"Unauthorized"}', EngineRejected, "API key"),
        (403, b"", EngineRejected, "API key"),
        (404, b'{"detail":"Not Found"}', EngineRejected, "no such route"),
        (404, b'{"error":{"message":"The model `x` does not exist."}}', EngineRejected, "model `x`"),
        (429, b'{"message":"slow down"}', EngineRejected, "slow down"),
        (500, b'{"error":{"message":"EngineCore encountered an issue."}}', EngineError, "EngineCore"),
        (502, b"<html><body>Bad gateway", EngineUnavailable, "a web page instead"),
        (503, b"", EngineUnavailable, "takes no requests now"),
        (422, b'{"detail":[{"msg":"field required"}]}', EngineRejected, "field required"),
        (418, b"[1]", EngineRejected, "HTTP 418"),
    ],
)
def test_statuses(status: int, body: bytes, kind: type[EngineError], part: str) -> None:
    """Each status has its class, and the server's own words are kept."""
    error = status_error(status, body, None, WHERE)
    assert type(error) is kind
    assert part in str(error)
    assert ".." not in str(error)


def test_redirects_are_named_not_followed() -> None:
    """Following one could lead anywhere; the final address is asked for."""
    assert "http://elsewhere" in str(status_error(307, b"", "http://elsewhere/v1", WHERE))
    assert "redirects;" in str(status_error(302, b"", None, WHERE))


def test_errors_inside_a_stream() -> None:
    """Before the first token it is a refusal, after it an interruption (A23, B11)."""
    assert type(in_band_error(ServerError("no", 400), 0, WHERE)) is EngineRejected
    assert type(in_band_error(ServerError("no"), 0, WHERE)) is EngineRejected
    assert type(in_band_error(ServerError("dead", 500), 0, WHERE)) is EngineError
    assert type(in_band_error(ServerError("busy", 503), 0, WHERE)) is EngineUnavailable
    after = in_band_error(ServerError("dead.", 500), 1, WHERE)
    assert type(after) is EngineInterrupted
    assert 'after 1 token: "dead".' in str(after)


def test_kinds_of_failures() -> None:
    """Each error has its failure kind; the base class is "error"."""
    kinds = [
        failure(Side.STANDARD, 0.0, error).kind
        for error in (EngineError("x"), EngineProtocolError("x"), EngineRejected("x"))
    ]
    assert kinds == ["error", "protocol", "rejected"]


def test_bodies_without_words() -> None:
    """Nothing to say is nothing said."""
    assert [body_message(body) for body in (b"", b"{}", b"[]", b"5", b'{"message":7}')] == [""] * 5
