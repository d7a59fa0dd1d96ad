"""A user's file → prompts, with every refused line and its reason; nothing is dropped silently.

Forms: JSONL, JSON (an array, one object, or several pretty-printed values in a row, whatever the name says), CSV / TSV
with a prompt column, plain text with one prompt a line. UTF-8 with or without BOM; lines end at LF or CRLF only, so
U+2028, U+2029, NEL and the like stay inside their row. Row shapes: see dataset_rows.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from specdemo.bench.dataset_rows import TEXT_KEYS, Row, RowRefused, looks_like_messages, read_row
from specdemo.bench.prompts import BenchPrompt
from specdemo.errors import PromptError

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class DatasetLimits:
    """What an upload may hold; every message that enforces one names it."""

    file_bytes: int = 64 * MIB
    line_bytes: int = 1 * MIB
    rows: int = 10_000


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


Raw = tuple[int, object]
"""(line number, decoded value or RowRefused)"""


def read_path(path: Path, *, limits: DatasetLimits = DatasetLimits()) -> Dataset:
    """Read a file. Raises PromptError with one sentence when it can't be used at all."""
    try:
        if not path.is_file():
            raise PromptError(f"{path.name}: there is no such file.")
        size = path.stat().st_size
        if size > limits.file_bytes:
            raise PromptError(_too_big(path.name, size, limits))
        with path.open("rb") as handle:
            return read_stream(handle, path.name, limits=limits)
    except OSError as error:
        raise PromptError(f"{path.name} can't be read: {error.strerror or 'unknown reason'}.") from None


def read_bytes(data: bytes, name: str, *, limits: DatasetLimits = DatasetLimits()) -> Dataset:
    """Read an upload held in memory; as ``read_path``."""
    if len(data) > limits.file_bytes:
        raise PromptError(_too_big(name, len(data), limits))
    return read_stream(io.BytesIO(data), name, limits=limits)


def read_stream(handle: IO[bytes], name: str, *, limits: DatasetLimits = DatasetLimits()) -> Dataset:
    """Read a binary stream; never holds a line longer than the limit."""
    lines = list(_lines(handle, name, limits))
    if all(isinstance(text, str) and not text.strip() for _, text in lines):
        raise PromptError(f"{name} is empty: it holds no prompt.")
    suffix = Path(name).suffix.lower()
    if suffix in (".csv", ".tsv"):
        form, raws = "CSV", _csv(lines, name, "\t" if suffix == ".tsv" else None)
    elif suffix in (".jsonl", ".json", ".ndjson") or _starts_like_json(lines):
        form, raws = _json(lines, name)
    else:
        form, raws = "plain text", [(n, text) for n, text in lines if isinstance(text, RowRefused) or text.strip()]
    if len(raws) > limits.rows:
        raise PromptError(f"{name} has {len(raws):,} rows, the limit is {limits.rows:,}.")
    return _collect(name, form, raws)


def _too_big(name: str, size: int, limits: DatasetLimits) -> str:
    return f"{name} is {size / MIB:,.0f} MiB, the limit for a prompt file is {limits.file_bytes / MIB:,.0f} MiB."


_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "an image"),
)


