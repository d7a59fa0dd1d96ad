"""Logins and keys inside addresses: in no shown text, in whatever form (C21)."""

from __future__ import annotations

import pytest

from specdemo.core.masking import address_secrets, is_secret_name, login_forms, masked


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:pw@host/v1", "http://***@host/v1"),
        ("user:secret99@host:8000", "***@host:8000"),
        ("  user:secret99@host:8000 ", "  ***@host:8000 "),
        ("http://user:p@ssw0rd@host", "http://***@host"),
        ("user:p@ss//w0rd@host", "***@host"),
        ("//user:pw@host", "//***@host"),
        ("http:/user:pw@host", "***@host"),
        ("http://token@host", "http://***@host"),
        ("token@host:8000", "***@host:8000"),
        ('http://user:p"w<@host', "http://***@host"),
        ("http://u:p%40ss%2Fword9@host", "http://***@host"),
        ("http://h/v1?api_key=s3cret&n=1&access_token=t0ken", "http://h/v1?api_key=***&n=1&access_token=***"),
        ("http://h/v1#key=s3cret", "http://h/v1#key=***"),
        ("http://h/v1?x=sk-test-123", "http://h/v1?x=***"),
        ("GET user:pw@host and http://u:p@ss@h ok", "GET ***@host and http://***@h ok"),
        ("--base-url=https://me:pw@host/v1", "--base-url=https://***@host/v1"),
        ("--base-url=me:pw@host", "--base-url=***@host"),
        ("login=(me:pw@host) twice", "login=(***@host) twice"),
        ('{"a": "user:pw@host", "b": "http://u:p@h"}', '{"a": "***@host", "b": "http://***@h"}'),
    ],
)
def test_no_login_and_no_key_is_left(text: str, shown: str) -> None:
    """Up to the last "@", with or without a scheme, alone or in a sentence, and the query's secrets."""
    assert masked(text, "***") == shown


@pytest.mark.parametrize(
    "text",
    ["", "http://h:8000/v1", "[::1]:8000", "/models/a@b", "org/model@main", "ann@example.org wrote", "12:30:00 done",
     "git@host:x/y is a path", "http://h/v1?n=5&model=m"],
)  # fmt: skip
def test_ordinary_text_stays(text: str) -> None:
    """What holds no secret is shown as it is."""
    assert masked(text) == text


@pytest.mark.parametrize(
    ("address", "secrets"),
    [
        ("http://user:p%40ss%2Fword9@h", {"p%40ss%2Fword9", "p@ss/word9", "p%40ss%2fword9", "dXNlcjpwQHNzL3dvcmQ5"}),
        ("user:p@ss@h:8000", {"p@ss", "p%40ss"}),
        ("http://token7@h", {"token7"}),
        ("http://h?api_key=a%2Bb&n=1", {"a+b", "a%2Bb"}),
    ],
)
def test_secrets_of_an_address_in_every_form(address: str, secrets: set[str]) -> None:
    """A server may repeat a password plainly, percent-encoded, or as the header carries it."""
    assert secrets <= set(address_secrets(address))


def test_an_address_without_secrets() -> None:
    """Nothing is taken for one, and what is no address breaks nothing."""
    assert address_secrets("http://h:8000/v1?n=1") == ()
    assert address_secrets("http://[::1") == ()
    assert login_forms("", "") == (login_forms("", "")[0],)


def test_names_of_secrets() -> None:
    """A key or token by its last word; a tokenizer and a number of tokens are none."""
    assert all(map(is_secret_name, ("--api-key", "hf-token", "hf_token", "token", "ssl-keyfile-password")))
    assert not any(map(is_secret_name, ("tokenizer", "max-num-batched-tokens", "--model")))
