"""A scripted reply and a request become payloads, each with the time at which it is due."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.fakes.script import Reply, Step
from tests.fakes.words import Words, chat_text

TRACES = Path(__file__).resolve().parent.parent / "traces"
FINGERPRINT = "scripted-0"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asked for, as far as replies depend on it."""

    chat: bool
    model: str
    max_tokens: int
    logprobs: int | None
    ids: bool
    usage: bool
    stream: bool
    prompt_ids: list[int]
    said: str


@dataclass(frozen=True, slots=True)
class Item:
    """One payload: due ``at`` seconds after the reply began. ``step`` is set when it carries an engine step."""

    at: float
    payload: Any
    step: Step | None = None


def asked(chat: bool, body: dict[str, Any], model: str, words: Words, bos: list[int]) -> Asked:
    """Read a request the way vLLM does."""
    prompt = chat_text(body.get("messages")) if chat else body.get("prompt", "")
    ids = [int(token) for token in prompt] if isinstance(prompt, list) else [*bos, *words.encode(str(prompt))]
    logprobs = body.get("logprobs")
    if chat:
        logprobs = int(body.get("top_logprobs") or 0) if logprobs else None
    options = body.get("stream_options") or {}
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    return Asked(chat, str(body.get("model") or model), int(limit if limit is not None else 16), logprobs,
                 bool(body.get("return_token_ids")), bool(options.get("include_usage")), bool(body.get("stream")), ids,
                 str(prompt))  # fmt: skip


def steps_of(reply: Reply, request: Asked, words: Words, k: int | None) -> tuple[list[Step], str]:
    """The steps of a reply with their times, cut at max_tokens, and the finish reason."""
    if reply.trace is not None:
        steps = _trace_steps(reply)
    elif reply.steps is not None:
        steps = list(reply.steps) * reply.repeat
    else:
        pieces = (
            words.pieces(reply.text)
            if reply.text is not None
            else words.story(reply.tokens if reply.tokens is not None else request.max_tokens)
        )
        steps = _burst_steps(pieces, reply.bursts if k else [1], words, k)
    kept: list[Step] = []
    room = request.max_tokens
    clock = reply.first_s
    for index, step in enumerate(steps):
        at = step.at if step.at is not None else clock + (reply.step_s if index else 0.0)
        clock = at
        cut = step if reply.steps is not None or reply.trace is not None else replace(step, ids=step.ids[:room])
        if len(cut.ids) < len(step.ids):
            cut = replace(cut, text=words.decode(cut.ids))
        if room <= 0 and cut.text == step.text and reply.steps is None and reply.trace is None:
            break
        room -= len(cut.ids)
        kept.append(replace(cut, at=at))
    total = sum(len(step.ids) for step in kept)
    reason = "length" if total >= request.max_tokens else "stop"
    return kept, reason


def _burst_steps(pieces: list[str], bursts: list[int], words: Words, k: int | None) -> list[Step]:
    steps: list[Step] = []
    start = 0
    while start < len(pieces):
        size = 1 if not steps else max(1, bursts[(len(steps) - 1) % len(bursts)])
        part = pieces[start : start + size]
        start += size
        ids = [words.encode(piece)[0] for piece in part]
        drafted = k if k and steps and size > 1 else None
        steps.append(Step(ids, "".join(part), accepted=size - 1 if drafted else None, drafted=drafted))
    return steps


def trace_document(name: str) -> dict[str, Any]:
    """A recorded stream of ``tests/traces`` by name or path."""
    path = Path(name) if name.endswith(".json") else TRACES / f"{name}.json"
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return document


def _trace_steps(reply: Reply) -> list[Step]:
    assert reply.trace is not None
    document = trace_document(reply.trace)
    spec = ((document["final"].get("metrics") or {}).get("speculative_decoding") or {})  # fmt: skip
    accepted, drafted = list(spec.get("per_step_accepted") or []), list(spec.get("per_step_drafted") or [])
    steps: list[Step] = []
    for at, ids, text in document["events"]:
        if not ids and not text and not steps:
            continue  # the role chunk
        due = at / reply.speed if reply.speed else 0.0
        took = len(ids) - 1 if steps and accepted and _drafting(len(ids), accepted[0]) else None
        step = Step(list(ids), text, at=due)
        if took is not None:
            step = replace(step, accepted=accepted.pop(0), drafted=drafted.pop(0))
        steps.append(step)
    return steps


def _drafting(size: int, accepted: int) -> bool:
    return size == accepted + 1 or 1 < size <= accepted


