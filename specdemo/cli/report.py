"""``specdemo report``: rebuild the report of a kept benchmark, or compare two."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
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
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sweep import sweep
from specdemo.bench.workloads import shipped
from specdemo.cli.bench_common import write
from specdemo.cli.output import stderr, stdout
from specdemo.compose import folders
from specdemo.errors import StoreError, UsageError
from specdemo.runs.bench_store import load
from specdemo.runs.kept import benchmark_path, benchmarks, validation_path, validations
from specdemo.runs.validation_store import load_validation
from specdemo.settings import Loaded

Form = Literal["html", "md", "json", "csv", "samples-csv"]


def report(
    loaded: Loaded,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(help="Benchmark, two to compare, or sweep: path, or name of a kept one; none lists them."),
    ] = None,
    form: Annotated[Form | None, typer.Option("--format", help="Found from the name of --out when not given.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="File to write; standard output when not given.")] = None,
    language: Annotated[Literal["en", "zh"], typer.Option("--language", help="Language of the report.")] = "en",
    validation: Annotated[
        Path | None,
        typer.Option("--validation", help="Sampling validation in it: path, or name of a kept one."),
    ] = None,
) -> int:
    """Write the report of a kept benchmark as HTML, Markdown, JSON or CSV; with two, compare them.

    Exit codes: 0 done · 1 a file can't be read or written · 2 wrong use.
    """
    data = folders(loaded.settings).data
    if not runs:
        return _list(data)
    if len(runs) > 2:
        raise UsageError("A report takes one benchmark, or two to compare.")
    form = form or _form(out)
    runs = [path if path.exists() else _kept(benchmark_path, data, path) for path in runs]
    if out is not None and any(path.exists() and out.exists() and out.samefile(path) for path in runs):
        raise UsageError(f"--out would overwrite {out}, which the report is made of; choose another name.")
    if validation is not None and (len(runs) == 2 or runs[0].is_dir() or form in ("csv", "samples-csv")):
        raise UsageError("--validation goes into the report of one benchmark, as html, md or json.")
    if len(runs) == 1 and runs[0].is_dir():
        return _sweep(runs[0], form, out, language)
    records = [load(path) for path in runs]
    if len(records) == 2:
        if form not in ("html", "md"):
            raise UsageError("A comparison is written as html or md.")
        text = _page(comparison(records[0], records[1], language=language), form)
    elif form == "json":
        text = strict_json(contract(records[0], str(runs[0]), _checked(validation, data)), indent=2) + "\n"
    elif form == "csv":
        text = csv_tables.results(records[0].summary())
    elif form == "samples-csv":
        text = csv_tables.samples(records[0])
    else:
        record, checked = records[0], _checked(validation, data)
        made = document(record, record.summary(), language=language, validation=checked, workloads=shipped())
        text = _page(made, form)
    return _put(text, out)


def _checked(validation: Path | None, data: Path) -> ValidationResult | None:
    """The sampling validation that goes into the report, by path or by the name of a kept one."""
    if validation is None:
        return None
    return load_validation(validation if validation.exists() else _kept(validation_path, data, validation))


def _kept(find: Callable[[Path, str], Path], data: Path, name: Path) -> Path:
    """A kept result by its name; what can't be a name is a path to a file that is not there."""
    if len(name.parts) != 1:
        return name
    try:
        return find(data, str(name))
    except StoreError as error:
        raise StoreError(f"{name}: there is no such file. {error}") from None


def _list(data: Path) -> int:
    """The kept results, the newest first, as names to give to this command."""
    out, none = stdout(), True
    for kind, found in (("benchmark", benchmarks(data)), ("validation", validations(data))):
        for kept in found:
            when = datetime.fromtimestamp(kept.at, UTC).strftime("%Y-%m-%d %H:%M")
            none = False
            out.print(f"{'sweep' if kept.is_sweep else kind:<10}  {when} UTC  {kept.name}", markup=False)
    if none:
        stderr().print(f"No results are kept in {data} yet.", markup=False)
    return 0


def _sweep(folder: Path, form: Form, out: Path | None, language: str) -> int:
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise StoreError(f"{folder} holds no benchmark, so it is no sweep.")
    found = sweep([load(path) for path in files])
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
