"""One streamed answer in the shapes that other servers give it."""

import json
from typing import Any

import pytest

from specdemo.core.events import Usage
from tests.unit.engines.wire.payloads import USAGE, chat, feed, plain


def test_text_in_parts() -> None:
    """Content as a list of parts is their text; a part without text is remarked."""
    reader, found = feed(chat([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], [1]), chat([], [2]))
    assert ([token.text for token in found], reader.remarks) == (["ab", ""], [])
    reader, found = feed(chat([{"type": "image"}, {"type": "text", "text": "a"}], [1]))
    assert ([token.text for token in found], len(reader.remarks)) == (["a"], 1)


def test_an_index_as_text() -> None:
    """ "0" is 0; what is no number is not read and remarked."""
    reader, found = feed({"choices": [{"index": "0", "text": "a"}]}, {"choices": [{"index": "x", "text": "b"}]})
    assert [token.text for token in found] == ["a"]
    assert "index is not a number" in reader.remarks[0][1]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content", "thinking", "reasoning_text"])
def test_reasoning_under_any_name(name: str) -> None:
    """No server's text before the answer is lost, whatever it calls the field (A21)."""
    reader, (token, last) = feed(chat("", [1], delta={name: "hm"}), chat("yes", [2], "stop"))
    assert (token.text, token.reasoning, last.text, reader.remarks) == ("", "hm", "yes", [])


def test_content_in_parts() -> None:
    """Text and reasoning in one list, each in its own channel; bare strings count, other types are named."""
    thinking = [{"type": "text", "text": "h"}, "m"]
    parts = [
        {"type": "thinking", "thinking": thinking},
        {"type": "text", "text": "ye"},
        "s",
        {"type": "reasoning", "text": "!"},
    ]
    reader, (token, second) = feed(chat(parts, [1, 2]), chat([{"thinking": "so"}], [3], "stop"))
    assert (token.text, token.reasoning, second.reasoning, reader.remarks) == ("yes", "hm!", "so", [])
    reader, (token,) = feed(chat([{"thinking": [{"thinking": [{"text": "x"}]}, 1]}, {"image": 1}, "y"]))
    assert (token.text, token.reasoning, len(reader.remarks)) == ("y", "", 1)


def test_a_finish_reason_that_says_none() -> None:
    """Some servers write "null" into every chunk; what follows is no surplus."""
    reader, found = feed(chat("a", [1], "null"), chat("b", [2], " None "), chat("c", [3], "stop"))
    assert ("".join(token.text for token in found), reader.finish_reason, reader.surplus) == ("abc", "stop", 0)


def test_an_empty_last_usage_takes_nothing_back() -> None:
    """Zeros after a count are no count; zeros alone are what the server says."""
    zeros = {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}}
    reader, _ = feed(plain("a", [1], "stop"), {"choices": [], "usage": USAGE}, zeros)
    assert reader.usage == Usage(3, 2, 1)
    assert feed(zeros)[0].usage == Usage(0, 0, None)


@pytest.mark.parametrize("end", ["[DONE]", " [DONE] ", '"[DONE]"', "[done]", "DONE", "\t[DONE]\r"])
def test_the_end_in_any_spelling(end: str) -> None:
    """A finished answer does not fail because its last line is spelt otherwise."""
    reader, _ = feed(plain("a", [1], "stop"), end)
    assert (reader.done, reader.error) == (True, None)


def test_a_whole_message_behind_its_pieces() -> None:
    """Some servers repeat the text in the last chunk: it is not shown twice; those that send nothing but messages are read."""
    whole = {"choices": [{"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}]}
    reader, found = feed(chat("a"), chat("b"), whole)
    assert ("".join(token.text for token in found), reader.finish_reason) == ("ab", "stop")
    first = {"choices": [{"index": 0, "message": {"content": "x"}}]}
    reader, found = feed(first, first, whole)
    assert "".join(token.text for token in found) == "xxab"


def cut(text: str, reason: str | None = None, logprobs: Any = None) -> str:
    """A chunk whose text may be half a character, written as servers write it."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason, "logprobs": logprobs}
    return json.dumps({"choices": [choice]})


def test_a_character_cut_between_chunks_is_whole() -> None:
    """Servers that count in UTF-16 cut an emoji in two; the halves meet again, in any number of texts (B01)."""
    tokens = [{"content": [{"token": half, "logprob": -1.0}]} for half in ("\ud83d", "\ude00!")]
    reader, found = feed(
        cut("a\ud83d", logprobs=tokens[0]),
        chat("", [1]),
        cut("\ude00!\ud83c", logprobs=tokens[1]),
        cut("\udf0d", "stop"),
    )
    assert "".join(token.text for token in found) == "a😀!🌍"
    assert found[2].logprobs is not None
    assert found[2].logprobs[0].text == "😀!"
    assert reader.remarks == []


@pytest.mark.parametrize(
    ("texts", "whole"),
    [
        (["a\ud83d", "b"], "ab"),  # no second half ever comes
        (["a", "\ude00b"], "a\ufffdb"),  # nor a first one
        (["a\\ud83d", "\\ude00"], "a\\ud83d\\ude00"),  # a backslash and letters
        (["\ud83d\ude00", "é"], "😀é"),
    ],
)
def test_halves_that_do_not_meet(texts: list[str], whole: str) -> None:
    """What is no pair stays apart, and text that only looks like one is left alone."""
    _, found = feed(*(cut(text) for text in texts))
    assert "".join(token.text for token in found) == whole
