"""The document as one HTML file that needs nothing else: no script, no request, printable, dark or light. Pure.

Everything that came from outside (prompts, model text, engine messages) is escaped; a content policy forbids loading.
"""

from __future__ import annotations

from functools import cache
from html import escape
from string import Template

from specdemo.bench.report.blocks import Block, Cell, Code, Document, Figure, Items, Section, SignOff, Table, Text
from specdemo.bench.report.words import FOLDER


@cache
def _template() -> Template:
    """The page with its styles in it."""
    style = (FOLDER / "report.css").read_text(encoding="utf-8").strip()
    return Template(Template((FOLDER / "page.html").read_text(encoding="utf-8")).safe_substitute(style=style))


def render(document: Document) -> str:
    """The whole file."""
    return _template().substitute(
        language="zh-CN" if document.language == "zh" else "en",
        title=escape(document.title),
        body="\n".join(_section(section) for section in document.sections),
        footer=escape(document.footer),
    )


def fragment(document: Document) -> str:
    """The sections for a page that has its own styles and draws its own plots: without figures and sign-off."""
    left_out = (Figure, SignOff)
    kept = [
        Section(section.title, tuple(block for block in section.blocks if not isinstance(block, left_out)))
        for section in document.sections
    ]
    return "\n".join(_section(section) for section in kept if section.blocks)


def _section(section: Section) -> str:
    inside = "".join(_block(block) for block in section.blocks)
    return f"<section><h2>{escape(section.title)}</h2>{inside}</section>"


def _block(block: Block) -> str:
    match block:
        case Text(text, mood, lead):
            names = " ".join(name for name in ("lead" if lead else "", mood) if name)
            return f'<p class="{names}" dir="auto">{escape(text)}</p>' if names else f'<p dir="auto">{escape(text)}</p>'
        case Table():
            return _table(block)
        case Figure(svg, caption):
            note = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
            return f"<figure>{svg}{note}</figure>" if svg else ""
        case Items(texts):
            return "<ul>" + "".join(f'<li dir="auto">{escape(text)}</li>' for text in texts) + "</ul>"
        case Code(text):
            return f"<pre>{escape(text)}</pre>"
        case SignOff(labels):
            return '<div class="sign">' + "".join(f"<div>{escape(label)}</div>" for label in labels) + "</div>"


def _table(table: Table) -> str:
    numeric = [any(row[i].value is not None for row in table.rows if i < len(row)) for i, _ in enumerate(table.head)]
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(
        f'<th scope="col" class="n">{escape(name)}</th>' if right else f'<th scope="col">{escape(name)}</th>'
        for name, right in zip(table.head, numeric, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(_cell(cell, right=right) for cell, right in zip(row, numeric, strict=True)) + "</tr>"
        for row in table.rows
    )
    return f'<div class="scroll"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(cell: Cell, *, right: bool) -> str:
    names = " ".join(name for name in ("n" if right else "", cell.mood) if name)
    attributes = f' class="{names}"' if names else ""
    if cell.value is not None:
        attributes += f' data-value="{cell.value!r}"'
    return f"<td{attributes}>{escape(cell.text)}</td>"
