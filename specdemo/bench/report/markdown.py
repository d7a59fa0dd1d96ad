"""The document as Markdown: the same words and numbers, without the drawings. Pure."""

from __future__ import annotations

import re

from specdemo.bench.report.blocks import Block, Code, Document, Figure, Items, SignOff, Table, Text

_SPECIAL = re.compile(r"([\\`*_\[\]<>#|~$&])")
_START = re.compile(r"^(?:[-+=](?=[-+=\s]|$)|\d{1,9}[.)](?=\s|$))")
"""What would begin a list, a rule or a heading's underline at the start of a line."""


def render(document: Document) -> str:
    """The whole file."""
    parts = [f"# {_plain(document.title)}"]
    for section in document.sections:
        parts.append(f"## {_plain(section.title)}")
        parts += [text for block in section.blocks if (text := _block(block))]
    parts.append(f"---\n\n{_plain(document.footer)}")
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Text(text, _, lead):
            return f"**{_plain(text)}**" if lead else _plain(text)
        case Table(head, rows, caption):
            lines = [_row(head), _row(["---"] * len(head), raw=True)]
            lines += [_row([cell.text for cell in row]) for row in rows]
            return (f"{_plain(caption)}\n\n" if caption else "") + "\n".join(lines)
        case Figure(_, caption):
            return _plain(caption)
        case Items(texts):
            return "\n".join(f"- {_plain(text)}" for text in texts)
        case Code(text):
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            return f"{fence}\n{text}\n{fence}"
        case SignOff(labels):
            return "\n\n".join(f"{_plain(label)}: ______________________" for label in labels)


def _row(cells: list[str] | tuple[str, ...], *, raw: bool = False) -> str:
    return "| " + " | ".join(cell if raw else _plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """Text that Markdown takes literally, on one line."""
    shown = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    found = _START.match(shown)
    return f"{shown[: found.end() - 1]}\\{shown[found.end() - 1 :]}" if found else shown