def _check_kind(head: bytes, name: str) -> None:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            raise PromptError(f"{name} is {kind}, not text; export it as JSONL, CSV or plain text in UTF-8.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (head.count(b"\x00") > len(head) // 4 and head):
        raise PromptError(f"{name} is UTF-16 (or binary), not UTF-8; save it as UTF-8.")


def _lines(handle: IO[bytes], name: str, limits: DatasetLimits) -> Iterator[tuple[int, str | RowRefused]]:
    """Numbered lines without their ends; a line over the limit is skipped piece by piece and refused."""
    total = 0
    number = 0
    while piece := handle.readline(limits.line_bytes + 1):
        number += 1
        total += len(piece)
        if number == 1:
            _check_kind(piece[:4096], name)
            piece = piece.removeprefix(b"\xef\xbb\xbf")
        if len(piece) > limits.line_bytes and not piece.endswith(b"\n"):
            while rest := handle.readline(limits.line_bytes):
                total += len(rest)
                if total > limits.file_bytes:
                    raise PromptError(_too_big(name, total, limits))
                if rest.endswith(b"\n"):
                    break
            yield number, RowRefused(f"longer than the limit of {limits.line_bytes / MIB:,.0f} MiB a line")
            continue
        if total > limits.file_bytes:
            raise PromptError(_too_big(name, total, limits))
        try:
            text = piece.decode("utf-8")
        except UnicodeDecodeError as error:
            raise PromptError(
                f"{name} is not UTF-8: line {number} holds the byte 0x{piece[error.start]:02x}; save the file as UTF-8."
            ) from None
        if "\x00" in text:
            raise PromptError(f"{name} holds a zero byte in line {number}, so it is not a text file.")
        yield number, text.removesuffix("\n").removesuffix("\r")


def _starts_like_json(lines: list[tuple[int, str | RowRefused]]) -> bool:
    first = next((text for _, text in lines if isinstance(text, str) and text.strip()), "").lstrip()
    if not first.startswith(("{", "[")):
        return False
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return first.rstrip() in ("{", "[")
    return True


def _json(lines: list[tuple[int, str | RowRefused]], name: str) -> tuple[str, list[Raw]]:
    rows = [(n, text) for n, text in lines if isinstance(text, RowRefused) or text.strip()]
    parsed: list[Raw] = [(n, text if isinstance(text, RowRefused) else _value(text)) for n, text in rows]
    if len(parsed) == 1 and not isinstance(parsed[0][1], RowRefused):
        return "JSON", _unwrap(*parsed[0])
    first = parsed[0][1]
    if not isinstance(first, RowRefused) or not isinstance(rows[0][1], str):
        return "JSONL", parsed
    whole = _several(lines)
    if isinstance(whole, list):
        return "JSON", _unwrap(*whole[0]) if len(whole) == 1 else whole
    opening = rows[0][1].strip()
    if opening in ("[", "{") or all(isinstance(value, RowRefused) for _, value in parsed):
        raise PromptError(
            f"{name} is not valid JSON ({whole}); expected one JSON value a line, or an array of prompts."
        )
    return "JSONL", parsed


def _value(text: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        return RowRefused(f"not valid JSON ({error.msg} at column {error.colno})")
    except RecursionError:
        return RowRefused("its JSON is nested too deeply")
    except ValueError:
        return RowRefused("its JSON holds a number that is too long")


def _several(lines: list[tuple[int, str | RowRefused]]) -> list[Raw] | str:
    """Whole-file JSON: one value, or several in a row; else the reason why not."""
    text = "\n".join(line if isinstance(line, str) else "" for _, line in lines)
    decoder, at, found = json.JSONDecoder(), 0, list[Raw]()
    while True:
        while at < len(text) and text[at] in " \t\r\n":
            at += 1
        if at >= len(text):
            return found
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError as error:
            return f"{error.msg} at line {error.lineno}, column {error.colno}"
        except (RecursionError, ValueError):
            return "nested too deeply, or a number is too long"
        found.append((text.count("\n", 0, at) + 1, value))
        at = end


def _unwrap(line: int, value: object) -> list[Raw]:
    """Rows of a whole-file value: an array, an object that wraps one, or a single row. Lines are item numbers then."""
    if isinstance(value, dict):
        wrapped = next(
            (value[key] for key in ("prompts", "data", "rows", "items") if isinstance(value.get(key), list)), None
        )
        if wrapped is not None:
            return list(enumerate(wrapped, 1))
    if isinstance(value, list) and not looks_like_messages(value):
        return list(enumerate(value, 1))
    return [(line, value)]


def _csv(lines: list[tuple[int, str | RowRefused]], name: str, delimiter: str | None) -> list[Raw]:
    too_long: list[Raw] = [(n, text) for n, text in lines if isinstance(text, RowRefused)]
    texts = [text if isinstance(text, str) else "" for _, text in lines]
    head = next((text for text in texts if text.strip()), "")
    if delimiter is None:
        delimiter = max(",;\t", key=head.count)
    reader = csv.reader((text + "\n" for text in texts), delimiter=delimiter)
    raws: list[Raw] = []
    columns: list[str] | None = None
    start = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            raws.append((reader.line_num, RowRefused(f"not valid CSV ({error})")))
            continue
        line, start = start, reader.line_num + 1
        if not any(cell.strip() for cell in cells):
            continue
        if columns is None:
            columns = [cell.strip().lower() for cell in cells]
            if any(column in TEXT_KEYS for column in columns):
                continue
            if len(cells) > 1:
                raise PromptError(f"{name} has no column named prompt, question, instruction, query, text or input.")
            columns = ["prompt"]
        if len(cells) > len(columns):
            raws.append((line, RowRefused(f"{len(cells)} cells under {len(columns)} columns")))
            continue
        raws.append((line, {key: cell for key, cell in zip(columns, cells, strict=False) if cell or key in TEXT_KEYS}))
    return sorted(raws + too_long, key=lambda raw: raw[0])


def _collect(name: str, form: str, raws: Iterable[Raw]) -> Dataset:
    prompts: list[BenchPrompt] = []
    refused: list[Refused] = []
    shapes: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    seen: set[object] = set()
    names: set[str] = set()
    repeats = left_out = 0
    for line, value in raws:
        try:
            if isinstance(value, RowRefused):
                raise value
            row = read_row(value)
        except RowRefused as reason:
            refused.append(Refused(line, str(reason)))
            continue
        shapes[row.shape] += 1
        ignored.update(row.ignored)
        left_out += row.turns_left_out > 0
        content = (row.messages, row.text, row.token_ids)
        repeats += content in seen
        seen.add(content)
        prompts.append(_prompt(row, line, names))
    notes = []
    if ignored:
        held = ", ".join(f"{key} ({count})" for key, count in sorted(ignored.items()))
        notes.append(f"settings inside rows are not used, the run's settings hold for both engines: {held}")
    if left_out:
        notes.append(
            f"{left_out} rows have turns after the one that is sent (a recorded answer, later questions), left out"
        )
    if repeats:
        notes.append(f"{repeats} rows repeat an earlier prompt")
    return Dataset(name, form, tuple(prompts), tuple(refused), tuple(sorted(shapes.items())), tuple(notes))


def _prompt(row: Row, line: int, names: set[str]) -> BenchPrompt:
    name = row.id or f"row-{line}"
    if name in names:
        name = f"{name}-line-{line}"
    while name in names:
        name += "+"
    names.add(name)
    return BenchPrompt(
        name, row.category or "own data", row.messages, row.text, row.token_ids, None, None, line, row.turns_left_out
    )
