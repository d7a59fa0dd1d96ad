"""One row of an uploaded file → a prompt, or one sentence why not. Pure.

Shapes read: a bare string · a list of messages · {"messages": …} (OpenAI) · {"conversations": …} (ShareGPT) ·
{"turns": …} (Spec-Bench question.jsonl) · {"prompt" | "question" | "instruction" (+ "input") | "query" | "text": …} ·
{"prompt": [token ids]}.

Rules: roles are read from each turn, never from its place; the history up to and including the last user turn is sent,
the same to both engines, and a recorded answer after it is left out; of Spec-Bench's turns the first is sent. A
"system" beside them is sent before them. A row's own temperature, max_tokens or model are never used: the run's own
settings hold for every row and both engines. What else stands in a row and is not sent is named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specdemo.core.prompt import Message, Role

MAX_PROMPT_CHARACTERS = 100_000
ROLES: Mapping[str, Role] = {
    "user": "user", "human": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
    "model": "assistant", "bot": "assistant", "system": "system", "developer": "system",
}  # fmt: skip
TEXT_KEYS = ("prompt", "question", "instruction", "query", "text", "input")
SYSTEM_KEYS = ("system", "system_prompt", "system_message")
CONTENT_KEYS = frozenset([*TEXT_KEYS, "messages", "conversations", "conversation", "turns"])
SETTINGS = frozenset(
    """
    temperature top_p top_k min_p seed stop stop_token_ids max_tokens max_completion_tokens max_new_tokens min_tokens
    output_tokens model n best_of presence_penalty frequency_penalty repetition_penalty length_penalty logit_bias
    ignore_eos logprobs top_logprobs prompt_logprobs stream stream_options sampling_params sampling parameters
    generation_config tools tool_choice functions function_call response_format guided_json guided_regex guided_choice
    guided_grammar structured_outputs chat_template chat_template_kwargs add_generation_prompt bad_words
    """.split()  # noqa: SIM905
)
LABELS = frozenset(
    "id question_id _id uid uuid idx index category workload task source dataset subset split".split()  # noqa: SIM905
)
"""Keys that only say which row it is."""


class RowRefused(Exception):
    """This row cannot be used; the text is one clause for "line 7: …", without half characters."""

    def __init__(self, reason: str) -> None:
        super().__init__(printable(reason))


class Twice(dict[str, Any]):
    """A JSON object that had one of its keys twice; only the last value is left in it."""


def printable(text: str) -> str:
    """The text as UTF-8 can carry it: half a surrogate pair becomes "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


@dataclass(frozen=True, slots=True)
class Row:
    """What a row gave. ``shape`` names its form.

    ``ignored`` names the settings in it that the run's own settings replace, ``unused`` what else in it was not sent.
    """

    shape: str
    messages: tuple[Message, ...] = ()
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    id: str | None = None
    category: str | None = None
    ignored: tuple[str, ...] = ()
    turns_left_out: int = 0
    unused: tuple[str, ...] = ()


def read_row(value: object) -> Row:
    """The prompt in one decoded JSON value. Raises RowRefused."""
    if isinstance(value, str):
        return Row("string", messages=(Message("user", _text(value)),))
    if isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray)):
        return _conversation("messages list", value)
    if isinstance(value, Mapping):
        return _object(value)
    raise RowRefused(f"a {_kind(value)} is not a prompt")


def looks_like_messages(value: object) -> bool:
    """Whether a list is one conversation (every item has a role) and not a list of rows."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, Mapping) and ("role" in item or "from" in item) for item in value)
    )


def _object(row: Mapping[str, object]) -> Row:
    if isinstance(row, Twice):
        raise RowRefused("it has the same key twice")
    told = {key: value for key, value in row.items() if value is not None}
    if any(key in CONTENT_KEYS for key in told):
        row = told  # a table saved as rows gives each the columns of all others, empty
    label = row.get("id", row.get("question_id"))
    named = printable(str(label)[:80]) if isinstance(label, (str, int)) and not isinstance(label, bool) else None
    kind = row.get("category", row.get("workload"))
    category = printable(kind.strip()[:80]) if isinstance(kind, str) and kind.strip() else None
    found, used = _content(row)
    found, system = _with_system(found, row)
    left = [printable(key)[:40] for key in row if key not in used and key != system and key not in LABELS]
    settings = tuple(sorted(key for key in left if key.lower() in SETTINGS))
    unused = tuple(sorted(key for key in left if key.lower() not in SETTINGS))
    return replace(found, id=named, category=category, ignored=settings, unused=unused)


def _content(row: Mapping[str, object]) -> tuple[Row, tuple[str, ...]]:
    """What is asked, and the keys that it came from."""
    for key, shape in (("messages", "messages"), ("conversations", "ShareGPT"), ("conversation", "ShareGPT")):
        if key in row:
            return _conversation(shape, row[key]), (key,)
    return (_turns(row["turns"]), ("turns",)) if "turns" in row else _plain(row)


def _with_system(found: Row, row: Mapping[str, object]) -> tuple[Row, str | None]:
    """With the row's system prompt as the first message, and the key that it came from."""
    given = [key for key in SYSTEM_KEYS if row.get(key) not in (None, "")]
    if not given:
        return found, next((key for key in SYSTEM_KEYS if key in row), None)
    key, text = given[0], row[given[0]]
    if not isinstance(text, str):
        raise RowRefused(f'"{key}" is a {_kind(text)}, not a text')
    if len(given) > 1 or any(message.role == "system" for message in found.messages):
        raise RowRefused("it has more than one system prompt")
    if not found.messages:
        raise RowRefused("a system prompt can't stand before token ids")
    messages = (Message("system", _whole(text)), *found.messages)
    _check_length(messages)
    return replace(found, messages=messages), key


