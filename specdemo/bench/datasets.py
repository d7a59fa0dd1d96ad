"""A user's file → prompts, with every refused line and its reason; nothing is dropped silently.

Forms: JSONL, JSON (an array, one object, or several pretty-printed values in a row, whatever the name says), CSV / TSV
with a prompt column, plain text with one prompt a line. UTF-8 with or without BOM; lines end at LF or CRLF, or at CR in
a file without these, so U+2028, U+2029, NEL and the like stay inside their row. Row shapes: see dataset_rows.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from specdemo.bench import dataset_json
from specdemo.bench.dataset_csv import csv_rows
from specdemo.bench.dataset_json import Form, Item, NotJson, RowTooLong, TooManyRows, value_of
from specdemo.bench.dataset_lines import MIB, DatasetLimits, Line, read_lines, too_big
from specdemo.bench.dataset_rows import Row, RowRefused, printable, read_row
from specdemo.bench.prompts import BenchPrompt
from specdemo.errors import PromptError

__all__ = ["Dataset", "DatasetLimits", "Refused", "read_bytes", "read_path", "read_stream"]


LIMITS = DatasetLimits()
NO_JSON = "not valid JSON"
MOST_KEYS = 20
"""Names of unused keys that a note tells at most."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A row that cannot be used. ``line`` counts lines of the file from 1."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True)
class Dataset:
    """What a file gave. ``shapes`` counts the forms of rows; ``notes`` say what was set aside and by which rule."""

    name: str
    form: str
    prompts: tuple[BenchPrompt, ...]
    refused: tuple[Refused, ...]
    shapes: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Rows seen, blank lines not counted."""
        return len(self.prompts) + len(self.refused)

    def sentence(self, shown: int = 5) -> str:
        """For example "2 of 4 usable; line 2: …; line 3: …", at most ``shown`` reasons and the number of the others."""
        parts = [f"{len(self.prompts)} of {self.rows} usable"]
        parts += [f"line {refused.line}: {refused.reason}" for refused in self.refused[:shown]]
        if len(self.refused) > shown:
            parts.append(f"and {len(self.refused) - shown} more lines refused")
        return "; ".join(parts)


def read_path(path: Path, *, limits: DatasetLimits = LIMITS) -> Dataset:
    """Read a file. Raises PromptError with one sentence when it can't be used at all."""
    try:
        if path.is_dir():
            raise PromptError(f"{printable(path.name or str(path))} is a folder, not a file.")
        if not path.exists():  # a pipe is read as it comes
            raise PromptError(f"{path.name}: there is no such file.")
        size = path.stat().st_size
        if size > limits.file_bytes:
            raise PromptError(too_big(path.name, size, limits))
        with path.open("rb") as handle:
            return read_stream(handle, path.name, limits=limits)
    except OSError as error:
        raise PromptError(f"{path.name} can't be read: {error.strerror or 'unknown reason'}.") from None


def read_bytes(data: bytes, name: str, *, limits: DatasetLimits = LIMITS) -> Dataset:
    """Read an upload held in memory; as ``read_path``."""
    if len(data) > limits.file_bytes:
        raise PromptError(too_big(name, len(data), limits))
    return read_stream(io.BytesIO(data), name, limits=limits)


def read_stream(handle: IO[bytes], name: str, *, limits: DatasetLimits = LIMITS) -> Dataset:
    """Read a binary stream; never holds a line longer than the limit, nor decodes more rows than the limit and one."""
    name = printable(name)
    lines = read_lines(handle, name, limits)
    suffix = Path(name).suffix.lower()
    notes: list[str] = []
    fault: str | None = None
    rows: Iterable[Item]
    if suffix in (".jsonl", ".json", ".ndjson") or _starts_like_json(lines, limits):
        form, rows, fault = _json(lines, name, limits, notes)
    elif suffix in (".csv", ".tsv"):
        form = "CSV"
        rows = (Item(*row) for row in csv_rows(lines, name, "\t" if suffix == ".tsv" else None, notes))
    else:
        form, rows = "plain text", (Item(number, line) for number, line in _filled(lines))
    found = _collect(name, form, rows, limits, notes)
    if not found.rows:
        raise PromptError(f"{name} is empty: it holds no prompt.")
    if fault is not None and not found.prompts and all(one.reason.startswith(NO_JSON) for one in found.refused):
        raise _no_json(name, fault)
    return found


def _no_json(name: str, why: str) -> PromptError:
    return PromptError(f"{name} is not valid JSON ({why}); expected one JSON value a line, or an array of prompts.")


def _filled(lines: Sequence[Line]) -> Iterator[tuple[int, Line]]:
    """Lines that are not blank, with their numbers from 1."""
    return ((n, line) for n, line in enumerate(lines, 1) if isinstance(line, RowRefused) or line.strip())


def _whole(lines: Sequence[Line]) -> str:
    return "\n".join(line if isinstance(line, str) else "" for line in lines)


