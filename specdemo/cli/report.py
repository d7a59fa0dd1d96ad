"""``specdemo report``: rebuild the report of a kept benchmark, or compare two."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from specdemo.bench.jsonable import strict_json
from specdemo.bench.report import csv_tables, html, markdown
from specdemo.bench.report.blocks import Document
from specdemo.bench.report.compare import comparison
from specdemo.bench.report.content import document
from specdemo.bench.report.contract import contract
from specdemo.bench.report.sweep_page import sweep_document
from specdemo.bench.sweep import sweep
from specdemo.bench.workloads import shipped
from specdemo.cli.bench_common import write
from specdemo.cli.output import stderr
from specdemo.errors import UsageError
from specdemo.runs.bench_store import load
from specdemo.runs.validation_store import load_validation
from specdemo.settings import Loaded

Form = Literal["html", "md", "json", "csv", "samples-csv"]


def report(
    loaded: Loaded,  # noqa: ARG001 - every command gets the settings
    runs: Annotated[list[Path], typer.Argument(help="A benchmark file, two to compare, or the folder of a sweep.")],
    form: Annotated[Form | None, typer.Option("--format", help="Found from the name of --out when not given.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; standard output when not given.")] = None,
    language: Annotated[Literal["en", "zh"], typer.Option("--language", help="Language of the report.")] = "en",
    validation: Annotated[
        Path | None, typer.Option("--validation", help="Result of specdemo validate, to be part of it.")
    ] = None,
) -> int:
    """Write the report of a kept benchmark as HTML, Markdown, JSON or CSV; with two, compare them.

    Exit codes: 0 done · 1 a file can't be read or written · 2 wrong use.
    """
    if len(runs) > 2:
        raise UsageError("A report takes one benchmark, or two to compare.")
    form = form or _form(out)
    if len(runs) == 1 and runs[0].is_dir():
        return _sweep(runs[0], form, out, language)
    records = [load(path) for path in runs]
    if len(records) == 2:
        if form not in ("html", "md"):
            raise UsageError("A comparison is written as html or md.")
        text = _page(comparison(records[0], records[1], language=language), form)
    elif form == "json":
        text = strict_json(contract(records[0], str(runs[0])), indent=2) + "\n"
    elif form == "csv":
        text = csv_tables.results(records[0].summary())
    elif form == "samples-csv":
        text = csv_tables.samples(records[0])
    else:
        checked = load_validation(validation) if validation else None
        record = records[0]
        made = document(record, record.summary(), language=language, validation=checked, workloads=shipped())
        text = _page(made, form)
    return _put(text, out)


def _sweep(folder: Path, form: Form, out: Path | None, language: str) -> int:
    found = sweep([load(path) for path in sorted(folder.glob("*.jsonl"))])
    if form == "json":
        text = strict_json(found, indent=2) + "\n"
    elif form in ("html", "md"):
        text = _page(sweep_document(found, language=language), form)
    else:
        raise UsageError("A sweep is written as html, md or json.")
    return _put(text, out)


def _put(text: str, out: Path | None) -> int:
    if out is None:
        sys.stdout.write(text)
    else:
        write(out, text)
        stderr().print(f"Report: {out}", markup=False)
    return 0


def _form(out: Path | None) -> Form:
    known: dict[str, Form] = {".html": "html", ".htm": "html", ".md": "md", ".json": "json", ".csv": "csv"}
    if out is None:
        return "md"
    if out.suffix.lower() not in known:
        raise UsageError(f"Say --format for {out.name}: html, md, json, csv or samples-csv.")
    return known[out.suffix.lower()]


def _page(made: Document, form: Form) -> str:
    return html.render(made) if form == "html" else markdown.render(made)
