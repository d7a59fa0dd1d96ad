"""What an engine's log says while it loads: the stage, a percentage where one is printed, and why it died. Pure.

Fed with the raw bytes of the child's output, progress bars included. Tested on logs recorded from real engines
(tests/traces/engine_logs). The words are vLLM's own (0.32, 0.33); an unknown line changes nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

TAIL_LINES = 40
_LINE_LIMIT = 2000  # characters kept of one line
_REST_LIMIT = 8 * _LINE_LIMIT  # bytes kept of a line that has not ended
_MASK = "•••"

# Parts of a line: "(EngineCore pid=11) INFO 11-29 23:49:04 [core.py:133] text"
_PREFIX = re.compile(
    r"^(?:\((?P<process>[\w:.-]+)(?: pid=\d+)?\)\s*)?"
    r"(?:(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL)\s+\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?\s+\[[^\]]*\]\s?)?"
)
_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)|[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]"
)
_PERCENT = re.compile(r"\b(\d{1,3})%")
_ERROR = re.compile(r"^(?:[\w.]+\.)?(?P<kind>\w*(?:Error|Exception|Interrupt|Exit|NotFound\w*))(?::\s*(?P<text>.*))?$")
_VALIDATION = re.compile(r"^\s+(?:Value error|Assertion failed), (?P<text>.+?)(?:\s*\[type=.*)?$")
_FIELD_PROBLEM = re.compile(
    r"^\s+(?P<text>(?:Input should be|Unexpected keyword|Field required|Extra inputs).+?)(?:\s*\[type=.*)?$"
)
_ARGPARSE = re.compile(r"^(?:vllm [\w-]+|\S*(?:\.py|entry|vllm)\S*): error: (?P<text>.+)$")
_INTERPRETER = re.compile(r"^\S*python[\d.]*: (?P<text>(?!warning)\S.+)$", re.IGNORECASE)  # it could not even begin
_NATIVE = re.compile(r"^what\(\):\s+(?P<text>.+)$")  # of C++, before it aborts
_AFTERMATH = re.compile(
    r"(?:\w*Cancelled\w*|GeneratorExit|BrokenPipeError|ConnectionResetError)\b|KeyError: '/(?:psm|mp|loky|sem)[-_]"
)
"""What falls over when something else has broken: no cause, unless nothing else is said."""
_GENERIC = (
    "engine core initialization failed", "enginecore failed to start", "workerproc initialization failed",
    "enginecore encountered an issue", "worker failed with error", "validation error for", "terminated",
    "engine process failed to start", "workerproc hit an exception",
)  # fmt: skip
_NOISE = ("nanobind:", "- leaked", "- ... skipped", "resource_tracker", "warnings.warn(", "See https://nanobind")

# Stage → a mark in the text; the last one seen wins. Order is only for reading.
_STAGES: tuple[tuple[str, str], ...] = (
    ("non-default args:", "reading the settings"),
    ("Resolved architecture", "reading the model's configuration"),
    ("Initializing a V1 LLM engine", "starting the engine core"),
    ("OpenMP thread binding info", "starting the worker"),
    ("world_size=", "starting the worker"),
    ("Starting to load model", "loading the weights"),
    ("Loading safetensors checkpoint shards", "loading the weights"),
    ("Loading pt checkpoint shards", "loading the weights"),
    ("Loading drafter model", "loading the draft model"),
    ("Warming up model for the compilation", "compiling"),
    ("Start compiling", "compiling"),
    ("Compiling a graph", "compiling"),
    ("KV cache size", "reserving the cache"),
    ("Available KV cache memory", "reserving the cache"),
    ("Capturing CUDA graphs", "capturing CUDA graphs"),
    ("init engine (", "starting the server"),
    ("Supported tasks", "starting the server"),
    ("Starting vLLM server", "starting the server"),
    ("Application startup complete", "waiting for the first answer"),
)
_WITH_PERCENT = ("Loading safetensors", "Loading pt", "Capturing CUDA graphs")

REPAIR_APPLIED = "specdemo: CPU sampling repair applied"
FIRST_STAGE = "starting Python and importing vLLM"


def clean(text: str, secrets: Sequence[str] = ()) -> str:
    """A line that is safe to show: no escape sequences, control characters or secrets, cut at 2,000 characters.

    It is cut last: of half a secret nothing can tell any more that it is one.
    """
    line = _CONTROL.sub("", text).rstrip()
    for secret in sorted(secrets, key=len, reverse=True):  # so that no part of one is left over by another
        line = line.replace(secret, _MASK)
    return line[:_LINE_LIMIT]


def bare(line: str) -> tuple[str | None, str]:
    """The line without vLLM's process and time prefix → (level or None, text)."""
    found = _PREFIX.match(line)
    return (found["level"], line[found.end() :]) if found else (None, line)


