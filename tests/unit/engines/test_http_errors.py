"""Foreign errors and statuses become our own, all of them."""

import errno
import inspect
import json
import socket
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
    ("code", "said", "advice"),
    [(10, "certificate has expired", "correct the address"), (62, "Hostname mismatch, not valid for 'h'.", "correct the"),
     (18, "self-signed certificate", "CA file"), (20, "unable to get local issuer certificate", "CA file")],
)  # fmt: skip
def test_advice_by_what_is_wrong_with_a_certificate(code: int, said: str, advice: str) -> None:
    """A certificate authority's file helps against an unknown issuer alone."""
    error, cause = httpx.ConnectError("x"), ssl.SSLCertVerificationError(1, "verify failed")
    cause.verify_code, cause.verify_message = code, said
    error.__cause__ = cause
    text = str(translate(error, "https://h:1"))
    assert advice in text
    assert ".)" not in text


@pytest.mark.parametrize("cause", [ConnectionResetError(104, "x"), ConnectionAbortedError("SSL handshake")])
def test_a_greeting_that_is_broken_off(cause: OSError) -> None:
    """Somebody listens where TLS is not understood: then the engine need not be started."""
    error = httpx.ConnectError("x")
    error.__cause__ = cause
    assert "http:// or https://" in str(translate(error, "https://h:1"))
    assert "Nobody answers" in str(translate(error, "http://h:1"))
    reading = httpx.ReadError("x")
    reading.__cause__ = cause
    assert "broke while reading" in str(translate(reading, "https://h:1"))


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL])
def test_a_client_that_is_at_its_own_limit(number: int) -> None:
    """No file handle or port left here is not the engine's absence; a name that is not found is."""
    error = httpx.ConnectError("x")
    error.__cause__ = OSError(number, "too many")
    assert "are open" in str(translate(error, WHERE))
    error.__cause__ = socket.gaierror(socket.EAI_NONAME, "unknown")
    assert "Nobody answers" in str(translate(error, WHERE))


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
        (524, b"error code: 524", EngineUnavailable, "A proxy before"),
        (529, b"", EngineError, "HTTP 529"),
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


KEY = "sk-" + "0123456789abcdefghijklmnopqrstuvwxyzABCDE"


def hidden(text: str) -> str:
    """As a session masks."""
    return text.replace(KEY, "***")


@pytest.mark.parametrize("before", [200, 230, 260, 280, 299, 430, 460, 490, 499])
def test_no_part_of_a_key_is_left_at_a_cut(before: int) -> None:
    """A refusal that repeats the key, as JSON, as text and in cut JSON (C21)."""
    said = "x" * before + f" Incorrect API key provided: {KEY}"
    for body in (
        said,
        json.dumps({"error": {"message": said}}),
        json.dumps({"message": said}),
        f'{{"message": "{said}"',
    ):
        assert KEY[:4] not in str(status_error(401, body.encode(), None, WHERE, hidden))


@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("https://other:8443/v1/models", " to https://other:8443/v1/models;"),
        ("http://user:s3cret@other/v1", " to http://other/v1;"),
        ("http://user:p%40ss%2Fword9@other/v1", " to http://other/v1;"),
        ("http://a@b:s3cret@other/v1", " to http://other/v1;"),
        ("http:user:s3cret@other/v1", " to …other/v1;"),
        ("//user:s3cret@other/v1", " to //other/v1;"),
        ("/login", " to /login;"),
        (f"http://other/v1?key={KEY}", " to http://other/v1?…;"),
        (f"http://other/{'x' * 95}?key={KEY}", "?…;"),
        (f"http://other/{'x' * 95}/{KEY}/", "/…;"),
        (f"http://other/v1/{KEY.replace('-', '%2D')}/x", " to http://other/…;"),
        ("http://[bad", " redirects;"),
        ("?", " redirects;"),
    ],
)
def test_a_redirect_shows_no_secret(location: str, shown: str) -> None:
    """Neither login nor query of the place are told, nor a key in its path (C21)."""
    said = str(status_error(307, b"", location, WHERE, hidden))
    assert shown in said
    assert not any(secret in said for secret in (KEY[:6], KEY[-6:], "s3cret", "p%40", "word9"))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"errors":[{"message":"no min_p"}]}', "no min_p"),
        (b'[{"error":{"message":"no min_p"}}]', "no min_p"),
        (b'{"msg":"no min_p"}', "no min_p"),
        (b'{"detail":[{"msg":"no min_p"}]}', "no min_p"),
        (b'\xef\xbb\xbf{"message":"no min_p"}', "no min_p"),
        (b'{"message":"no min_p","limit":NaN}', "no min_p"),
        (b'{"message":"no \\ud800 min_p"}', "no \ufffd min_p"),
        (b'{"error":{"message":"no min_p","input":"' + b"x" * 90_000, "no min_p"),
        (b'{"input":{"message":"mine"},"error":{"code":400,"message":"no \\"min_p\\"","input":"x', 'no "min_p"'),
        (b'{"detail":"no min_p","input":"' + b"x" * 900, "no min_p"),
        (b'{"message":"no\\q min_p","input":"x', "no\\q min_p"),
        (b'{"message":"half of it', '{"message":"half of it'),
        (b'{"message":"' + b"x" * 3000, "x" * 499 + "\u2026"),
    ],
)
def test_messages_of_bodies_in_any_shape(body: bytes, said: str) -> None:
    """The server's words are found, also in JSON that was cut (A06)."""
    assert body_message(body) == said


def test_an_error_after_text_without_ids() -> None:
    """It is an interruption, not a refusal: something was received (B11)."""
    error = in_band_error(ServerError("dead"), 0, WHERE, had_text=True)
    assert type(error) is EngineInterrupted
    assert "after part of the text" in str(error)
