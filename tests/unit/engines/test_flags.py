"""Flags that a user may pass through to vLLM, and those that stay with the supervisor."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.flags import ALLOWED, REFUSED, check_flag, parse_flags
from specdemo.errors import ConfigError


def test_forms() -> None:
    """Flags come as a mapping (settings) or as words (command line), in any usual spelling."""
    wanted = (("block-size", "32"), ("enable-chunked-prefill", ""), ("limit-mm-per-prompt", '{"image": 0}'))
    assert (
        parse_flags({"block_size": 32, "enable-chunked-prefill": True, "limit-mm-per-prompt": {"image": 0}}) == wanted
    )
    assert parse_flags(["--block-size=32", "enable-chunked-prefill", '--limit-mm-per-prompt {"image": 0}']) == wanted
    assert parse_flags({"enable-chunked-prefill": False, "block-size": None}) == ()
    assert parse_flags(["--no-enable-chunked-prefill"]) == (("no-enable-chunked-prefill", ""),)


@pytest.mark.parametrize("name", REFUSED)
def test_reserved_flags(name: str) -> None:
    """Host, port, names, keys, code and everything open belong to the supervisor: refused with the reason."""
    with pytest.raises(ConfigError, match=f"--{name} cannot be passed through: "):
        check_flag(name.replace("-", "_"), "x")


def test_the_lists_do_not_overlap() -> None:
    """No flag is both allowed and refused."""
    assert not set(ALLOWED) & set(REFUSED)


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("block-sise", "16", "not on the list of allowed flags. Did you mean `block-size`?"),
        ("block-size", "16; id", "must be a whole number"),
        ("block-size", "", "must be a whole number"),
        ("quantization", "$(id)", "must be one word"),
        ("quantization", "--host", "must be one word"),
        ("cpu-offload-gb", "-1", "must be a number"),
        ("enable-chunked-prefill", "yes", "must be a switch"),
        ("no-block-size", "", "so it has no --no-block-size"),
        ("compilation-config", "[1]", "must be a JSON object"),
        ("compilation-config.mode", "3", "not on the list"),
        ("", "", "not on the list"),
    ],
)
def test_mistakes(name: str, value: str, sentence: str) -> None:
    """An unknown flag gets the nearest right name; a value of the wrong form says what form it takes."""
    with pytest.raises(ConfigError) as caught:
        check_flag(name, value)
    assert sentence in str(caught.value)


@given(st.text(max_size=40), st.text(max_size=40))
def test_no_flag_slips_in(name: str, value: str) -> None:
    """Whatever is given, an accepted flag is on the list and its value cannot be read as another flag."""
    try:
        flag, checked = check_flag(name, value)
    except ConfigError:
        return
    assert flag.removeprefix("no-") in ALLOWED
    assert not checked.startswith("-")