def _plain(row: Mapping[str, object]) -> tuple[Row, tuple[str, ...]]:
    key = next((name for name in TEXT_KEYS if name in row), None)
    if key is None:
        names = ", ".join(sorted(map(str, row))[:5]) or "nothing"
        raise RowRefused(f"no prompt, messages, conversations or turns in it (it has {names[:120]})")
    value = row[key]
    if isinstance(value, str):
        extra = row.get("input") if key == "instruction" else None
        joined = isinstance(extra, str) and bool(extra.strip())
        text = _text(f"{value}\n\n{extra}" if joined else value)
        used = (key, "input") if key == "instruction" and (joined or not extra) else (key,)
        return Row(key, messages=(Message("user", text),)), used
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        if min(value) < 0 or max(value) > 2**31 - 1:
            raise RowRefused("a token id is out of range")
        if len(value) > MAX_PROMPT_CHARACTERS:
            raise RowRefused(f"the prompt has {len(value):,} token ids, the limit is {MAX_PROMPT_CHARACTERS:,}")
        return Row("token ids", token_ids=tuple(value)), (key,)
    if looks_like_messages(value):
        return _conversation(key, value), (key,)
    raise RowRefused(f'"{key}" is a {_kind(value)}, not a text')


def _turns(value: object) -> Row:
    if not isinstance(value, list) or not value or not all(isinstance(turn, str) for turn in value):
        raise RowRefused('"turns" is not a list of texts')
    return Row("Spec-Bench", messages=(Message("user", _text(value[0])),), turns_left_out=len(value) - 1)


def _conversation(shape: str, value: object) -> Row:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise RowRefused(f"its messages are a {_kind(value)}, not a list")
    if not value:
        raise RowRefused("its list of messages is empty")
    messages = [_turn(number, turn) for number, turn in enumerate(value, 1)]
    last = max((i for i, message in enumerate(messages) if message.role == "user"), default=None)
    if last is None:
        raise RowRefused("no user turn")
    kept = tuple(messages[: last + 1])
    _check_length(kept)
    return Row(shape, messages=kept, turns_left_out=len(messages) - last - 1)


def _check_length(messages: Sequence[Message]) -> None:
    if sum(len(message.content) for message in messages) > MAX_PROMPT_CHARACTERS:
        raise RowRefused(f"the conversation is longer than {MAX_PROMPT_CHARACTERS:,} characters")


def _turn(number: int, turn: object) -> Message:
    if not isinstance(turn, Mapping):
        raise RowRefused(f"turn {number} is a {_kind(turn)}, not an object with a role")
    if isinstance(turn, Twice):
        raise RowRefused(f"turn {number} has the same key twice")
    if any(turn.get(key) for key in ("tool_calls", "function_call", "audio", "images", "videos")):
        raise RowRefused(f"turn {number} holds something other than text")
    name = turn.get("from") if turn.get("role") is None else turn["role"]
    if not isinstance(name, str):
        raise RowRefused(f"turn {number} has no role")
    role = ROLES.get(name.strip().lower())
    if role is None:
        raise RowRefused(f'turn {number} has the role "{name[:40]}", which is not supported')
    content = turn.get("value") if turn.get("content") is None else turn["content"]
    if isinstance(content, list):
        content = _parts(number, content)
    if not isinstance(content, str):
        raise RowRefused(f"turn {number} has no text")
    return Message(role, _text(content) if role == "user" else _whole(content))


def _parts(number: int, parts: list[object]) -> str:
    texts = []
    for part in parts:
        if isinstance(part, Twice):
            raise RowRefused(f"turn {number} has the same key twice")
        text = part.get("text") if isinstance(part, Mapping) and part.get("type") in ("text", "input_text") else None
        if not isinstance(text, str):
            raise RowRefused(f"turn {number} holds something other than text")
        texts.append(text)
    return "".join(texts)


def _whole(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise RowRefused("it holds half a surrogate pair, which is not text") from None
    return text


def _text(text: str) -> str:
    if not text.strip():
        raise RowRefused("the prompt is empty")
    if len(text) > MAX_PROMPT_CHARACTERS:
        raise RowRefused(f"the prompt has {len(text):,} characters, the limit is {MAX_PROMPT_CHARACTERS:,}")
    return _whole(text)


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true/false value"
    if isinstance(value, (int, float)):
        return "number"
    if isinstance(value, str):
        return "text"
    if isinstance(value, Mapping):
        return "JSON object"
    return "list"
