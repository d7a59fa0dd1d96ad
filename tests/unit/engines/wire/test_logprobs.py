"""Log-probabilities in both shapes."""

from typing import Any

from specdemo.core.events import Side, TokenLogprob, TopToken
from specdemo.engines.wire.completions import CompletionReader
from specdemo.engines.wire.logprobs import logprobs, tagged_id


def test_chat_shape() -> None:
    """Entries of chat completions get the chunk's ids; alternatives keep their order."""
    value = {
        "content": [
            {
                "token": "a",
                "logprob": -0.5,
                "top_logprobs": [
                    {"token": "a", "logprob": -0.5},
                    {"token": "token_id:9", "logprob": -1},
                    {"token": "c"},
                ],
            }
        ]
    }
    assert logprobs(value, (7,)) == (
        TokenLogprob(7, "a", -0.5, (TopToken(None, "a", -0.5), TopToken(9, "token_id:9", -1.0))),
    )


def test_plain_shape() -> None:
    """Parallel lists of plain completions, also when they are too short."""
    value = {"tokens": ["token_id:3", "b"], "token_logprobs": [None], "top_logprobs": [{"token_id:4": -2.0, "x": None}]}
    assert logprobs(value, ()) == (
        TokenLogprob(3, "token_id:3", None, (TopToken(4, "token_id:4", -2.0),)),
        TokenLogprob(None, "b", None),
    )
    assert logprobs({"tokens": ["a"], "token_logprobs": 3, "top_logprobs": "x"}, (1,)) == (TokenLogprob(1, "a", None),)


def test_absent_and_impossible_values() -> None:
    """No entries give None; probabilities over 1 are no values; a rounding above is forgiven."""
    absent: tuple[Any, ...] = (None, [], "x", {}, {"content": []}, {"tokens": []}, {"tokens": None})
    assert [logprobs(value, ()) for value in absent] == [None] * 7
    found = logprobs({"content": [{"token": "a", "logprob": 0.5}, {"token": "b", "logprob": 1e-9}, 5]}, ())
    assert found is not None
    assert [entry.logprob for entry in found] == [None, 0.0, None]


def test_tagged_ids() -> None:
    """``token_id:N`` carries an id; anything else is text."""
    assert [tagged_id(value) for value in ("token_id:12", "token_id:", "token_id:x", "12", 12, None)] == [12] + [
        None
    ] * 5


def entry(value: float, *tops: float) -> dict[str, Any]:
    """One chat entry."""
    return {"token": "a", "logprob": value, "top_logprobs": [{"token": "t", "logprob": top} for top in tops]}


def values(*entries: dict[str, Any]) -> list[float | None]:
    """What a stream of one-token chunks with these entries reports."""
    reader = CompletionReader(Side.SPECULATIVE)
    found = []
    for item in entries:
        token = reader.take(
            {"choices": [{"delta": {"content": "a"}, "token_ids": [1], "logprobs": {"content": [item]}}]}, 0.0
        )
        assert token is not None
        assert token.logprobs is not None
        found.append(token.logprobs[0].logprob)
    return found


def test_zeros_that_mean_nothing() -> None:
    """A server that reports 0.0 for every token has no values (A18)."""
    assert values(entry(0.0), entry(0.0, 0.0, 0.0), entry(-0.0)) == [None, None, None]


def test_a_true_zero_is_kept() -> None:
    """Certainty shows by its alternatives, or once the server has shown real values."""
    assert values(entry(0.0, 0.0, -17.5), entry(0.0)) == [0.0, 0.0]
    assert values(entry(0.0), entry(-0.3), entry(0.0)) == [None, -0.3, 0.0]


def test_two_certain_tokens_at_once_are_no_values() -> None:
    """Zeros among real values are stripped all the same: two tokens cannot both have 100 % (A18)."""
    assert values(entry(-0.3, -0.3), entry(0.0, 0.0), entry(-0.3)) == [-0.3, 0.0, -0.3]
    two = {"tokens": ["a"], "token_logprobs": [0.0], "top_logprobs": [{"token_id:11": 0.0, "token_id:12": -0.0}]}
    assert logprobs(two, (11,)) == (TokenLogprob(11, "a", None),)
    later = {"token": "a", "logprob": 0.0, "top_logprobs": [{"token": name, "logprob": 0.0} for name in "ab"]}
    assert values(entry(-0.3, -0.3), later) == [-0.3, None]


def test_the_same_certain_token_twice_is_one() -> None:
    """A server may list the sampled token once more."""
    twice = {"token": "a", "logprob": 0.0, "top_logprobs": [{"token": "a", "logprob": 0.0}] * 2}
    assert values(entry(-0.3), twice) == [-0.3, 0.0]
