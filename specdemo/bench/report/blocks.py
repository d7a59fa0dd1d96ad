"""What a report is made of. Renderers know these and nothing of benchmarks; so all forms say the same. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Cell:
    """A table cell: its shown text, the raw value behind a number (full precision), and a mood for colour."""

    text: str
    value: float | int | None = None
    mood: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; ``mood``: "", good, bad, warn; ``lead`` for the verdict."""

    text: str
    mood: str = ""
    lead: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under a head; ``caption`` above it."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A drawing (SVG, self-contained) with a sentence that says what it shows."""

    svg: str
    caption: str


@dataclass(frozen=True, slots=True)
class Items:
    """A bulleted list."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Literal lines, such as commands."""

    text: str


@dataclass(frozen=True, slots=True)
class SignOff:
    """Lines to sign on paper."""

    labels: tuple[str, ...]


Block = Text | Table | Figure | Items | Code | SignOff


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what follows."""

    title: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """A whole report. ``language`` is en or zh; ``footer`` closes every form."""

    title: str
    language: str
    sections: tuple[Section, ...]
    footer: str = ""
