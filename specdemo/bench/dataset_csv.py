"""CSV or TSV of a user's file → rows, each with the line where it begins. Pure."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from specdemo.bench.dataset_lines import Line
from specdemo.bench.dataset_rows import TEXT_KEYS, RowRefused
from specdemo.errors import PromptError


def csv_rows(lines: Sequence[Line], name: str, delimiter: str | None) -> Iterator[tuple[int, object]]:
    """(line, columns by name or RowRefused); ``delimiter`` None finds it in the first line. Raises PromptError."""
    head = next((line for line in lines if isinstance(line, str) and line.strip()), "")
    columns: list[str] | None = None
    for line, cells in _cells(lines, delimiter or max(",;\t", key=head.count)):
        if isinstance(cells, RowRefused):
            yield line, cells
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if columns is None:
            columns = _columns(cells, name)
            if columns != ["prompt"] or cells[0].strip().lower() == "prompt":
                continue
        if len(cells) > len(columns):
            yield line, RowRefused(f"{len(cells)} cells under {len(columns)} columns")
            continue
        yield line, {key: cell for key, cell in zip(columns, cells, strict=False) if cell or key in TEXT_KEYS}


def _columns(cells: Sequence[str], name: str) -> list[str]:
    """The names of the columns; a lone column without a known name is one prompt a line."""
    columns = [cell.strip().lower() or f"column {place}" for place, cell in enumerate(cells, 1)]
    if any(column in TEXT_KEYS for column in columns):
        twice = next((column for column in columns if columns.count(column) > 1), None)
        if twice is not None:
            raise PromptError(f'{name} has two columns named "{twice[:40]}"; rename or remove one.')
        return columns
    if len(cells) > 1:
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
