"""A report document in the terminal: the same words and numbers as in the file."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text as RichText

from specdemo.bench.report.blocks import Block, Code, Document, Figure, Items, Section, Table, Text
from specdemo.cli.output import calm

_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "faint": "dim"}


def shown(document: Document, *, titles: tuple[str, ...] = ()) -> RenderableType:
    """The sections whose titles are named (all without names)."""
    wanted = [section for section in document.sections if not titles or section.title in titles]
    return Group(*(_section(section) for section in wanted))


def _section(section: Section) -> RenderableType:
    blocks = [found for block in section.blocks if (found := _block(block)) is not None]
    indented = [Padding(block, (0, 0, 0, 2), expand=False) for block in blocks]
    return Group(RichText(section.title, "bold"), *indented, RichText(""))


def _block(block: Block) -> RenderableType | None:
    match block:
        case Text(text, mood, lead):
            return RichText(calm(text), f"bold {_STYLES.get(mood, '')}" if lead else _STYLES.get(mood, ""))
        case Table():
            return _table(block)
        case Items(texts):
            return RichText("\n".join(f"· {calm(text)}" for text in texts))
        case Code(text):
            return RichText(calm(text), "dim")
        case Figure(_, caption):
            return RichText(caption, "dim") if caption else None
        case _:
            return None


def _table(table: Table) -> RenderableType:
    made = RichTable(box=None, pad_edge=False)
    for index, name in enumerate(table.head):
        numeric = any(row[index].value is not None for row in table.rows)
        made.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in table.rows:
        made.add_row(*(RichText(calm(cell.text), _STYLES.get(cell.mood, "")) for cell in row))
    return made
