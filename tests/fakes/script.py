"""The script of a scripted server, read strictly: a misspelt key is an error, so a test cannot pass by accident."""

from __future__ import annotations

import json
import types
import typing
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Step:
    """One engine step, sent as one chunk ``at`` seconds after the reply began (None: by the reply's pace).

    ``accepted`` / ``drafted`` feed counters and the per-request metrics object. ``choice`` replaces the choice object.
    """

    ids: list[int] = field(default_factory=list)
    text: str = ""
    reasoning: str = ""
    at: float | None = None
    logprobs: Any = None
    accepted: int | None = None
    drafted: int | None = None
    choice: Any = None


@dataclass(frozen=True, slots=True)
class Wire:
    """How payloads become bytes."""

    newline: str = "\n"
    space: bool = True
    bom: bool = False
    split: int = 0
    prelude: str = ""
    comment_every_s: float = 0.0
    gzip: bool = False
    buffer_events: int = 0
    done: int = 1
    framing: str = "chunked"
    content_type: str = "text/event-stream; charset=utf-8"
    ascii: bool = False
    flood: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong once ``after`` steps were sent.

    ``kind``: close, reset, half (half an event, then close), silence, error (``body`` as in-band error, then [DONE]),
    inject (``body`` as one more payload; text is sent raw), die (error, /health 503, then port and connections closed).
    """

    kind: str
    after: int = 0
    body: Any = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply to a completion request; see the docstring of ``tests.fakes.vllm``."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0
    steps: list[Step] | None = None
    text: str | None = None
    trace: str | None = None
    speed: float = 1.0
    first_s: float = 0.0
    step_s: float = 0.0
    bursts: list[int] = field(default_factory=lambda: [1])
    tokens: int | None = None
    repeat: int = 1
    raw: list[Any] | None = None
    stream: bool = True
    role_at: float | None = None
    role_chunk: bool = True
    finish_reason: str | None = "auto"
    stop_reason: Any = None
    finish_alone: bool = False
    usage: Any = "final"
    metrics: Any = "auto"
    timings: Any = None
    token_ids: bool = True
    prompt_ids: bool = True
    stamp: bool = False
    fault: Fault | None = None
    wire: Wire = field(default_factory=Wire)


@dataclass(frozen=True, slots=True)
class Script:
    """A whole server. ``k`` set makes it speculative. ``replies`` are used in turn; the last one repeats."""

    model: str = "smollm2"
    models: list[str] | None = None
    version: str | None = "0.32.0"
    max_model_len: int = 2048
    k: int | None = None
    replies: list[Reply] = field(default_factory=lambda: [Reply()])
    api_key: str | None = None
    health: int = 200
    tokenize: bool = True
    metrics_route: bool = True
    metrics_text: str | None = None
    metrics_filler: int = 0
    engines: int = 1
    refuse: dict[str, str] = field(default_factory=dict)
    candidates: list[list[float]] | None = None
    score_gaps: dict[str, float] = field(default_factory=dict)
    bos: list[int] = field(default_factory=lambda: [1])
    flip_when_busy: bool = False
    repeat_speedup: float = 1.0
    cold_s: float = 0.0
    drop_reused: bool = False
    server_info: Any = None


def parse(value: Any) -> Script:
    """A script from a JSON value; ``reply`` is short for a list of one reply."""
    if isinstance(value, dict) and "reply" in value:
        value = {**{key: item for key, item in value.items() if key != "reply"}, "replies": [value["reply"]]}
    script = _build(Script, value, "script")
    assert isinstance(script, Script)
    return script


def load(path: str) -> Script:
    """A script from a JSON file."""
    return parse(json.loads(Path(path).read_text(encoding="utf-8")))


def _build(kind: Any, value: Any, where: str) -> Any:
    if isinstance(value, kind):
        return value
    if not isinstance(value, dict):
        raise TypeError(f"{where}: an object is needed, not {type(value).__name__}")
    hints = typing.get_type_hints(kind)
    known = {item.name for item in fields(kind)}
    if unknown := set(value) - known:
        raise ValueError(f"{where}: unknown {', '.join(sorted(unknown))}; known are {', '.join(sorted(known))}")
    return kind(**{name: _convert(hints[name], item, f"{where}.{name}") for name, item in value.items()})


def _convert(hint: Any, value: Any, where: str) -> Any:
    if typing.get_origin(hint) is types.UnionType:
        if value is None:
            return None
        hint = next(option for option in typing.get_args(hint) if option is not type(None))
    if is_dataclass(hint):
        return _build(hint, value, where)
    if typing.get_origin(hint) is list and is_dataclass(item := typing.get_args(hint)[0]):
        return [_build(item, entry, f"{where}[{index}]") for index, entry in enumerate(value)]
    return value