def payloads(reply: Reply, request: Asked, words: Words, k: int | None) -> tuple[list[Item], dict[str, Any] | None]:
    """All payloads of a streamed reply in order, without the fault; and the metrics object that was used."""
    steps, reason = steps_of(reply, request, words, k)
    reason_out = reason if reply.finish_reason == "auto" else reply.finish_reason
    usage = _usage(reply, request, steps)
    metrics = _metrics(reply, steps, k)
    items: list[Item] = []
    if request.chat and reply.role_chunk:
        first = steps[0].at or 0.0 if steps else reply.first_s
        role = {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
        items.append(
            Item(reply.role_at if reply.role_at is not None else first, _chunk(request, reply, [role], first=True))
        )
    running = 0
    for index, step in enumerate(steps):
        running += len(step.ids)
        last = index == len(steps) - 1 and not reply.finish_alone
        choice = _choice(reply, request, step, index == 0, reason_out if last else None, words)
        body = _chunk(request, reply, [choice], first=index == 0 and not request.chat)
        if reply.usage == "running":
            body["usage"] = {**(usage or {}), "completion_tokens": running}
        if reply.usage == "twice" and last:
            body["usage"] = usage
        items.append(Item(step.at or 0.0, body, step))
    end = steps[-1].at or 0.0 if steps else reply.first_s
    if reply.finish_alone or not steps:
        items.append(Item(end, _chunk(request, reply, [_choice(reply, request, Step(), False, reason_out, words)])))
    if reply.usage != "none" and request.usage:
        tail = {**_chunk(request, reply, []), "usage": usage, "system_fingerprint": FINGERPRINT}
        if metrics is not None:
            tail["metrics"] = metrics
        items.append(Item(end, tail))
    return items, metrics


def _chunk(request: Asked, reply: Reply, choices: list[Any], first: bool = False) -> dict[str, Any]:
    kind = "chat.completion.chunk" if request.chat else "text_completion"
    body = {"id": "cmpl-0", "object": kind, "created": 1700000000, "model": request.model, "choices": choices}
    if first and request.chat and request.ids and reply.prompt_ids:
        body["prompt_token_ids"] = request.prompt_ids
    return body


def _choice(reply: Reply, request: Asked, step: Step, first: bool, reason: str | None, words: Words) -> Any:
    if step.choice is not None:
        return step.choice
    choice: dict[str, Any] = {"index": 0}
    if request.chat:
        delta: dict[str, Any] = {"content": step.text} if step.text or not step.reasoning else {}
        choice["delta"] = {**delta, "reasoning": step.reasoning} if step.reasoning else delta
    else:
        choice["text"] = step.text
    choice["logprobs"] = step.logprobs if step.logprobs is not None else _logprobs(request, step, words)
    choice["finish_reason"] = reason
    choice["stop_reason"] = reply.stop_reason if reason else None
    if request.ids and reply.token_ids:
        choice["token_ids"] = step.ids
        if first and not request.chat and reply.prompt_ids:
            choice["prompt_token_ids"] = request.prompt_ids
    return choice


def _logprobs(request: Asked, step: Step, words: Words) -> Any:
    if request.logprobs is None or not step.ids:
        return None
    texts = [words.decode([token]) for token in step.ids]
    if "".join(texts) != step.text:
        texts = [step.text, *[""] * (len(step.ids) - 1)]
    tops = [[(text, -0.25), ("~", -1.75)][: request.logprobs] for text in texts]
    if not request.chat:
        return {"tokens": texts, "token_logprobs": [-0.25] * len(texts), "text_offset": [0] * len(texts),
                "top_logprobs": [dict(top) for top in tops]}  # fmt: skip
    return {"content": [{"token": text, "logprob": -0.25, "bytes": list(text.encode()),
                         "top_logprobs": [{"token": word, "logprob": value, "bytes": list(word.encode())} for word, value in top]}
                        for text, top in zip(texts, tops, strict=True)]}  # fmt: skip


def _usage(reply: Reply, request: Asked, steps: list[Step]) -> dict[str, Any]:
    count = sum(len(step.ids) for step in steps)
    if isinstance(reply.usage, dict):
        return reply.usage
    if reply.trace is not None:
        recorded: dict[str, Any] = trace_document(reply.trace)["final"]["usage"]
        return recorded
    prompt = len(request.prompt_ids)
    return {"prompt_tokens": prompt, "total_tokens": prompt + count, "completion_tokens": count}


def _metrics(reply: Reply, steps: list[Step], k: int | None) -> dict[str, Any] | None:
    if reply.metrics == "none":
        return None
    if isinstance(reply.metrics, dict):
        return reply.metrics
    if reply.trace is not None:
        recorded: dict[str, Any] | None = trace_document(reply.trace)["final"]["metrics"]
        return recorded
    out: dict[str, Any] = dict(reply.timings or {})
    drafting = [(step.accepted or 0, step.drafted) for step in steps if step.drafted]
    if k:
        accepted = sum(item[0] for item in drafting)
        drafted = sum(item[1] for item in drafting)
        out["speculative_decoding"] = {
            "mean_acceptance_length": 1 + accepted / len(drafting) if drafting else 1.0,
            "draft_acceptance_rate": accepted / drafted if drafted else 0.0,
            "acceptance_histogram": [sum(item[0] == size for item in drafting) for size in range(k + 1)],
            "num_spec_steps": len(drafting), "num_accepted_draft_tokens": accepted, "num_draft_tokens": drafted,
            "num_spec_tokens": k,
            "per_step_accepted": [item[0] for item in drafting] or None,
            "per_step_drafted": [item[1] for item in drafting] or None,
        }  # fmt: skip
    return out or None
