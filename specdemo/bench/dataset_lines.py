"""The lines of a user's file, within limits; what is no text in UTF-8 is refused as a whole."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from specdemo.bench.dataset_rows import RowRefused
from specdemo.errors import PromptError

MIB = 1024 * 1024
LINES_A_ROW = 100
"""Lines of the file for each row of the limit: a pretty-printed conversation has many, and blank ones count too."""


@dataclass(frozen=True, slots=True)
class DatasetLimits:
    """What an upload may hold; every message that enforces one names it."""

    file_bytes: int = 64 * MIB
    line_bytes: int = 1 * MIB
    rows: int = 10_000

    @property
    def lines(self) -> int:
        """Lines that are read at most, blank ones counted."""
        return LINES_A_ROW * self.rows


Line = str | RowRefused
"""A line without its end, or why it can't be used."""

_MAGIC = (
    (b"PK\x03\x04", "a ZIP archive or an Excel workbook"),
    (b"\xd0\xcf\x11\xe0", "an old Office document"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"PK\x05\x06", "a ZIP archive or an Excel workbook"),
    *((b"BZh%d1AY&SY" % level, "a compressed file") for level in range(1, 10)),
    *(
        (magic, "a compressed file")
        for magic in (b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"7z\xbc\xaf", b"\x04\x22\x4d\x18")
    ),
)


def read_lines(handle: IO[bytes], name: str, limits: DatasetLimits) -> list[Line]:
    """All lines, the first at index 0; a line over the limit is skipped piece by piece and refused."""
    found: list[Line] = []
    for number, line in enumerate(_lines(handle, name, limits), 1):
        if number > limits.lines:
            raise PromptError(f"{name} has more than {limits.lines:,} lines, the most that are read; split it.")
        found.append(line)
    return found


def too_big(name: str, size: int, limits: DatasetLimits) -> str:
    """A file over the limit."""
    shown = math.ceil(10 * size / MIB) / 10  # rounded up, so that it never equals the limit
    return f"{name} is {shown:,g} MiB, the limit for a prompt file is {limits.file_bytes / MIB:,.0f} MiB."


def _check_kind(head: bytes, name: str) -> None:
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            raise PromptError(f"{name} is {kind}, not text; export it as JSONL, CSV or plain text in UTF-8.")
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or (head.count(b"\x00") > len(head) // 4 and head):
        raise PromptError(f"{name} is UTF-16 (or binary), not UTF-8; save it as UTF-8.")


def _lines(handle: IO[bytes], name: str, limits: DatasetLimits) -> Iterator[Line]:
    first = handle.readline(limits.line_bytes + 1)
    _check_kind(first[:4096], name)
    if b"\r" in first.rstrip(b"\r\n"):
        handle, first = _cr_only(handle, first, name, limits)
    piece = first.removeprefix(b"\xef\xbb\xbf")
    number, total = 0, len(first)
    while piece:
        number += 1
        if len(piece) > limits.line_bytes and not piece.endswith(b"\n"):
            while rest := handle.readline(limits.line_bytes):
                total += len(rest)
                if total > limits.file_bytes:
                    raise PromptError(too_big(name, total, limits))
                if rest.endswith(b"\n"):
                    break
            yield RowRefused(f"longer than the limit of {limits.line_bytes / MIB:,.0f} MiB a line")
        else:
            if total > limits.file_bytes:
                raise PromptError(too_big(name, total, limits))
            yield _text(piece, number, name)
        piece = handle.readline(limits.line_bytes + 1)
        total += len(piece)


def _cr_only(handle: IO[bytes], first: bytes, name: str, limits: DatasetLimits) -> tuple[IO[bytes], bytes]:
    """Lines of old Macs end at CR alone; a file that has a LF anywhere but at its end is left as it is."""
    data = first + handle.read(limits.file_bytes + 1)
    if len(data) > limits.file_bytes:
        raise PromptError(too_big(name, len(data), limits))
    inside = data.rstrip(b"\r\n")
    again = io.BytesIO(data if b"\n" in inside else inside.replace(b"\r", b"\n"))
    return again, again.readline(limits.line_bytes + 1)


def _text(piece: bytes, number: int, name: str) -> str:
    try:
        text = piece.decode("utf-8")
    except UnicodeDecodeError as error:
        raise PromptError(
            f"{name} is not UTF-8: line {number} holds the byte 0x{piece[error.start]:02x}; save the file as UTF-8."
        ) from None
    if "\x00" in text:
        raise PromptError(f"{name} holds a zero byte in line {number}, so it is not a text file.")
    # A file joined from others has a mark at the start of each.
    return text.removesuffix("\n").removesuffix("\r").lstrip("\ufeff")
