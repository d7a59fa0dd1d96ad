"""One streamed answer: payloads in, tokens out."""

import json
from typing import Any

import pytest

from specdemo.core.events import RequestSpeculation, ServerTimings, Side, Tokens, Usage
from specdemo.engines.wire.completions import CompletionReader, ServerError, server_error
from specdemo.errors import EngineProtocolError
from tests.unit.engines.wire.payloads import USAGE, chat, feed, plain


def test_a_chat_as_vllm_sends_it() -> None:
    """Role chunk, bursts, finish, usage with metrics, done: all of it arrives, stamped with its own time."""
    reader, found = feed(
        {"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}], "prompt_token_ids": [1, 2, 3]},
        chat("你好", [7, 8]),
        chat("", [2], "stop", choice={"stop_reason": 2}),
        {
            "choices": [],
            "usage": USAGE,
            "metrics": {
                "speculative_decoding": {
                    "num_spec_steps": 1, "num_draft_tokens": 4, "num_accepted_draft_tokens": 1, "num_spec_tokens": 4,
                    "acceptance_histogram": [0, 1, 0, 0, 0], "per_step_accepted": [1], "per_step_drafted": None,
                },
                "time_to_first_token_ms": 20.0, "generation_time_ms": 100, "queue_time_ms": None, "mean_itl_ms": 50,
                "tokens_per_second": 12.5,
            },
        },
        "[DONE]",
    )  # fmt: skip
    assert found == [
        Tokens(Side.STANDARD, 0.0),
        Tokens(Side.STANDARD, 1.0, (7, 8), "你好"),
        Tokens(Side.STANDARD, 2.0, (2,), "", pieces=("",)),
    ]
    assert (reader.done, reader.finished, reader.finish_reason, reader.stop_reason) == (True, True, "stop", 2)
    assert (reader.last_at, reader.token_count, reader.had_ids, reader.prompt_token_ids) == (2.0, 3, True, (1, 2, 3))
    assert reader.usage == Usage(3, 2, 1)
    assert reader.speculation == RequestSpeculation(1, 4, 1, 4, (0, 1, 0, 0, 0), (1,), None)
    assert reader.timings == ServerTimings(0.02, 0.1, None, 0.05, 12.5)
    assert reader.remarks == []


def test_a_plain_completion() -> None:
    """Text and prompt ids sit in the choice; usage may be in the finishing chunk."""
    reader, found = feed(
        {"choices": [{"index": 0, "text": "a", "token_ids": [5], "prompt_token_ids": [9], "finish_reason": None}]},
        plain("b", [6], "length", usage=USAGE),
        "[DONE]  ",
    )
    assert [(token.text, token.ids, token.reported_total) for token in found] == [("a", (5,), None), ("b", (6,), 2)]
    assert (reader.prompt_token_ids, reader.finish_reason, reader.usage, reader.done) == (
        (9,),
        "length",
        Usage(3, 2, 1),
        True,
    )


def test_empty_choices_and_null_content() -> None:
    """Chunks without choices and null texts are no tokens and no error (B08, B09)."""
    reader, found = feed(
        {"choices": []},
        {"choices": None, "usage": None},
        chat(None, delta={"role": "assistant"}),
        chat(None, None, "stop"),
    )
    assert [(token.text, token.ids) for token in found] == [("", ()), ("", ())]
    assert (reader.remarks, reader.finished, reader.had_text) == ([], True, False)


def test_usage_is_replaced_never_summed() -> None:
    """Usage in every chunk, twice, or only at the end counts once (B25)."""
    running = [plain("a", [1], usage={"prompt_tokens": 3, "completion_tokens": n}) for n in (1, 2, 60)]
    reader, found = feed(*running, {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 60}})
    assert reader.usage == Usage(3, 60)
    assert [token.reported_total for token in found] == [1, 2, 60]


