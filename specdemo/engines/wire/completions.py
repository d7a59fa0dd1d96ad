"""One streamed answer of an OpenAI-compatible server: payloads in, Tokens out, and what the last chunks told.

Chat and plain completions, streamed or as one JSON body. Every field is read with suspicion: a field of the wrong
type counts as absent and leaves a remark, so nothing that a server sends can crash the reader.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from specdemo.core.events import NoteKind, RequestSpeculation, ServerTimings, Side, TokenLogprob, Tokens, Usage
from specdemo.core.sentences import sentence
from specdemo.engines.wire import fields
from specdemo.engines.wire.logprobs import logprobs, tells, without_zeros
from specdemo.engines.wire.ordinary import made, ordinary
from specdemo.engines.wire.problems import Mask, ServerError, choice_error, server_error
from specdemo.engines.wire.reported import speculation, timings

__all__ = ["DONE", "LATE", "CompletionReader", "ServerError", "Split", "server_error"]

DONE = b"[DONE]"
_ENDS = (b"[done]", b"done")  # in JSON's quotes too, or among blanks
_AROUND_END = b' \t\r\n"'
_LONGEST_END = 32
Split = Callable[[tuple[int, ...], str], tuple[str, ...] | None]
"""Ids of a chunk and its text → the text of each id, None where that is not known exactly."""
_REASONING = ("reasoning", "reasoning_content", "thinking", "reasoning_text")
"""Names under which servers send the text before the answer; one server uses one of them."""
_UNFINISHED = ("", "null", "none")
"""Finish reasons that say in words that there is none yet."""
LATE = sentence("went_on")


class CompletionReader:
    """State of one answer. ``feed`` each payload; read the attributes when the stream is over.

    ``last_at`` is the arrival of the last payload that had choices (None: none had). ``token_count`` counts received
    ids. ``remarks`` collects data-quality remarks as (kind, message); the caller takes them out. ``mask`` takes secrets
    out of what the server says. Nothing is read after an error.
    """

    __slots__ = (
        "_by_message", "_halves", "_hollow", "_odd", "_side", "_split", "done", "error", "finish_reason", "finished",
        "had_ids", "had_text", "last_at", "mask", "prompt_token_ids", "remarks", "speculation", "stop_reason",
        "surplus", "timings", "token_count", "unnumbered", "usage",
    )  # fmt: skip

    def __init__(self, side: Side, split: Split | None = None, mask: Mask = str) -> None:
        self.mask = mask
        self._side = side
        self._split = split
        self._odd: set[str] = set()
        self._halves = fields.Halves()
        self._by_message = False  # the server sends ``message`` where others send ``delta``
        self._hollow = True  # no logprob has shown yet that the server computes them
        self.done = False
        self.error: ServerError | None = None
        self.finished = False
        self.finish_reason: str | None = None
        self.stop_reason: str | int | None = None
        self.usage: Usage | None = None
        self.speculation: RequestSpeculation | None = None
        self.timings: ServerTimings | None = None
        self.prompt_token_ids: tuple[int, ...] | None = None
        self.last_at: float | None = None
        self.token_count = 0
        self.had_text = False
        self.had_ids = False
        self.unnumbered = 0  # chunks with text but no ids
        self.surplus = 0  # ids that came after the finish reason
        self.remarks: list[tuple[NoteKind, str]] = []

    def feed(self, data: bytes, at: float) -> Tokens | None:
        """One ``data`` of the stream, arrived ``at``. Raises EngineProtocolError if it is no JSON."""
        if not self.finished and self.error is None and (found := ordinary(data)) is not None:
            ids, text, reasoning, numbered = found
            if len(ids) == 1 and self._split is None and not reasoning:  # what most chunks are; _tokens gives the same
                self.last_at = at
                self.token_count += 1
                self.had_ids = True
                if text:
                    self.had_text = True
                return made(self._side, at, ids, text, (text,))
            return self._tokens(at, ids, text, reasoning, numbered, None, None)
        if len(data) <= _LONGEST_END and data.strip(_AROUND_END).lower() in _ENDS:
            self.done = True
            return None
        return self.take(fields.parse(self._halves.joined(data), self.mask), at)

    def take(self, payload: Any, at: float) -> Tokens | None:
        """One parsed payload, or a whole unstreamed body. None if it has no choices."""
        if self.error is not None:
            return None
        if type(payload) is not dict:
            self.error = server_error(payload, self.mask)
            if self.error is None:
                what = fields.excerpt(str(payload), 60, self.mask)
                self._remark(f"a stream item that is not an object ({what})")
            return None
        choices = payload.get("choices")
        if not choices or payload.get("error") or payload.get("errors"):
            self.error = server_error(payload, self.mask)
            if self.error is not None:
                return None
        usage = payload.get("usage")
        if usage is not None:
            self._take_usage(usage)
        if (metrics := payload.get("metrics")) is not None:
            self._take_metrics(metrics)
        if (prompt := payload.get("prompt_token_ids")) is not None:
            self._take_prompt(prompt)
        if not choices:
            return None
        choice = self._first(choices)
        if choice is None:
            return None
        return self._choice(choice, at, None if usage is None or self.usage is None else self.usage.completion_tokens)

    def _first(self, choices: Any) -> dict[str, Any] | None:
        """The choice with index 0; we never ask for more than one."""
        if type(choices) is not list:
            self._remark("choices that are not a list")
            return None
        for choice in choices:
            if type(choice) is not dict:
                self._remark("a choice that is not an object")
            elif not (index := choice.get("index")) or index == "0":
                return cast("dict[str, Any]", choice)
            elif type(index) is not int:
                self._remark("a choice whose index is not a number")
        return None

    def _choice(self, choice: dict[str, Any], at: float, total: int | None) -> Tokens | None:
        part = choice.get("delta")
        if part is None and (self._by_message or not self.had_text):  # else it repeats the whole text at the end
            part = choice.get("message")
            self._by_message = part is not None
        if type(part) is dict:
            said: Any = part.get("content")
            thought: Any = next((found for name in _REASONING if (found := part.get(name))), None)
        else:
            said, thought = choice.get("text"), choice.get("reasoning")
            if part is not None:
                self._remark("a delta that is not an object")
        text, inner = (said, "") if type(said) is str else self._parts(said)
        reasoning = (thought if type(thought) is str else self._parts(thought)[0]) + inner
        raw = choice.get("token_ids")
        ids: tuple[int, ...] = ()
        if raw:
            found = fields.counts(raw)
            if found is None:
                self._remark("token_ids that are not a list of whole numbers")
            else:
                ids = found
        if (prompt := choice.get("prompt_token_ids")) is not None:
            self._take_prompt(prompt)
        if self.finished:
            self._late(ids, text, reasoning)
            return None
        self.error = choice_error(choice, self.mask)
        if self.error is None and (reason := choice.get("finish_reason")) is not None:
            self._finish(reason, choice.get("stop_reason"))
        entries = None
        if (worth := choice.get("logprobs")) is not None:
            entries = self._entries(worth, ids)
        return self._tokens(at, ids, text, reasoning, raw is not None, entries, total)

    def _tokens(
        self,
        at: float,
        ids: tuple[int, ...],
        text: str,
        reasoning: str,
        numbered: bool,
        entries: tuple[TokenLogprob, ...] | None,
        total: int | None,
    ) -> Tokens:
        """Count what arrived; ``numbered``: the chunk named ids, be it none."""
        self.last_at = at
        if ids:
            self.token_count += len(ids)
            self.had_ids = True
        if text or reasoning:
            self.had_text = True
            if not ids and not numbered:
                self.unnumbered += 1
        pieces: tuple[str, ...] | None
        if len(ids) == 1 and not reasoning and self._split is None:
            pieces = (text,)
        else:
            pieces = self._pieces(ids, text, reasoning, entries) if ids else None
        return Tokens(self._side, at, ids, text, reasoning, pieces, entries, total)

    def _pieces(
        self, ids: tuple[int, ...], text: str, reasoning: str, entries: tuple[TokenLogprob, ...] | None
    ) -> tuple[str, ...] | None:
        """The text of each id, only where it is certain: joined, the pieces are the chunk's text."""
        own = self._split(ids, text or reasoning) if self._split is not None else None
        if reasoning:
            return None
        if len(ids) == 1:
            return (text,)
        if own is not None:
            return own
        if entries is not None and len(entries) == len(ids):
            texts = tuple(entry.text for entry in entries)
            if "".join(texts) == text:
                return texts
        return None

    def _entries(self, value: Any, ids: tuple[int, ...]) -> tuple[TokenLogprob, ...] | None:
        found = logprobs(value, ids)
        if found is None:
            return None
        if self._hollow:
            self._hollow = not tells(found)
            return without_zeros(found)
        return found

    def _finish(self, reason: Any, stop: Any) -> None:
        if type(reason) is dict:  # {"type": "stop", …}; one that gave up was found before
            reason = reason.get("type")
        if type(reason) is not str:
            self._remark("a finish_reason that is not text")
            return
        if reason.strip().lower() not in _UNFINISHED:
            self.finished = True
            self.finish_reason = reason
            self.stop_reason = stop if type(stop) is str or type(stop) is int else None

    def _late(self, ids: tuple[int, ...], text: str, reasoning: str) -> None:
        """Choices after the finish reason: a repeated last chunk, or a server out of step. Not shown twice."""
        if ids or text or reasoning:
            self.surplus += len(ids)
            if "late" not in self._odd:
                self._odd.add("late")
                self.remarks.append(("surplus_ids", LATE))

    def _parts(self, value: Any) -> tuple[str, str]:
        """Text in parts, and the reasoning among them: ``[{"text": …}, {"type": "thinking", "thinking": […]}]``."""
        text, reasoning = [], []
        for part in () if value is None else value if type(value) is list else (None,):
            inner = fields.mapping(part)
            thought = inner.get("thinking")
            for piece in thought if type(thought) is list else (part if thought is None else thought,):
                found = fields.mapping(piece).get("text") if type(piece) is dict else piece
                if type(found) is not str:
                    self._remark("text of the wrong type")
                elif thought is not None or inner.get("type") in ("thinking", "reasoning"):
                    reasoning.append(found)
                else:
                    text.append(found)
        return "".join(text), "".join(reasoning)

    def _take_prompt(self, value: Any) -> None:
        found = fields.counts(value)
        if found is None:
            self._remark("prompt_token_ids that are not a list of whole numbers")
        else:
            self.prompt_token_ids = found

    def _take_usage(self, value: Any) -> None:
        """The latest wins: usage may be repeated or grow with each chunk, it is never summed (fault B25)."""
        inner = fields.mapping(value)
        completion = fields.count(inner.get("completion_tokens"))
        prompt = fields.count(inner.get("prompt_tokens"))
        if completion is None or prompt is None:
            self._remark("usage without whole token counts")
            return
        if not completion and not prompt and self.usage is not None:
            return  # a last chunk with nothing in it
        cached = fields.count(fields.mapping(inner.get("prompt_tokens_details")).get("cached_tokens"))
        self.usage = Usage(prompt, completion, cached)

    def _take_metrics(self, value: Any) -> None:
        inner = fields.mapping(value)
        if (found := inner.get("speculative_decoding")) is not None:
            self.speculation = speculation(found)
            if self.speculation is None:
                self._remark("speculative metrics that are incomplete or cannot be right")
        self.timings = timings(inner) or self.timings

    def _remark(self, what: str) -> None:
        """Once a kind: a server that does it in every chunk must not fill the log."""
        if what not in self._odd and len(self._odd) < 20:
            self._odd.add(what)
            self.remarks.append(("other", f"The engine sent {what}; it was ignored."))