def _starts_like_json(lines: Sequence[Line], limits: DatasetLimits) -> bool:
    """Whether a file of another name is JSON: its first line is a value, or the beginning of one that goes on."""
    number, first = next(((n, line) for n, line in _filled(lines) if isinstance(line, str)), (0, ""))
    if not first.lstrip().startswith(("{", "[")):
        return False
    if not isinstance(value_of(first), RowRefused):
        return True
    try:
        dataset_json.survey(_whole(lines), longest=limits.line_bytes, most=limits.rows)
    except NotJson as error:
        return error.line > number
    except (RowTooLong, TooManyRows):
        pass
    return True


def _json(
    lines: Sequence[Line], name: str, limits: DatasetLimits, notes: list[str]
) -> tuple[str, Iterable[Item], str | None]:
    """The form, its rows, and why the file as a whole is no JSON.

    It is one value a line, unless the first line is none, or the only one.
    """
    first = [line for _, line in zip(range(2), _filled(lines), strict=False)]
    by_line = (Item(n, line if isinstance(line, RowRefused) else value_of(line)) for n, line in _filled(lines))
    if not first or isinstance(first[0][1], RowRefused):
        return "JSONL", by_line, None
    if len(first) > 1 and not isinstance(value_of(first[0][1]), RowRefused):
        return "JSONL", by_line, None
    text = _whole(lines)
    try:
        form = dataset_json.survey(text, longest=limits.line_bytes, most=limits.rows)
    except NotJson as error:
        if first[0][1].strip() in ("[", "{", "[{") or len(first) == 1:
            raise _no_json(name, str(error)) from None
        return "JSONL", by_line, str(error)
    except TooManyRows:
        raise _too_many(name, limits) from None
    except RowTooLong as error:
        raise _too_long(name, error, limits) from None
    if form.listed and form.beside:
        notes.append(f"keys beside the list of rows are not used: {', '.join(_short(form.beside))}")
    return "JSON", _values(text, form, name, limits), None


def _short(keys: Sequence[str]) -> list[str]:
    return [printable(key)[:40] for key in keys[:10]]


def _values(text: str, form: Form, name: str, limits: DatasetLimits) -> Iterator[Item]:
    try:
        yield from dataset_json.rows(text, form, longest=limits.line_bytes)
    except RowTooLong as error:
        raise _too_long(name, error, limits) from None


def _too_many(name: str, limits: DatasetLimits) -> PromptError:
    return PromptError(f"{name} has more than {limits.rows:,} rows, the most that a file may have; split it.")


def _too_long(name: str, error: RowTooLong, limits: DatasetLimits) -> PromptError:
    size = f"{limits.line_bytes / MIB:,.0f} MiB"
    return PromptError(f"{name}: the row that begins in line {error.line} is longer than {size}, the most for one.")


def _collect(name: str, form: str, rows: Iterable[Item], limits: DatasetLimits, notes: list[str]) -> Dataset:
    """Rows one by one, each forgotten once it was read."""
    prompts: list[BenchPrompt] = []
    refused: list[Refused] = []
    shapes: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    unused: Counter[str] = Counter()
    seen: set[object] = set()
    names: Counter[str] = Counter()
    repeats = left_out = 0
    for found in rows:
        if len(prompts) + len(refused) >= limits.rows:
            raise _too_many(name, limits)
        try:
            if isinstance(found.value, RowRefused):
                raise found.value
            row = read_row(found.value)
        except RowRefused as reason:
            refused.append(Refused(found.line, str(reason) if found.item is None else f"item {found.item}: {reason}"))
            continue
        shapes[row.shape] += 1
        ignored.update(row.ignored)
        unused.update(row.unused)
        left_out += row.turns_left_out > 0
        content = (row.messages, row.text, row.token_ids)
        repeats += content in seen
        seen.add(content)
        prompts.append(_prompt(row, found, names))
    if ignored:
        held = _counted(ignored)
        notes.append(f"settings inside rows are not used, the run's settings hold for both engines: {held}")
    if unused:
        notes.append(f"other keys inside rows are not used: {_counted(unused)}")
    if left_out:
        notes.append(
            f"{left_out} rows have turns after the one that is sent (a recorded answer, later questions), left out"
        )
    if repeats:
        notes.append(f"{repeats} rows repeat an earlier prompt")
    return Dataset(name, form, tuple(prompts), tuple(refused), tuple(sorted(shapes.items())), tuple(notes))


def _counted(keys: Counter[str]) -> str:
    """Names with their rows, for example "model (1), seed (3)"; the most frequent ones of very many."""
    shown = sorted(keys.most_common(MOST_KEYS))
    more = [f"{len(keys) - MOST_KEYS} more"] if len(keys) > MOST_KEYS else []
    return ", ".join([f"{key} ({count})" for key, count in shown] + more)


def _prompt(row: Row, found: Item, names: Counter[str]) -> BenchPrompt:
    name = row.id or f"row-{found.item or found.line}"
    if names[name]:
        name = f"{name}-line-{found.line}"
    names[name] += 1
    while names[name] > 1:  # counted, so that many equal names cost no search
        name = f"{name}+{names[name] - 1}"
        names[name] += 1
    return BenchPrompt(
        name, row.category or "own data", row.messages, row.text, row.token_ids, None, None, found.line,
        row.turns_left_out,
    )  # fmt: skip
