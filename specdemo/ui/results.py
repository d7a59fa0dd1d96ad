"""Kept results, read when somebody looks at them, and their files to take home; the newest few stay in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path

from specdemo.bench.jsonable import strict_json
from specdemo.bench.record import BenchRecord
from specdemo.bench.report import csv_tables, markdown
from specdemo.bench.report import html as report_html
from specdemo.bench.report.blocks import Document
from specdemo.bench.report.compare import comparison
from specdemo.bench.report.content import document
from specdemo.bench.report.contract import contract
from specdemo.bench.report.evidence import sampling
from specdemo.bench.report.sweep_page import sweep_document
from specdemo.bench.report.words import speaker
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.summary import Summary
from specdemo.bench.sweep import Sweep, sweep
from specdemo.bench.workloads import shipped
from specdemo.core.engine import EngineFacts
from specdemo.errors import StoreError
from specdemo.runs.bench_store import load
from specdemo.runs.kept import Kept, benchmark_path, benchmarks, validation_path, validations
from specdemo.runs.validation_store import load_validation
from specdemo.ui.i18n import Lang

IN_MEMORY = 4
LOOKED_AT = 20
"""Newest validations that are looked at for one of a benchmark's engines."""
MEDIA = {
    "html": "text/html; charset=utf-8",
    "md": "text/markdown; charset=utf-8",
    "json": "application/json",
    "csv": "text/csv; charset=utf-8",
    "samples.csv": "text/csv; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark, read, with the newest kept sampling validation of the same engines."""

    record: BenchRecord
    summary: Summary
    validation: ValidationResult | None = None


class Results:
    """The results of one data folder. Reading happens in a thread, since a file may hold thousands of requests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: OrderedDict[tuple[str, float], Bench | Sweep | ValidationResult] = OrderedDict()

    def benchmarks(self) -> tuple[Kept, ...]:
        """Benchmarks and sweeps, the newest first."""
        return benchmarks(self._folder)

    def validations(self) -> tuple[Kept, ...]:
        """Sampling validations, the newest first."""
        return validations(self._folder)

    def path(self, name: str) -> Path:
        """Of a benchmark. Raises StoreError."""
        return benchmark_path(self._folder, name)

    async def bench(self, name: str) -> Bench | Sweep:
        """A benchmark or a sweep. Raises StoreError with one sentence."""
        path = benchmark_path(self._folder, name)
        found = await self._remembered(f"bench {name}", path)
        if isinstance(found, ValidationResult):
            raise StoreError(f"{name} is no benchmark.")
        if isinstance(found, Bench):
            return replace(found, validation=await asyncio.to_thread(self._checked, found.record))
        return found

    async def validation(self, name: str) -> ValidationResult:
        """A sampling validation. Raises StoreError with one sentence."""
        path = validation_path(self._folder, name)
        found = await self._remembered(f"validation {name}", path)
        if not isinstance(found, ValidationResult):
            raise StoreError(f"{name} is no sampling validation.")
        return found

    async def report(self, name: str, form: str, lang: Lang) -> tuple[str, str]:
        """(text, media type) of a benchmark's or sweep's file. Raises StoreError."""
        found = await self.bench(name)
        return await asyncio.to_thread(_bench_file, found, name, form, lang), MEDIA.get(form, "text/plain")

    async def versus(self, first: str, second: str, form: str, lang: Lang) -> tuple[str, str]:
        """(text, media type) of a comparison. Raises StoreError."""
        pair = [await self.bench(name) for name in (first, second)]
        one, other = pair
        if not isinstance(one, Bench) or not isinstance(other, Bench):
            raise StoreError("Two benchmarks can be compared; a sweep compares its own settings.")
        made = comparison(one.record, other.record, language=lang)
        return _document(made, form), MEDIA.get(form, "text/plain")

    async def sampled(self, name: str, form: str, lang: Lang) -> tuple[str, str]:
        """(text, media type) of a validation's file. Raises StoreError."""
        found = await self.validation(name)
        if form == "json":
            return strict_json(found, indent=1) + "\n", MEDIA[form]
        return _document(validation_document(found, lang), form), MEDIA.get(form, "text/plain")

    def _checked(self, record: BenchRecord) -> ValidationResult | None:
        """The newest validation of engines that say the same of themselves as the benchmark's did."""
        wanted = [_same(facts) for facts in record.facts]
        if record.header.plan.null or None in record.facts:
            return None
        for kept in self.validations()[:LOOKED_AT]:
            with contextlib.suppress(StoreError):  # a damaged file is told where it is opened
                found = load_validation(kept.path)
                if [_same(facts) for facts in found.facts] == wanted:
                    return found
        return None

    async def _remembered(self, what: str, path: Path) -> Bench | Sweep | ValidationResult:
        key = (what, await asyncio.to_thread(_newest, path))
        if key not in self._read:
            self._read[key] = await asyncio.to_thread(_load, path)
            while len(self._read) > IN_MEMORY:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return self._read[key]


def validation_document(found: ValidationResult, lang: Lang) -> Document:
    """A validation on its own, as the section that it is in a report."""
    section = sampling(found, speaker(lang))
    return Document(section.title, lang, (section,))


def _same(facts: EngineFacts | None) -> object:
    """What makes two engines the same for sampling."""
    if facts is None:
        return None
    return facts.model, facts.version, facts.method, facts.k, facts.dtype, facts.device


def _newest(path: Path) -> float:
    """When it was written last; a sweep when any of its points was."""
    try:
        return max([path.stat().st_mtime, *(one.stat().st_mtime for one in path.glob("*.jsonl"))])
    except OSError as error:
        raise StoreError(f"{path.name} can't be read: {error.strerror or error}.") from None


def _load(path: Path) -> Bench | Sweep | ValidationResult:
    if path.is_dir():
        return sweep([load(one) for one in sorted(path.glob("*.jsonl"))])
    if path.suffix == ".json":
        return load_validation(path)
    record = load(path)
    return Bench(record, record.summary())


def _bench_file(found: Bench | Sweep, name: str, form: str, lang: Lang) -> str:
    if isinstance(found, Sweep):
        return strict_json(found, indent=2) + "\n" if form == "json" else _document(
            sweep_document(found, language=lang), form
        )  # fmt: skip
    if form == "json":
        return strict_json(contract(found.record, f"{name}.jsonl", found.validation), indent=2) + "\n"
    if form == "csv":
        return csv_tables.results(found.summary)
    if form == "samples.csv":
        return csv_tables.samples(found.record)
    made = document(found.record, found.summary, language=lang, validation=found.validation, workloads=shipped())
    return _document(made, form)


def _document(made: Document, form: str) -> str:
    if form == "html":
        return report_html.render(made)
    if form == "md":
        return markdown.render(made)
    raise StoreError("This result comes as html, md or json.")
