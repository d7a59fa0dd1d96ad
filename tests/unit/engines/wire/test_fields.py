"""JSON from strangers."""

import contextlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specdemo.engines.wire import fields
from specdemo.errors import EngineProtocolError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=15,
)


def test_what_the_strict_parser_refuses_is_repaired() -> None:
    """NaN reads as null; half a surrogate pair and broken UTF-8 read as U+FFFD."""
    assert fields.parse(b'{"a": NaN, "b": ["\\ud83c", "\\ud83c\\udf0d", {"k\\udf0d": 1}], "c": -Infinity}') == {
        "a": None, "b": ["\ufffd", "🌍", {"k\ufffd": 1}], "c": None,
    }  # fmt: skip
    assert fields.parse(b'"\xff\xfe"') == "\ufffd\ufffd"


@pytest.mark.parametrize("data", [b"", b"{", b"Internal Server Error", b"[" * 100_000, b"9" * 5000, b"\x00"])
def test_what_is_no_json_is_refused_with_an_excerpt(data: bytes) -> None:
    """Not JSON, nested too deep, a number too long: one short sentence."""
    with pytest.raises(EngineProtocolError) as caught:
        fields.parse(data)
    assert len(str(caught.value)) < 300


@given(JSON)
def test_any_json_can_be_encoded_again(value: object) -> None:
    """Whatever was parsed can go to a browser or a file."""
    json.dumps(fields.parse(json.dumps(value).encode()), ensure_ascii=False).encode()


@given(st.binary(max_size=200))
def test_any_bytes_parse_or_are_refused(data: bytes) -> None:
    """No other exception than ours."""
    with contextlib.suppress(EngineProtocolError):
        fields.parse(data)


def test_counts() -> None:
    """Whole numbers from 0 up; booleans, fractions, text and the absurd are none."""
    assert [fields.count(value) for value in (0, 7, 7.0)] == [0, 7, 7]
    assert [fields.count(value) for value in (True, -1, 7.5, math.nan, math.inf, "7", None, 2**60, 1e300, [1])] == [
        None
    ] * 10
    assert fields.counts([1, 2]) == (1, 2)
    strange: tuple[Any, ...] = ([1, True], [1, "2"], "12", None, [-1], {})
    assert [fields.counts(value) for value in strange] == [None] * 6


def test_numbers_mappings_texts() -> None:
    """Finite numbers, objects, strings."""
    assert [fields.number(value) for value in (1, -2.5)] == [1.0, -2.5]
    assert [fields.number(value) for value in (True, "1", None, math.nan, 10**400)] == [None] * 5
    assert fields.mapping({"a": 1}) == {"a": 1}
    strange: tuple[Any, ...] = (None, [], "x")
    assert [fields.mapping(value) for value in strange] == [{}] * 3
    assert [fields.text(value) for value in ("x", None, 1, ["x"])] == ["x", "", "", ""]


def test_excerpts_fit_on_one_line() -> None:
    """Control characters and line breaks never reach a message; long text is cut."""
    assert fields.excerpt("a\n\tb\x1b[31m c") == "a b [31m c"
    assert fields.excerpt(b"x" * 1000, 10) == "xxxxxxxxx…"


def test_a_byte_order_mark_is_no_part_of_json() -> None:
    """Some servers on Windows send one (A06)."""
    assert fields.parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("before", range(150, 201))
def test_secrets_are_masked_before_anything_is_cut(before: int) -> None:
    """No part of one is left at any cut, nor where white space is squeezed (C21)."""
    secret = "sk-0123456789"
    for text in ("x" * before + secret, " " * (4 * before) + secret):
        assert "sk" not in fields.excerpt(text, 200, lambda said: said.replace(secret, "***"))
        with pytest.raises(EngineProtocolError) as caught:
            fields.parse(text.encode(), lambda said: said.replace(secret, "***"))
        assert "sk" not in str(caught.value)
