"""Benchmarks on disk: one JSON line a thing, appended and flushed as it happens, so that nothing measured is lost.

The first line is the header; then sessions, samples, splits and endings in order. A torn last line (a crash in
mid-write) is left out and counted. Lines are checked on reading (``checked``, and against the plan), since a file may
come from anyone.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeVar

from specdemo.bench.identity import Split
from specdemo.bench.record import SCHEMA, BenchHeader, BenchRecord, Ending, Session
from specdemo.bench.sample import Sample
from specdemo.bench.schedule import schedule
from specdemo.core.codec import encode
from specdemo.errors import StoreError, UsageError
from specdemo.runs.checked import Misshapen, parse, shaped, unsound
from specdemo.runs.stored import MAX_DRAFT

MAX_LINE_BYTES = 64 * 1024 * 1024
MAX_LINES = 2_000_000

Entry = Session | Sample | Split | Ending
_TYPES: dict[str, type[Entry]] = {"session": Session, "sample": Sample, "split": Split, "ending": Ending}
T = TypeVar("T")
_NAMES = {cls: name for name, cls in _TYPES.items()}


class BenchFile:
    """An open benchmark file: append entries, each on disk before the call returns."""

    def __init__(self, path: Path, handle: IO[bytes]) -> None:
        self.path = path
        self._handle = handle

    @classmethod
    def create(cls, path: Path, header: BenchHeader) -> BenchFile:
        """Start a new file; an existing one is never overwritten. Raises StoreError."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = cls(path, path.open("xb"))
        except FileExistsError:
            raise StoreError(f"{path} exists already; resume it with --resume, or choose another name.") from None
        except OSError as error:
            raise StoreError(f"{path} can't be written: {error.strerror or error}.") from None
        file._write({"type": "bench", **encode(header), "schema": header.schema})
        return file

    @classmethod
    def reopen(cls, path: Path) -> BenchFile:
        """Open for more entries; a torn last line is cut off first, a whole one without its end gets it.

        Nothing is changed in a file that is no sound benchmark. Raises StoreError.
        """
        load(path)  # cutting the last line off a file of another kind would destroy what is not ours
        try:
            handle = path.open("r+b")
            end = _whole_lines(handle)
            handle.seek(end)
            if _object(handle.read()) is None:
                handle.truncate(end)
                handle.seek(end)
            else:
                handle.write(b"\n")
        except OSError as error:
            raise StoreError(f"{path} can't be opened: {error.strerror or error}.") from None
        return cls(path, handle)

    def append(self, entry: Entry) -> None:
        """Write one entry. Raises StoreError when the disk refuses."""
        self._write({"type": _NAMES[type(entry)], **encode(entry)})

    def close(self) -> None:
        """Close the file; harmless twice."""
        self._handle.close()

    def _write(self, document: dict[str, Any]) -> None:
        line = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        try:
            self._handle.write(line.encode("utf-8", "replace") + b"\n")
            self._handle.flush()
        except OSError as error:
            raise StoreError(
                f"{self.path} can't be written: {error.strerror or error}; what it holds is kept."
            ) from None


def _whole_lines(handle: IO[bytes]) -> int:
    """Where the last whole line ends."""
    end = handle.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - 65536)
        handle.seek(start)
        cut = handle.read(end - start).rfind(b"\n")
        if cut >= 0:
            return start + cut + 1
        end = start
    return 0


def load(path: Path) -> BenchRecord:
    """Read a benchmark file, finished or not. Raises StoreError with one sentence."""
    try:
        with path.open("rb") as handle:
            return _read(handle, path.name)
    except OSError as error:
        raise StoreError(f"{path.name} can't be read: {error.strerror or error}.") from None


def _read(handle: IO[bytes], name: str) -> BenchRecord:
    header: BenchHeader | None = None
    asked: frozenset[str] = frozenset()
    found: dict[type[Entry], list[Entry]] = {cls: [] for cls in _NAMES}
    torn = 0
    for number, line in _lines(handle, name):
        document = _object(line)
        if document is None:
            if line.endswith(b"\n") or header is None:
                raise StoreError(f"{name} is no benchmark file: line {number} is not a JSON object.")
            torn += 1
            continue
        fault = unsound(document)
        if fault is not None:
            raise StoreError(f"{name} is no benchmark file: line {number} can't be used, {fault}.")
        kind = document.pop("type", None)
        if header is None:
            if kind != "bench" or document.get("schema") != SCHEMA:
                raise StoreError(f"{name} is no benchmark file of schema {SCHEMA}.")
            header = _shape(BenchHeader, document, name, number)
            if header.started_at < 0:
                raise StoreError(f"{name} is no benchmark file: its date lies outside of time.")
            _check_plan(header, name)
            asked = frozenset(prompt.id for prompt in header.plan.prompts)
        elif kind == "bench":
            raise StoreError(f"{name} is damaged: line {number} begins another benchmark.")
        elif isinstance(kind, str) and kind in _TYPES:
            entry = _shape(_TYPES[kind], document, name, number)
            fault = _entry_fault(entry, header, asked)
            if fault is not None:
                raise StoreError(f"{name} is damaged: line {number} {fault}.")
            found[type(entry)].append(entry)
    if header is None:
        raise StoreError(f"{name} is no benchmark file: it is empty.")
    return BenchRecord(
        header,
        tuple(entry for entry in found[Session] if isinstance(entry, Session)),
        tuple(entry for entry in found[Sample] if isinstance(entry, Sample)),
        tuple(entry for entry in found[Split] if isinstance(entry, Split)),
        tuple(entry for entry in found[Ending] if isinstance(entry, Ending)),
        torn,
    )


def _check_plan(header: BenchHeader, name: str) -> None:
    """A plan that could never have been run: its results can't be computed either."""
    try:
        schedule(header.plan)
    except UsageError as error:
        raise StoreError(f"{name} is no benchmark file; its plan is impossible: {error}") from None


def _entry_fault(entry: Entry, header: BenchHeader, asked: frozenset[str]) -> str | None:
    """What one entry says that the plan or its own numbers rule out."""
    if isinstance(entry, Split) and entry.prompt_id not in asked:
        return "tells of a prompt that is not in the plan"
    if not isinstance(entry, Split | Ending) and entry.started_at < 0:
        return "has a date outside of time"
    if not isinstance(entry, Sample):
        return None
    place = entry.place
    if place.prompt_id not in asked:
        return "tells of a prompt that is not in the plan"
    if place.level not in header.plan.levels:
        return "tells of a concurrency that is not in the plan"
    if len(entry.histogram) > MAX_DRAFT + 1:
        return f"drafts more than {MAX_DRAFT} tokens in a step"
    if entry.ended_at < entry.started_at:
        return "ends before it starts"
    return None


def _lines(handle: IO[bytes], name: str) -> Iterator[tuple[int, bytes]]:
    for number in range(1, MAX_LINES + 2):
        line = handle.readline(MAX_LINE_BYTES + 1)
        if not line:
            return
        if len(line) > MAX_LINE_BYTES or number > MAX_LINES:
            raise StoreError(f"{name} is over the limit of {MAX_LINES:,} lines of at most 64 MiB.")
        if line.strip():
            yield number, line


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = parse(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _shape(cls: type[T], document: dict[str, Any], name: str, number: int) -> T:
    try:
        return shaped(cls, document)
    except Misshapen as fault:
        where = f"{fault.place} is not valid ({fault.why})" if fault.place else fault.why
        raise StoreError(f"{name} line {number}: {where}.") from None