@pytest.mark.parametrize("name", ["reasoning", "reasoning_content"])
def test_reasoning_beside_content(name: str) -> None:
    """One chunk may end the thinking and begin the answer; neither is lost (A21)."""
    _, found = feed(chat(None, [1], delta={name: " so"}), chat("The", [2, 3], delta={name: " ok."}), chat(" end", [4]))
    assert [(token.reasoning, token.text) for token in found] == [(" so", ""), (" ok.", "The"), ("", " end")]
    assert [token.pieces for token in found] == [None, None, (" end",)]


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"error": {"message": "min_p is not supported.", "code": 400}}, ServerError("min_p is not supported.", 400)),
        ({"error": "Unauthorized"}, ServerError("Unauthorized")),
        ({"error": {"message": {"deep": 1}, "code": "x"}}, ServerError("{'message': {'deep': 1}, 'code': 'x'}")),
        ({"error": ["a", 1]}, ServerError("a")),
        ({"error": {"error": "inner"}}, ServerError("inner")),
        ({"object": "error", "message": "old style", "code": 500}, ServerError("old style", 500)),
        ({"detail": "Not Found"}, ServerError("Not Found")),
        ({"detail": [{"msg": "field required"}]}, ServerError("field required")),
        ({"choices": [], "error": {"message": "boom"}}, ServerError("boom")),
        ("just text", ServerError("just text")),
        ("", ServerError("an empty message")),
    ],
)
def test_errors_in_every_shape(payload: Any, error: ServerError) -> None:
    """An error inside the stream is found whatever its shape (B11)."""
    reader, found = feed(chat("a", [1]), payload if isinstance(payload, dict) else json.dumps(payload))
    assert (reader.error, len(found)) == (error, 1)


def test_no_error_where_there_is_none() -> None:
    """A null error, details beside choices, and things that are no objects."""
    assert [server_error(value) for value in ({"error": None}, {"choices": [], "detail": "x"}, 5, None)] == [None] * 4
    reader, found = feed(chat("a", [1], error=None), "17", "null", "[1]")
    assert (reader.error, [token.text for token in found]) == (None, ["a"])
    assert len(reader.remarks) == 3


def test_the_first_error_stays() -> None:
    """A second error does not hide the first."""
    reader, _ = feed({"error": "first"}, {"error": "second"})
    assert reader.error == ServerError("first")


def test_what_is_no_json_is_refused() -> None:
    """Text that is no JSON is an error of the protocol with what came instead."""
    with pytest.raises(EngineProtocolError, match="Internal Server Error"):
        feed("Internal Server Error")
    with pytest.raises(EngineProtocolError):
        feed("[DONE]x")


WRONG = [True, 7, -1, 2.5, "x", [], [None], [[]], {}, {"a": 1}]
FIELDS = ["choices", "usage", "metrics", "prompt_token_ids", "delta", "message", "content", "text", "reasoning", "token_ids", "finish_reason",
          "stop_reason", "logprobs", "index", "choice", "speculative_decoding", "top"]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", WRONG, ids=str)
def test_wrong_types_never_crash(field: str, value: Any) -> None:
    """A field of the wrong type counts as absent; what stands beside it is still read (issue: wrong types)."""
    choice: Any = {"index": 0, "delta": {"content": "a", "reasoning": "r"}, "token_ids": [1], "finish_reason": None}
    payload: Any = {"choices": [choice], "usage": USAGE}
    if field in {"choices", "usage", "metrics", "prompt_token_ids"}:
        payload[field] = value
    elif field in {"content", "reasoning"}:
        choice["delta"][field] = value
    elif field == "choice":
        payload["choices"] = [value, choice]
    elif field == "speculative_decoding":
        payload["metrics"] = {field: value}
    elif field == "top":
        choice["logprobs"] = {"content": [{"token": "a", "logprob": -1, "top_logprobs": value}]}
    else:
        choice[field] = value
        if field in {"text", "message"}:
            del choice["delta"]
    reader, _ = feed(payload, chat("end", [2], "stop"))
    assert reader.finish_reason is not None
    assert reader.usage is None or reader.usage == Usage(3, 2, 1)


def test_wrong_types_leave_one_remark_a_kind() -> None:
    """A server that errs in every chunk does not fill the log."""
    reader, found = feed(*[chat(5, "12", 7)] * 50, chat("x", reason=""))
    assert len(found) == 51
    assert not reader.finished
    assert sorted(message for _, message in reader.remarks) == [
        "The engine sent a finish_reason that is not text; it was ignored.",
        "The engine sent text of the wrong type; it was ignored.",
        "The engine sent token_ids that are not a list of whole numbers; it was ignored.",
    ]
    many, _ = feed(*[str(number) for number in range(100)])
    assert len(many.remarks) == 20


