"""Base URLs as people write them."""

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.url import is_loopback, parse_base_url
from specdemo.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "api"),
    [
        ("host:8000", "http://host:8000/v1"),
        ("host", "http://host/v1"),
        ("//host:8000", "http://host:8000/v1"),
        ("http://h:8000", "http://h:8000/v1"),
        ("http://h:8000/", "http://h:8000/v1"),
        ("http://h:8000/v1", "http://h:8000/v1"),
        ("http://h:8000/v1/", "http://h:8000/v1"),
        ("http://h:8000//v1//", "http://h:8000/v1"),
        ("http://h:8000/v1/v1", "http://h:8000/v1"),
        ("http://h:8000/v1/chat/completions", "http://h:8000/v1"),
        ("http://h:8000/v1/completions/", "http://h:8000/v1"),
        ("http://h:8000/v1/models", "http://h:8000/v1"),
        ("http://h:8000/proxy/llm/v1", "http://h:8000/proxy/llm/v1"),
        ("http://h:8000/proxy/llm/", "http://h:8000/proxy/llm/v1"),
        ("https://h.example/v1", "https://h.example/v1"),
        ("HTTPS://H.Example", "https://h.example/v1"),
        ("  http://h:8000/v1 \n", "http://h:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://user:p%40ss@h:8000/v1", "http://h:8000/v1"),
        ("h:8000/chat/completions", "http://h:8000/v1"),
        ("h:8000/v1/chat", "http://h:8000/v1"),
        ("h:8000/v1/responses", "http://h:8000/v1"),
        ("h:8000/v1/embeddings/", "http://h:8000/v1"),
        ("h:8000/v1/models/org/name", "http://h:8000/v1"),
        ("h:8000/V1", "http://h:8000/v1"),
        ("h:8000/V1/Chat/Completions", "http://h:8000/v1"),
        ("h:8000/health", "http://h:8000/v1"),
        ("h:8000/metrics", "http://h:8000/v1"),
        ("h:8000/v1/metrics", "http://h:8000/v1"),
        ("h:8000/proxy/llm/v1/chat/completions", "http://h:8000/proxy/llm/v1"),
        ("h:8000/proxy/llm/tokenize", "http://h:8000/proxy/llm/v1"),
        ("h/v1/account/gateway/openai", "http://h/v1/account/gateway/openai/v1"),
        ("h/v1/llama/v1", "http://h/v1/llama/v1"),
        ("h/models/v1", "http://h/models/v1"),
        ("http:8000", "http://http:8000/v1"),
        ("http/llm", "http://http/llm/v1"),
        ("http://bücher.example:8000", "http://xn--bcher-kva.example:8000/v1"),
    ],
)
def test_every_usual_form(text: str, api: str) -> None:
    """Each form reaches one /v1; /metrics and /health lie beside it (B18)."""
    base = parse_base_url(text)
    assert (base.api, base.root) == (api, api.removesuffix("/v1"))
    assert str(base) == base.root


@pytest.mark.parametrize(
    "text",
    ["", "   ", "http://", "http://:8000", "ftp://h", "http://h:0", "http://h:99999", "http://h:x", "http://a b", "http://h?x=1", "http://h#x",
     "http://[::1", "http://[zz::1]:80", "::1", "http://-h", "http://h\\x", "http://h\x00", "http://" + "a" * 64 + ".x", "http://" + "ü" * 80,
     "http://" + ".".join(["abc"] * 70), "javascript://x", "http://h..x",
     "http:/h:8000", "HTTPS:/h", "http//h:8000", "http;//h", "http://http://h", "https://http//h", "http://h/http://x", "file:/etc/passwd",
     "h/v1/unheard-of"],
)  # fmt: skip
def test_bad_ones_get_one_sentence(text: str) -> None:
    """What cannot be an address is named, with an example of a right one or the part that is wrong (B18)."""
    with pytest.raises(ConfigError) as caught:
        parse_base_url(text)
    assert str(caught.value).startswith("The engine address")


def test_user_and_password_are_kept_apart() -> None:
    """They go into the request's header and are in no text (C21)."""
    base = parse_base_url("http://user:p%40ss@h:8000/v1")
    assert base.auth == ("user", "p@ss")
    assert parse_base_url("http://user@h").auth == ("user", "")
    assert base.with_login == "http://user:p%40ss@h:8000"
    assert parse_base_url("h").with_login == "http://h"
    assert "p@ss" not in f"{base!r} {base} {base.api} {base.root}"
    with pytest.raises(ConfigError) as caught:
        parse_base_url("http://user:secret-7@h:0")
    assert "secret-7" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "here"),
    [("localhost", True), ("Localhost.", True), ("a.localhost", True), ("127.0.0.1", True), ("127.9.9.9", True), ("::1", True),
     ("::ffff:127.0.0.1", True), ("0.0.0.0", True), ("::", True), ("10.0.0.5", False), ("localhost.example", False), ("127.1", True), ("2130706433", True),
     ("0x7f.1", True), ("017700000001", True), ("0", True), ("10.1", False), ("127.0.0.1.x", False), ("fe80::1%eth0", False)],
)  # fmt: skip
def test_loopback(host: str, here: bool) -> None:
    """What is this machine, for the rule that no proxy stands between (B19)."""
    assert is_loopback(host) is here


def test_keys_and_ports() -> None:
    """Two names of this machine are one place; ports follow the scheme."""
    assert parse_base_url("localhost:8000").key == parse_base_url("http://127.0.0.1:8000/v1").key
    assert (parse_base_url("h").port, parse_base_url("https://h").port) == (80, 443)
    assert parse_base_url("h:1").key != parse_base_url("h:2").key


@given(st.text(max_size=40) | st.from_regex(r"(https?://)?[a-z\[\]:@/.%0-9]{0,30}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No other exception; what is accepted can be requested."""
    try:
        base = parse_base_url(text)
    except ConfigError:
        return
    assert httpx.URL(base.api).host
    assert base.api == parse_base_url(base.api).api


def test_a_zone_is_written_in_either_way() -> None:
    """RFC 6874 escapes the percent sign of fe80::1%eth0 in a URL; a connection needs it bare."""
    for text in ("http://[fe80::1%25eth0]:8000", "http://[fe80::1%eth0]:8000/v1"):
        base = parse_base_url(text)
        assert (base.host, base.port) == ("fe80::1%eth0", 8000)
