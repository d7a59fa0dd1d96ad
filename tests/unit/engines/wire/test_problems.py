"""What servers say instead of an answer is found in every shape, and no secret is cut in half on the way."""

import json
from typing import Any

import pytest

from specdemo.core.events import Side
from specdemo.engines.wire import problems
from specdemo.engines.wire.completions import CompletionReader
from specdemo.engines.wire.problems import SPEECHLESS, ServerError, gave_up, server_error

KEY = "sk-" + "0123456789abcdefghijklmnopqrstuvwxyzABCDE"
DIED = "engine died"


def hidden(text: str) -> str:
    """As a session masks."""
    return text.replace(KEY, "***")


def fed(*payloads: Any) -> tuple[CompletionReader, str]:
    """One token, then these; the reader, and the text that was kept."""
    reader, text = CompletionReader(Side.STANDARD, mask=hidden), ""
    for payload in ({"choices": [{"index": 0, "text": "a", "token_ids": [1], "finish_reason": None}]}, *payloads):
        token = reader.feed(json.dumps(payload).encode(), 1.0)
        text += "" if token is None else token.text
    return reader, text


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"error": {}}, ServerError(SPEECHLESS)),
        ({"error": ""}, ServerError(SPEECHLESS)),
        ({"errors": [], "code": 500}, ServerError(SPEECHLESS, 500)),
        ({"error": " \n"}, ServerError(SPEECHLESS)),
        ({"message": DIED, "code": 500, "type": "x"}, ServerError(DIED, 500)),
        ({"type": "error", "message": DIED}, ServerError(DIED)),
        ({"type": "error", "choices": [], "message": DIED}, ServerError(DIED)),
        ({"msg": DIED}, ServerError(DIED)),
        ({"errors": [{"message": DIED}, {"message": "twice"}]}, ServerError("engine died; twice")),
        ([{"error": {"message": DIED, "code": 503}}], ServerError(DIED, 503)),
        ({"error": {"message": DIED, "status_code": 500}}, ServerError(DIED, 500)),
        ({"error": {"message": DIED}, "status": 503}, ServerError(DIED, 503)),
        ({"choices": [{"index": 0, "text": "", "error": {"message": DIED}}]}, ServerError(DIED)),
        ({"choices": [{"index": 0, "text": "", "token_ids": [2]}], "errors": [DIED]}, ServerError(DIED)),
        ({"choices": [{"index": 0, "text": "", "finish_reason": {"type": "abort", "message": DIED}}]}, ServerError(DIED)),
        ({"choices": [{"index": 0, "text": "", "finish_reason": {"message": DIED}}]}, ServerError(DIED)),
        ({"detail": [{"loc": ["body", "min_p"], "msg": "too big"}]}, ServerError("body.min_p: too big")),
        ({"detail": [{"loc": [], "msg": "too big"}]}, ServerError("too big")),
        ({"error": [[[[[[[[DIED]]]]]]]]}, ServerError("[[[[[[[['engine died']]]]]]]]")),
    ],
)  # fmt: skip
def test_an_error_after_a_token_in_any_shape(payload: Any, error: ServerError) -> None:
    """It is an error with the server's words, what came before is kept, and nothing is read behind it (B11)."""
    later = {"choices": [{"index": 0, "text": "b", "token_ids": [3], "finish_reason": None}]}
    reader, text = fed(payload, later, {"choices": [{"index": 0, "text": "c", "finish_reason": "stop"}]})
    assert (reader.error, text, reader.finished, reader.last_at) == (error, "a", False, 1.0)


def test_text_beside_an_error_in_a_choice_is_kept() -> None:
    """The chunk that brings the error may bring the last words too."""
    reader, text = fed({"choices": [{"index": 0, "text": "b", "token_ids": [2], "error": {"message": DIED}}]})
    assert (reader.error, text) == (ServerError(DIED), "ab")


def test_what_only_looks_like_an_error() -> None:
    """Empty error fields beside choices, false ones, a list of other things, and finish reasons as objects."""
    whole = {"choices": [{"index": 0, "text": "b", "error": None}], "error": {}, "errors": []}
    end = {"choices": [{"index": 0, "text": "", "error": "", "finish_reason": {"type": "stop", "matched": 2}}]}
    reader, text = fed(whole, {"error": False}, {"error": 0, "usage": None}, [1, {"choices": []}], {"id": "x"}, end)
    assert (reader.error, text, reader.finish_reason) == (None, "ab", "stop")
    reader, _ = fed({"choices": [{"index": 0, "text": "", "finish_reason": {"type": 7}}]})
    assert (reader.error, reader.finished, len(reader.remarks)) == (None, False, 1)