def test_other_choices_are_not_ours() -> None:
    """Only the choice with index 0 is read."""
    reader, found = feed(
        {"choices": [{"index": 1, "text": "no"}]},
        {"choices": [{"index": 1, "text": "no"}, {"index": 0, "text": "yes"}]},
    )
    assert ([token.text for token in found], reader.remarks) == (["yes"], [])


def test_nothing_counts_after_the_finish() -> None:
    """A repeated last chunk is not shown twice, and is remarked once (issue: duplicate final chunks)."""
    last = chat("b", [2], "stop")
    reader, found = feed(chat("a", [1]), last, last, last, chat(None))
    assert [token.text for token in found] == ["a", "b"]
    assert (reader.surplus, reader.token_count, reader.last_at) == (2, 2, 1.0)
    assert [kind for kind, _ in reader.remarks] == ["surplus_ids"]


def test_levels_of_older_servers() -> None:
    """Text without ids is counted as such; a burst without text is not."""
    reader, _ = feed(plain("a"), plain("b", []), plain("", [1, 2]))
    assert (reader.had_text, reader.had_ids, reader.unnumbered) == (True, True, 1)


def test_pieces_only_where_they_are_certain() -> None:
    """Single tokens, a tokenizer's answer, or logprob texts that join to the chunk's text; otherwise none."""
    logs = {"content": [{"token": "a", "logprob": -1.0}, {"token": "b", "logprob": -1.0}]}
    _, found = feed(
        chat("ab", [1, 2], choice={"logprobs": logs}),
        chat("axb", [1, 2], choice={"logprobs": logs}),
        chat("c", [3]),
        chat("dd", [4, 4]),
    )
    assert [token.pieces for token in found] == [("a", "b"), None, ("c",), None]

    def halves(ids: tuple[int, ...], text: str) -> tuple[str, ...] | None:
        return ("d", "d") if text == "dd" and len(ids) == 2 else None

    _, split = feed(chat("dd", [4, 4]), chat("ee", [5, 5]), chat("f", [6]), split=halves)
    assert [token.pieces for token in split] == [("d", "d"), None, ("f",)]


@pytest.mark.parametrize("ids", ["[1.0]", "[true]", "[99999999999999999999]", '["1"]', "[null]", "{}", "[[1]]"])
def test_ids_that_are_none(ids: str) -> None:
    """Ids must be whole numbers as such; what is not is remarked, and the text stays."""
    reader, found = feed('{"choices": [{"index": 0, "text": "a", "token_ids": IDS}]}'.replace("IDS", ids))
    assert ([(token.ids, token.text) for token in found], len(reader.remarks)) == ([((), "a")], ids != "{}")


def test_reasoning_of_a_plain_completion() -> None:
    """Some servers put it beside the text."""
    _, found = feed({"choices": [{"index": 0, "text": "a", "reasoning": "r", "token_ids": [1]}]})
    assert [(token.text, token.reasoning) for token in found] == [("a", "r")]


def test_whole_bodies() -> None:
    """An unstreamed answer is read like one chunk."""
    reader = CompletionReader(Side.STANDARD)
    token = reader.take(
        {
            "choices": [{"index": 0, "message": {"content": "all"}, "token_ids": [1, 2], "finish_reason": "stop"}],
            "usage": USAGE,
        },
        4.0,
    )
    assert token == Tokens(Side.STANDARD, 4.0, (1, 2), "all", reported_total=2)
    assert (reader.finish_reason, reader.usage) == ("stop", Usage(3, 2, 1))


def test_metrics_without_speculation() -> None:
    """A standard engine's timings, nulls, and nothing at all."""
    reader, _ = feed(
        {"choices": [], "metrics": {"time_to_first_token_ms": None, "tokens_per_second": None}},
        {"choices": [], "metrics": None},
    )
    assert (reader.speculation, reader.timings) == (None, None)
    zero, _ = feed(
        {
            "choices": [],
            "metrics": {
                "speculative_decoding": {"num_spec_steps": 0, "num_draft_tokens": 0, "num_accepted_draft_tokens": 0}
            },
        }
    )
    assert zero.speculation == RequestSpeculation(0, 0, 0)
