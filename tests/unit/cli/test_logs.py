"""Logging of commands: no secret in any line."""

from __future__ import annotations

import io
import json
import logging
import sys
from pathlib import Path

import pytest

from specdemo.cli.logs import MaskingFormatter, secrets_of, set_up
from specdemo.settings import load


def record(message: str, *arguments: object, exc: BaseException | None = None) -> logging.LogRecord:
    info = (type(exc), exc, exc.__traceback__) if exc else None
    return logging.LogRecord("specdemo", logging.INFO, "x.py", 1, message, arguments, info)


@pytest.mark.parametrize(
    "text,hidden",
    [
        ("key is sk-test-123", "sk-test-123"),
        ("Authorization: Bearer abcdef.ghi", "abcdef.ghi"),
        ("GET http://user:pw@host/v1", "user:pw"),
        ("token hf_ABCDEFGHIJ", "hf_ABCDEFGHIJ"),
        ("asking user:secret99@host:8000", "secret99"),
        ("asking http://user:p@ssw0rd@host", "ssw0rd"),
        ("asking http://h/v1?api_key=abc.def", "abc.def"),
        ("Bearer abcd$efgh", "efgh"),
        ("login hunter22 done", "hunter22"),
    ],
)
def test_secrets_are_masked(text: str, hidden: str) -> None:
    """C21: known secrets, and what looks like one, are masked wherever they stand in a line."""
    formatter = MaskingFormatter(["hunter22"])

    for line in (record(text), record("%s", text), record("x", exc=ValueError(text))):
        assert hidden not in formatter.format(line)
        assert "********" in formatter.format(line)


def test_short_words_stay_readable() -> None:
    """A secret of a few letters is not cut out of every word that holds it."""
    assert MaskingFormatter(["a"]).format(record("a plain line")).endswith("a plain line")


def test_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All logging goes to stderr, at the level of the settings, and talkative libraries are quietened."""
    environ = {"SPECDEMO_LOG_LEVEL": "warning", "SPECDEMO_STANDARD__API_KEY": "topsecretkey"}
    settings = load(environ=environ, folder=tmp_path).settings
    root, heard = logging.getLogger(), io.StringIO()
    before = (root.handlers[:], root.level)
    monkeypatch.setattr(sys, "stderr", heard)
    try:
        set_up(settings)
        logging.getLogger("specdemo.test").info("too quiet")
        logging.getLogger("httpx").info("too talkative")
        logging.getLogger("specdemo.test").warning("with topsecretkey inside")
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])

    assert heard.getvalue().endswith("WARNING specdemo.test: with ******** inside\n")
    assert heard.getvalue().count("\n") == 1


def test_all_secrets_of_the_settings(tmp_path: Path) -> None:
    """Keys of both sides, the login and its password alone are known as secrets."""
    environ = {
        "SPECDEMO_STANDARD__API_KEY": "k1",
        "SPECDEMO_SPECULATIVE__API_KEY": "k2",
        "SPECDEMO_SERVER__AUTH": "ann:pw12",
    }

    assert secrets_of(load(environ=environ, folder=tmp_path).settings) == ("k1", "k2", "ann:pw12", "pw12")


def test_logins_inside_addresses_are_secrets(tmp_path: Path) -> None:
    """C21: the passwords of both engines' addresses and of the database, plain, encoded and as headers carry them."""
    environ = {
        "SPECDEMO_STANDARD__BASE_URL": "http://user:p%40ss%2Fword9@h",
        "SPECDEMO_SPECULATIVE__BASE_URL": "user:secret99@h:8000",
        "SPECDEMO_STORE__URL": "postgresql://ann:data base@h/runs",
        "SPECDEMO_SERVER__TOKEN": "a token/with+marks",
    }
    formatter = MaskingFormatter(secrets_of(load(environ=environ, folder=tmp_path).settings))
    said = "p%40ss%2Fword9 p@ss/word9 secret99 dXNlcjpzZWNyZXQ5OQ== data base a%20token%2Fwith%2Bmarks"

    assert formatter.mask(said) == " ".join(["********"] * 6)


def test_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As JSON each record is one line: time, level, logger, message and extra facts, masked like text, tracebacks too."""
    environ = {"SPECDEMO_LOG_FORMAT": "json", "SPECDEMO_SERVER__TOKEN": 'top"secret"token'}
    root, heard = logging.getLogger(), io.StringIO()
    before = (root.handlers[:], root.level)
    monkeypatch.setattr(sys, "stderr", heard)
    try:
        set_up(load(environ=environ, folder=tmp_path).settings)
        logging.getLogger("specdemo.test").info(
            "run ended: %s", "stopped", extra={"event": "run_ended", "seconds": 1.5}
        )
        try:
            raise ValueError("Bearer abcdefgh and\nnext line")
        except ValueError:
            logging.getLogger("specdemo.test").exception('with top"secret"token')
    finally:
        root.handlers[:] = before[0]
        root.setLevel(before[1])
    first, second = (json.loads(line) for line in heard.getvalue().splitlines())
    assert (first["event"], first["seconds"], first["level"], first["logger"]) == (
        "run_ended",
        1.5,
        "INFO",
        "specdemo.test",
    )
    assert first["message"] == "run ended: stopped"
    assert first["time"].endswith("Z")
    assert "secret" not in heard.getvalue()
    assert "abcdefgh" not in second["exc_info"]
