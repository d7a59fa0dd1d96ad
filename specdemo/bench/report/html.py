"""The document as one HTML file that needs nothing else: no script, no request, printable, dark or light. Pure.

Everything that came from outside (prompts, model text, engine messages) is escaped; a content policy forbids loading.
"""

from __future__ import annotations

from html import escape

from specdemo.bench.report.blocks import Block, Cell, Code, Document, Figure, Items, Section, SignOff, Table, Text

STYLE = """
:root{color-scheme:light}
body{font:15px/1.55 system-ui,"Noto Sans CJK SC","Microsoft YaHei",sans-serif;color:#1c2430;background:#fff;
max-width:960px;margin:0 auto;padding:24px 20px 60px}
h1{font-size:24px;line-height:1.25;margin:8px 0 20px}
h2{font-size:17px;margin:34px 0 10px;padding-top:10px;border-top:1px solid #d5dbe3}
p{margin:8px 0}
.lead{font-size:20px;line-height:1.4;font-weight:600}
.good{color:#0b6e4f}.bad{color:#b3261e}.warn{color:#8a5300}.faint{color:#5b6675}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;margin:10px 0;font-size:13.5px;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:5px 10px 5px 0;border-bottom:1px solid #e6eaef;vertical-align:top}
th{font-weight:600;color:#5b6675}
td.n{text-align:right;white-space:nowrap}th.n{text-align:right}
figure{margin:12px 0}figure svg{width:100%;height:auto;max-width:760px}
figcaption{color:#5b6675;font-size:13px}
pre{background:#f4f6f9;padding:10px 12px;white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;border-radius:6px}
li{margin:3px 0;overflow-wrap:anywhere}
.sign{display:grid;grid-template-columns:1fr 1fr;gap:34px 28px;margin-top:30px}
.sign div{border-top:1px solid #1c2430;padding-top:4px;color:#5b6675;font-size:13px}
footer{margin-top:44px;color:#5b6675;font-size:12px}
@media print{body{padding:0;max-width:none;font-size:11pt}section,figure,tr{break-inside:avoid}h2{break-after:avoid}
.scroll{overflow:visible}}
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def render(document: Document) -> str:
    """The whole file."""
    language = "zh-CN" if document.language == "zh" else "en"
    head = (
        f'<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(document.title)}</title><style>{STYLE}</style></head><body><main>"
    )
    body = "\n".join(_section(section) for section in document.sections)
    footer = f"</main><footer>{escape(document.footer)}</footer></body></html>\n"
    return f"{head}<h1>{escape(document.title)}</h1>\n{body}\n{footer}"


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