@dataclass(slots=True)
class LogView:
    """The view of one child's log, updated line by line.

    ``fraction`` is 0..1 within the stage, None where the log gives no percentage. ``error`` is the root cause: the last
    exception text that is not one of vLLM's "see above" wrappers. ``repaired``: the sampling plugin said that it is in
    place. ``secrets`` are replaced wherever they appear.
    """

    secrets: tuple[str, ...] = ()
    stage: str = FIRST_STAGE
    fraction: float | None = None
    last_line: str = ""
    error: str | None = None
    port_taken: bool = False
    repaired: bool = False
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=TAIL_LINES))
    _rest: bytes = b""
    _wrapper: str | None = None

    def feed(self, data: bytes) -> list[str]:
        """New output of the child → the finished lines, cleaned. A carriage return ends a line as well."""
        parts = re.split(rb"[\r\n]", self._rest + data)
        self._rest = self._bounded(parts.pop())
        return [line for part in parts if (line := self._line(part))]

    def _bounded(self, rest: bytes) -> bytes:
        """The end of a line without end; no secret is cut by its new beginning."""
        if len(rest) <= _REST_LIMIT:
            return rest
        for secret in sorted(self.secrets, key=len, reverse=True):
            rest = rest.replace(secret.encode(), _MASK.encode())
        return rest[-_REST_LIMIT:]

    def finish(self) -> list[str]:
        """The last, unfinished line."""
        rest, self._rest = self._rest, b""
        line = self._line(rest)
        return [line] if line else []

    @property
    def problem(self) -> str | None:
        """The best explanation in the log: the root cause, else vLLM's wrapper, None if there is neither."""
        return self.error or self._wrapper

    def forgive(self) -> None:
        """The engine is ready all the same: what went wrong until now is not what it will die of."""
        self.error = self._wrapper = None

    def _line(self, raw: bytes) -> str:
        line = clean(raw.decode("utf-8", "replace"), self.secrets)
        if not line.strip() or any(mark in line for mark in _NOISE):
            return ""
        self.last_line = line
        self.tail.append(line)
        level, text = bare(line)
        self._read_stage(text)
        self._read_error(level, text)
        self.repaired = self.repaired or REPAIR_APPLIED in text
        return line

    def _read_stage(self, text: str) -> None:
        for mark, stage in _STAGES:
            if mark in text:
                if stage != self.stage:
                    self.stage, self.fraction = stage, None
                percent = _PERCENT.search(text) if mark.startswith(_WITH_PERCENT) else None
                if percent:
                    self.fraction = min(1.0, int(percent[1]) / 100)
                return

    def _read_error(self, level: str | None, text: str) -> None:
        if re.search(r"address already in use|errno 98\b", text, re.IGNORECASE):
            self.port_taken = True
        found = _VALIDATION.match(text) or _FIELD_PROBLEM.match(text) or _ARGPARSE.match(text.strip())
        found = found or _INTERPRETER.match(text) or _NATIVE.match(text.strip())
        if found:
            self.error = found["text"].strip()
            return
        found = _ERROR.match(text.strip())
        if not found or (found["text"] is None and level is None and text.startswith(" ")):
            return
        detail = (found["text"] or "").strip()
        sentence = f"{found['kind']}: {detail}" if detail else found["kind"]
        ended = found["kind"] in ("KeyboardInterrupt", "SystemExit") or _AFTERMATH.match(sentence) is not None
        if ended or any(mark in sentence.lower() for mark in _GENERIC):
            self._wrapper = self._wrapper or sentence
        else:
            self.error = sentence
