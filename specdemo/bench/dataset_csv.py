"""CSV or TSV of a user's file → rows, each with the line where it begins. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence

from specdemo.bench.dataset_lines import Line
from specdemo.bench.dataset_rows import CONTENT_KEYS, TEXT_KEYS, RowRefused, printable
from specdemo.errors import PromptError

_SAID = re.compile(r'"?sep=([,;|:^~\t])"?', re.IGNORECASE)
"""The line above the header in which a spreadsheet names the sign between cells."""


def csv_rows(lines: Sequence[Line], name: str, delimiter: str | None, notes: list[str]) -> Iterator[tuple[int, object]]:
    """(line, columns by name or RowRefused); ``delimiter`` None finds it in the first line. Raises PromptError.

    ``notes`` gets a sentence when the first line is taken for a prompt.
    """
    place, head = next(
        ((place, line) for place, line in enumerate(lines) if isinstance(line, str) and line.strip()), (0, "")
    )
    said = _SAID.fullmatch(head.strip(" \r"))
    if said is not None:
        lines = [*lines[:place], "", *lines[place + 1 :]]
    sign = said[1] if said is not None else delimiter or _delimiter(head)
    columns: list[str] | None = None
    for line, cells in _cells(lines, sign):
        if isinstance(cells, RowRefused):
            yield line, cells
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if columns is None:
            columns = _columns(cells, name)
            if columns != ["prompt"] or cells[0].strip().lower() == "prompt":
                continue
            shown = printable(cells[0].strip())[:40]
            notes.append(f"no column has a known name, so the first line is a prompt too: {shown}")
        if len(cells) > len(columns):
            yield line, RowRefused(f"{len(cells)} cells under {len(columns)} columns")
            continue
        yield line, {key: cell for key, cell in zip(columns, cells, strict=False) if cell or key in TEXT_KEYS}


def _delimiter(head: str) -> str:
    """The sign that gives the first line a column of a known name, else the most frequent one."""

    def known(sign: str) -> int:
        try:
            cells = next(csv.reader([head], delimiter=sign), [])
        except csv.Error:  # a field that is too long, or a lone CR: told when the rows are read
            return 0
        return len(cells) if any(cell.strip().lower() in TEXT_KEYS for cell in cells) else 0

    best = max(",;\t|", key=known)
    return best if known(best) else max(",;\t", key=head.count)


def _columns(cells: Sequence[str], name: str) -> list[str]:
    """The names of the columns; a lone column without a known name is one prompt a line."""
    columns = [cell.strip().lower() or f"column {place}" for place, cell in enumerate(cells, 1)]
    if any(column in TEXT_KEYS for column in columns):
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise PromptError(f'{name} has two columns named "{twice[:40]}"; rename or remove one.')
        return columns
    if len(cells) > 1 or columns[0] in CONTENT_KEYS:
        raise PromptError(f"{name} has no column named prompt, question, instruction, query, text or input.")
    return ["prompt"]


def _cells(lines: Sequence[Line], delimiter: str) -> Iterator[tuple[int, list[str] | RowRefused]]:
    """Each row with the line where it begins; a line that was too long is a row of its own."""
    feed = _Feed(lines)
    reader = csv.reader(feed, delimiter=delimiter, strict=True)
    while True:
        start = feed.read + 1
        try:
            cells: list[str] | RowRefused = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            cells = RowRefused(f"not valid CSV ({error})")
            if str(error).startswith("unexpected end"):
                cells = RowRefused("a quote in it is never closed, so no line after it could be read")
            elif str(error).startswith("field larger"):
                # The reader begins anew in the middle of a quoted field, and would take the rest of it for rows.
                feed.leave_quotes(start)
        refused = feed.refused
        feed.refused = []
        yield from refused  # a quoted field that such a line was part of has a hole, so its row is refused with it
        if not refused:
            yield start, cells


class _Feed:
    """Lines for the reader; ``read`` counts those given, ``refused`` holds the numbers and reasons of unusable ones."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self._lines = lines
        self.read = 0
        self.refused: list[tuple[int, RowRefused]] = []

    def __iter__(self) -> _Feed:
        return self

    def __next__(self) -> str:
        if self.read >= len(self._lines):
            raise StopIteration
        line = self._lines[self.read]
        self.read += 1
        if isinstance(line, RowRefused):
            self.refused.append((self.read, line))
            return "\n"
        return line + "\n"

    def leave_quotes(self, start: int) -> None:
        """Skip to the end of the quoted field in which the row that began at ``start`` was given up."""
        quotes = sum(line.count('"') for line in self._lines[start - 1 : self.read] if isinstance(line, str))
        while quotes % 2 and self.read < len(self._lines):
            quotes += next(self).count('"')