@pytest.mark.parametrize(
    "reason",
    [
        "abort",
        "Aborted",
        "cancelled",
        "canceled",
        "error",
        "server_error",
        "failed",
        "timeout",
        "insufficient_system_resource",
        "interrupted",
    ],
)
def test_reasons_that_mean_failure(reason: str) -> None:
    """A broken-off answer is none, however a server spells it."""
    assert gave_up(reason)


@pytest.mark.parametrize("reason", ["stop", "length", "tool_calls", "content_filter", "eos", "repetition", ""])
def test_reasons_that_do_not(reason: str) -> None:
    """Everything else ends an answer as it should."""
    assert not gave_up(reason)


@pytest.mark.parametrize("before", range(440, 510))
@pytest.mark.parametrize("shape", ["{}", '{{"error": "{}"}}', '[{{"error": {{"message": "{}"}}}}]'])
def test_no_part_of_a_secret_is_left_at_a_cut(shape: str, before: int) -> None:
    """Wherever a message is cut, the secret was taken out of it before (C21)."""
    text = shape.format("x" * before + " " + KEY)
    error = server_error(text if shape == "{}" else json.loads(text), hidden)
    assert error is not None
    assert KEY[:4] not in error.message


def test_no_part_of_a_secret_in_remarks_and_in_what_is_no_json() -> None:
    """The other places that show what came (C21)."""
    reader = CompletionReader(Side.STANDARD, mask=hidden)
    reader.feed(json.dumps(["x" * 40, KEY]).encode(), 0.0)
    for before in range(140, 200):
        with pytest.raises(Exception, match="not JSON") as caught:
            reader.feed(b"x" * before + b" " + KEY.encode(), 0.0)
        assert KEY[:4] not in str(caught.value)
    assert KEY[:4] not in reader.remarks[0][1]


def test_looking_for_words_visits_each_value_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error without any words costs no more than its size."""
    visits: list[int] = []
    look = problems._words

    def counted(value: Any, depth: int) -> str:
        visits.append(depth)
        return look(value, depth)

    monkeypatch.setattr(problems, "_words", counted)
    server_error({"error": {"message": {"error": {"detail": [None, {"title": 7}, True]}}, "msg": 5, "other": {}}})
    assert len(visits) == 9


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        ({"error": True, "message": DIED}, ServerError(DIED)),
        ({"error": 500, "msg": DIED}, ServerError(DIED)),
        ({"error": 500}, ServerError("500")),
        ({"error": {"message": DIED, "code": "503"}}, ServerError(DIED, 503)),
        ({"error": {"message": DIED, "code": "5o3"}, "statusCode": 502}, ServerError(DIED, 502)),
        ({"error_code": 17, "error_msg": DIED}, ServerError(DIED, 17)),
        ({"error_code": 50001, "text": DIED}, ServerError(DIED, 50001)),
        ({"error_code": 50001}, ServerError("{'error_code': 50001}", 50001)),
        ({"fault": {"faultstring": DIED, "detail": {"errorcode": "x"}}}, ServerError(DIED)),
        ({"Message": DIED}, ServerError(DIED)),
        ({"errorMessage": DIED, "errorType": "x"}, ServerError(DIED)),
    ],
)
def test_clouds_and_gateways_name_an_error_otherwise(payload: Any, error: ServerError) -> None:
    """Other names, a flag or a number in place of the error, a code in text: the words are found (B11)."""
    reader, text = fed(payload)
    assert (reader.error, text) == (error, "a")


def test_what_is_no_error_stays_none() -> None:
    """Fields that merely look alike: other protocols' text, a code of 0, choices beside a message."""
    for payload in ({"text": "hello"}, {"error_code": 0, "text": "hello"}, {"message": {"role": "assistant"}}):
        assert server_error(payload) is None
    assert server_error({"choices": [{"text": "x"}], "message": "ok"}) is None
