"""Stored runs: reading documents that may come from anyone, and writing our own atomically.

A document is read in three steps: bounded JSON (size, depth, finite numbers, real text), the shape (``checked``, over
the core's own dataclasses; unknown keys are ignored), and what the shape cannot say (order of events, sizes that must
agree, counts from which lists are made). Each failure is one sentence of a StoreError.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from specdemo.core.codec import EVENT_TYPES, to_json
from specdemo.core.events import SIDES, Event, Failed, Finished, RequestSpeculation, Side, Started, Tokens
from specdemo.core.run import SCHEMA, Probe, RunHeader, RunRecord
from specdemo.errors import StoreError
from specdemo.runs.checked import Misshapen, parse, shaped, unsound
from specdemo.runs.log import MAX_EVENTS, MAX_SIZE

MAX_BYTES = 48_000_000
MAX_SECONDS = 1e7
MAX_DRAFT = 1024
"""Tokens that one step may draft: lists of that length are made from it."""
MAX_TOLD = 4_000_000
"""Tokens that chunks may count without bringing them, both sides together: each becomes a letter of a frame."""
MAX_USAGE = 10**9
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOKEN_BOUND = 2**31

T = TypeVar("T")


def load(path: Path) -> RunRecord:
    """Read one stored run. Raises StoreError."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise StoreError(f"{path.name} is larger than {MAX_BYTES // 1_000_000} MB, so it is no stored run.")
        return loads(path.read_bytes())
    except OSError as error:
        raise StoreError(f"{path.name} cannot be read: {error.strerror or error}.") from None


def loads(data: bytes | str) -> RunRecord:
    """A stored run from its text. Raises StoreError."""
    document = _bounded_json(data)
    if not isinstance(document, dict) or type(document.get("schema")) is not int:
        raise StoreError("This is no stored run: it has no schema number.")
    schema = document["schema"]
    if schema > SCHEMA:
        raise StoreError(
            f"This run was stored by a newer specdemo (schema {schema}, this one reads up to {SCHEMA}); "
            "update specdemo to open it."
        )
    if schema < 1:
        raise StoreError(f"This is no stored run: there is no schema {schema}.")
    listed = document.get("events")
    if not isinstance(listed, list) or len(listed) > MAX_EVENTS:
        raise StoreError(f"This is no stored run: it needs a list of at most {MAX_EVENTS} events.")
    header = _shape(RunHeader, document.get("header"), "header")
    events = tuple(_event(entry, index) for index, entry in enumerate(listed))
    probe = document.get("probe")
    record = RunRecord(header, events, None if probe is None else _shape(Probe, probe, "probe"))
    _check_header(header)
    _check_events(events)
    return record


def save(path: Path, record: RunRecord) -> None:
    """Write one run; the file is there as a whole or not at all. Raises StoreError."""
    text = json.dumps(to_json(record), allow_nan=False, separators=(",", ":"))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text + "\n")
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise StoreError(f"The run cannot be kept in {path}: {error.strerror or error}.") from None


def _bounded_json(data: bytes | str) -> Any:
    if len(data) > MAX_BYTES:
        raise StoreError(f"A stored run has at most {MAX_BYTES // 1_000_000} MB; this is larger.")
    try:
        document = parse(data)
    except (ValueError, RecursionError):
        # Among them: bytes that are not UTF-8, NaN, numbers of thousands of digits, endless nesting.
        raise StoreError("This is no stored run: it is not strict JSON.") from None
    fault = unsound(document)
    if fault is not None:
        raise StoreError(f"This is no stored run: {fault}.")
    return document


def _shape(kind: type[T], value: Any, where: str) -> T:
    try:
        return shaped(kind, value)
    except Misshapen as fault:
        place = ".".join(part for part in (where, fault.place) if part)
        raise StoreError(f"This is no stored run: {place} is not valid ({fault.why}).") from None


def _event(entry: Any, index: int) -> Event:
    kind = EVENT_TYPES.get(str(entry.get("type"))) if isinstance(entry, Mapping) else None
    if kind is None:
        # An event kind that this version does not know would change the numbers if it were skipped.
        raise StoreError(f"This stored run cannot be read: event {index} is of no kind that this specdemo knows.")
    event: Event = _shape(kind, entry, f"events.{index}")
    return event


def _check_header(header: RunHeader) -> None:
    if not _ID.fullmatch(header.id):
        raise StoreError("This is no stored run: its id may have letters, digits, - and _ only.")
    if set(header.plan.order) != set(SIDES):
        raise StoreError("This is no stored run: its order must name both sides.")
    prompt = header.plan.prompt
    if sum((bool(prompt.messages), prompt.text is not None, prompt.token_ids is not None)) != 1:
        raise StoreError("This is no stored run: it must have one prompt, as messages, text or token ids.")
    if any(facts is not None and (facts.k or 0) > MAX_DRAFT for facts in header.facts):
        raise StoreError(f"This is no stored run: it drafts more than {MAX_DRAFT} tokens a step.")


def _check_events(events: tuple[Event, ...]) -> None:
    latest = dict.fromkeys(SIDES, 0.0)
    told = dict.fromkeys(SIDES, 0)
    started, ended, size, unseen = set[Side](), set[Side](), 0, 0
    for index, event in enumerate(events):
        side = event.side
        fault = None
        # Only chunks and their end come in the order of their stamps: a counter may be read between these two.
        if event.at > MAX_SECONDS:
            fault = "has a time that no run can have"
        elif isinstance(event, Tokens | Finished) and event.at < latest[side]:
            fault = "goes back in time"
        elif side in ended:
            fault = "comes after its side's end"
        elif isinstance(event, Started) and side in started:
            fault = "starts its side again"
        elif isinstance(event, Tokens):
            size += len(event.text) + len(event.reasoning) + len(event.ids)
            if event.reported_total is not None:
                unseen += max(0, event.reported_total - told[side])
                told[side] = event.reported_total
            fault = _tokens_fault(event)
        elif isinstance(event, Finished):
            fault = _end_fault(event)
        if fault is None and (size > MAX_SIZE or unseen > MAX_TOLD):
            fault = "makes the run larger than any run can be"
        if fault is not None:
            raise StoreError(f"This is no stored run: event {index} {fault}.")
        if isinstance(event, Tokens):
            latest[side] = event.at
        if isinstance(event, Started):
            started.add(side)
        elif isinstance(event, Finished | Failed):
            ended.add(side)


def _tokens_fault(event: Tokens) -> str | None:
    if event.pieces is not None and len(event.pieces) != len(event.ids):
        return "has other numbers of token ids and token texts"
    if any(not 0 <= token < _TOKEN_BOUND for token in event.ids):
        return "has an impossible token id"
    return None


def _end_fault(event: Finished) -> str | None:
    usage = event.usage
    if usage is not None and max(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens or 0) > MAX_USAGE:
        return "counts more tokens than any run can have"
    return None if event.speculation is None else _speculation_fault(event.speculation)


def _speculation_fault(told: RequestSpeculation) -> str | None:
    """Totals and lists that no drafting could give; some numbers are sizes of lists that are made later."""
    accepted, drafted = told.accepted_per_step or (), told.drafted_per_step or ()
    if max(told.max_draft or 0, *accepted, *drafted, 0) > MAX_DRAFT or len(told.histogram or ()) > MAX_DRAFT + 1:
        return f"drafts more than {MAX_DRAFT} tokens in a step"
    pairs = zip(accepted, drafted, strict=True) if len(accepted) == len(drafted) else ()
    if told.accepted > told.drafted or any(took > offered for took, offered in pairs):
        return "accepts more tokens than were drafted"
    return None
