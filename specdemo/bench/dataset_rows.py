"""One row of an uploaded file → a prompt, or one sentence why not. Pure.

Shapes read: a bare string · a list of messages · {"messages": …} (OpenAI) · {"conversations": …} (ShareGPT) ·
{"turns": …} (Spec-Bench question.jsonl) · {"prompt" | "question" | "instruction" (+ "input") | "query" | "text": …} ·
{"prompt": [token ids]}.

Rules: roles are read from each turn, never from its place; the history up to and including the last user turn is sent,
the same to both engines, and a recorded answer after it is left out; of Spec-Bench's turns the first is sent. A row's
own temperature, max_tokens or model are never used: the run's settings hold for every row and both engines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specdemo.core.prompt import Message, Role

MAX_PROMPT_CHARACTERS = 100_000
ROLES: Mapping[str, Role] = {
    "user": "user", "human": "user", "prompter": "user",
    "assistant": "assistant", "gpt": "assistant", "chatgpt": "assistant", "bing": "assistant", "bard": "assistant",
    "model": "assistant", "bot": "assistant", "system": "system", "developer": "system",
}  # fmt: skip
TEXT_KEYS = ("prompt", "question", "instruction", "query", "text", "input")
SETTINGS = frozenset(
    [
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "stop",
        "max_tokens",
        "max_completion_tokens",
        "max_new_tokens",
        "output_tokens",
        "model",
        "n",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "ignore_eos",
        "logprobs",
        "stream",
    ]
)


class RowRefused(Exception):
    """This row cannot be used; the text is one clause for "line 7: …"."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a row gave. ``shape`` names its form, ``ignored`` the settings in it that the run's own settings replace."""

    shape: str
    messages: tuple[Message, ...] = ()
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    id: str | None = None
    category: str | None = None
    ignored: tuple[str, ...] = ()
    turns_left_out: int = 0


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
    ignored = tuple(sorted(SETTINGS & set(row)))
    label = row.get("id", row.get("question_id"))
    named = str(label)[:80] if isinstance(label, (str, int)) and not isinstance(label, bool) else None
    kind = row.get("category", row.get("workload"))
    category = kind.strip()[:80] if isinstance(kind, str) and kind.strip() else None
    if "messages" in row:
        found = _conversation("messages", row["messages"])
    elif "conversations" in row or "conversation" in row:
        found = _conversation("ShareGPT", row.get("conversations", row.get("conversation")))
    elif "turns" in row:
        found = _turns(row["turns"])
    else:
        found = _plain(row)
    return Row(found.shape, found.messages, found.text, found.token_ids, named, category, ignored, found.turns_left_out)


def _plain(row: Mapping[str, object]) -> Row:
    key = next((name for name in TEXT_KEYS if name in row), None)
    if key is None:
        names = ", ".join(sorted(map(str, row))[:5]) or "nothing"
        raise RowRefused(f"no prompt, messages, conversations or turns in it (it has {names[:120]})")
    value = row[key]
    if isinstance(value, str):
        extra = row.get("input") if key == "instruction" else None
        both = f"{value}\n\n{extra}" if isinstance(extra, str) and extra.strip() else value
        return Row(key, messages=(Message("user", _text(both)),))
    if isinstance(value, list) and value and all(type(item) is int for item in value):
        if min(value) < 0 or max(value) > 2**31 - 1:
            raise RowRefused("a token id is out of range")
        if len(value) > MAX_PROMPT_CHARACTERS:
            raise RowRefused(f"the prompt has {len(value):,} token ids, the limit is {MAX_PROMPT_CHARACTERS:,}")
        return Row("token ids", token_ids=tuple(value))
    if looks_like_messages(value):
        return _conversation(key, value)
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
    if sum(len(message.content) for message in kept) > MAX_PROMPT_CHARACTERS:
        raise RowRefused(f"the conversation is longer than {MAX_PROMPT_CHARACTERS:,} characters")
    return Row(shape, messages=kept, turns_left_out=len(messages) - last - 1)


def _turn(number: int, turn: object) -> Message:
    if not isinstance(turn, Mapping):
        raise RowRefused(f"turn {number} is a {_kind(turn)}, not an object with a role")
    name = turn.get("role", turn.get("from"))
    if not isinstance(name, str):
        raise RowRefused(f"turn {number} has no role")
    role = ROLES.get(name.strip().lower())
    if role is None:
        raise RowRefused(f'turn {number} has the role "{name[:40]}", which is not supported')
    content = turn.get("content", turn.get("value"))
    if isinstance(content, list):
        content = _parts(number, content)
    if not isinstance(content, str):
        raise RowRefused(f"turn {number} has no text")
    return Message(role, _text(content) if role == "user" else _whole(content))


def _parts(number: int, parts: list[object]) -> str:
    texts = []
    for part in parts:
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
