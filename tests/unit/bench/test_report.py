"""The report: the same numbers in every form, nothing loaded from outside, nothing taken for markup or formula."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from string import Formatter
from typing import Any, get_args

import pytest

from specdemo.bench.identity import Split
from specdemo.bench.jsonable import strict_json
from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Ending, Session
from specdemo.bench.report import charts, csv_tables, html, markdown
from specdemo.bench.report.blocks import Document
from specdemo.bench.report.content import document
from specdemo.bench.report.contract import contract
from specdemo.bench.report.evidence import failures, sampling
from specdemo.bench.report.words import LANGUAGES, speaker, words
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.scoring import ArmScore, Component
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.bench.sampling.verdict import SamplingVerdict
from specdemo.bench.workloads import choose, shipped
from specdemo.core.engine import EngineFacts
from specdemo.core.events import NoteKind, Side
from specdemo.core.results import Check
from tests.fakes.bench_samples import TOKENS, failed, prompts, session

NASTY = "<img src=x onerror=alert(1)></div><script>alert(2)</script> [x](javascript:y) `|` =1+1"


def record(plan: BenchPlan | None = None, **more: Any) -> BenchRecord:
    plan = plan or BenchPlan(choose(["code_editing", "open_chat"], limit=6), levels=(1, 2, 4))
    samples = session(plan, lambda name, level: (2.2 if name.startswith("edit") else 0.85) / level**0.3)
    facts = tuple(
        EngineFacts(side, "m", "0.32.0", 2048, k=4, dtype="float32", settings=(("kv", side.value),)) for side in Side
    )
    start = Session(
        0,
        1.8e9,
        (facts[0], facts[1]),
        (Check("kv cache", "warn", "they differ"),),
        ("vllm a", "vllm b"),
        (2**30, 2**31),
    )
    header = BenchHeader("bench1", 1.8e9, plan, "1.0", "2 cores")
    return replace(BenchRecord(header, (start,), tuple(samples), (), (Ending(0, "complete", "All done."),)), **more)


def forms(found: BenchRecord, language: str = "en") -> tuple[str, str]:
    made = document(found, found.summary(), language=language, workloads=shipped())
    return html.render(made), markdown.render(made)


class Page(HTMLParser):
    """Collects tags, attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.values: list[float] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.values += [float(value) for name, value in attrs if name == "data-value" and value]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def numbers(value: Any) -> set[float]:
    if isinstance(value, dict):
        return set().union(*(numbers(item) for item in value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*(numbers(item) for item in value)) if value else set()
    return {float(value)} if isinstance(value, (int, float)) and not isinstance(value, bool) else set()


def test_every_number_in_the_page_is_one_of_the_json() -> None:
    """Raw values in the HTML's cells are the JSON's numbers, digit by digit."""
    found = record()
    page = Page(forms(found)[0])
    known = numbers(json.loads(strict_json([found.summary(), found.sessions])))
    assert len(page.values) > 50
    assert [value for value in page.values if value not in known] == []


def test_the_numbers_of_sampling_are_in_the_json_too() -> None:
    """A validation is whole in the benchmark's JSON: each cell of its section in the page is one of those numbers."""
    found = record()
    arms = tuple(
        ArmScore(
            "plain",
            5120 + i,
            0,
            2 * i,
            Component("temperature", -9.0 - i, 1e-9, 0.156 * i + 0.001, 0.031, 5120),
            Component("top1", 0.4, 0.7, 0.0123 + i, 0.007, 5120),
            Component("pit", 11.0 + i, 0.25 / (1 + i), 0.011, None, 5120),
            Component("leak", -0.3, 0.76, -0.0071 * (1 + i), 0.009, 2000),
            1.156,
            (512,) * 10,
        )
        for i in range(2)
    )
    checked = ValidationResult(
        SamplingVerdict("differs", "told"),
        ValidationPlan(prompts(2)),
        "scores",
        80,
        (arms[0],),
        (arms[1],),
        drafted_share=(("plain", 0.437),),
    )
    shown = Page(html.render(Document("t", "en", (sampling(checked, speaker("en")),)))).values
    told = json.loads(strict_json(contract(found, "f.jsonl", checked)))["validation"]
    assert len(shown) == 2 * 6 + 1
    assert [value for value in shown if value not in numbers(told)] == []
    assert told["speculative"][0]["relative_temperature"] == pytest.approx(1.157)
    assert told["verdict"]["word"] == "differs"
    assert contract(found, "f.jsonl")["validation"] is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_file_needs_nothing_from_outside(language: str) -> None:
    """No script, no link, no address, no source: the file is complete, and its policy forbids loading."""
    text, _ = forms(record(), language)
    page = Page(text)
    assert {"script", "link", "iframe", "img", "a", "object"}.isdisjoint(page.tags)
    assert "http" not in re.sub(r"http-equiv", "", text)
    assert "url(" not in text
    assert "@import" not in text
    assert any(
        name == "content" and value and value.startswith("default-src 'none'") for name, value in page.attributes
    )
    assert "@media print" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_verdict_comes_first_in_one_sentence(language: str) -> None:
    """Right under the title stands the verdict with ratio, interval and number of prompts, in either language."""
    found = record()
    text, plain = forms(found, language)
    suite = found.summary().suite
    assert suite is not None
    assert suite.speedup is not None
    first = re.search(r'<p class="lead[^"]*" dir="auto">(.*?)</p>', text)
    assert first is not None
    assert text.index("<h2>") < first.start() < text.index("<table")
    for part in (f"{suite.speedup.estimate:.2f}", f"{suite.speedup.low:.2f}", f"{suite.speedup.n}"):
        assert part in first.group(1)
        assert part in plain.split("\n\n")[2]


def test_hostile_text_stays_text() -> None:
    """Model text, prompt names and engine messages with markup are shown literally (C06)."""
    plan = BenchPlan(tuple(replace(p, id=f"{NASTY}{p.id}", workload=NASTY) for p in prompts(4)), title=NASTY)
    found = record(plan)
    other = (*range(50), 999, *range(51, TOKENS))
    samples = [
        replace(s, token_ids=other) if s.place.arm == "B" and s.place.kind == "measure" else s for s in found.samples
    ]
    samples[0] = replace(failed(samples[0]), message=NASTY)
    splits = tuple(Split(p.id, 50, 50, 999, NASTY, NASTY, 0.5) for p in plan.prompts)
    header = replace(found.header, hardware=NASTY)
    text, plain = forms(replace(found, samples=tuple(samples), splits=splits, header=header))
    page = Page(text)
    assert {"script", "img"}.isdisjoint(page.tags)
    assert NASTY in "".join(page.text)
    assert not any(name.startswith("on") for name, _ in page.attributes)
    assert "<script>" not in plain.replace("\\<", "")
    for line in csv_tables.samples(replace(found, samples=tuple(samples))).split("\r\n"):
        assert not line.startswith(("=", "+", "@"))


@pytest.mark.parametrize("text", ['=HYPERLINK("x")', "+1", "-2+3", "@a", "\tx", "\r=1", "\n=1", "  =1"])
def test_formulas_are_neutralised(text: str) -> None:
    """A cell that a spreadsheet would evaluate gets an apostrophe; the file stays valid CSV (C22)."""
    made = csv_tables.write(("a", "b"), [(text, -1.5)])
    rows = list(csv.reader(io.StringIO(made.removeprefix("\ufeff"), newline="")))
    assert rows[1] == ["'" + text, "-1.5"]


def test_plain_text_and_numbers_in_csv_are_untouched() -> None:
    """Ordinary text, quotes, newlines and negative numbers come back as they were; what is missing is empty."""
    made = csv_tables.write(("a", "b", "c"), [('say "hi",\nyou', -0.25, None)])
    assert list(csv.reader(io.StringIO(made.removeprefix("\ufeff"), newline="")))[1] == ['say "hi",\nyou', "-0.25", ""]


def test_csv_results_equal_the_summary() -> None:
    """The CSV holds every result with full precision."""
    summary = record().summary()
    rows = list(csv.DictReader(io.StringIO(csv_tables.results(summary).removeprefix("\ufeff"), newline="")))
    assert [row["scope"] for row in rows] == ["suite", "workload", "workload", "level", "level", "level"]
    assert summary.suite is not None
    assert summary.suite.speedup is not None
    assert float(rows[0]["speedup"]) == summary.suite.speedup.estimate


def test_an_empty_or_partial_benchmark_still_makes_a_report() -> None:
    """Without samples, and after an early stop, the report says so and claims nothing."""
    empty = record(samples=(), endings=(Ending(0, "stopped", "Stopped."),))
    text, _ = forms(empty)
    assert "there is no result" in text
    partial = record(samples=record().samples[:9], endings=(Ending(0, "engine_lost", "It died."),))
    assert "It died." in forms(partial)[0]
    assert "NaN" not in forms(partial)[0]


def test_null_reports_say_that_they_are() -> None:
    """A null test's report speaks of the standard engine against itself."""
    plan = BenchPlan(prompts(8), null=True)
    assert "Null test" in forms(record(plan, samples=tuple(session(plan, 1.0))))[1]


def test_both_languages_have_the_same_keys_and_placeholders() -> None:
    """No text is missing in a language, none lacks a number."""
    english, chinese = words("en"), words("zh")
    assert english.keys() == chinese.keys()
    for key, text in english.items():
        fields = [{name for _, name, _, _ in Formatter().parse(t) if name} for t in (text, chinese[key])]
        assert fields[0] == fields[1], key


def test_charts_hold_every_number_and_the_line_of_no_difference() -> None:
    """The forest plot names each bar with its interval; slower bars are drawn too, and nothing is clamped at 1 (A34)."""
    drawn = charts.forest([charts.Bar("a<b", 2.0, 1.5, 2.7, (1.9, 2.1)), charts.Bar("c", 0.5, 0.4, 0.6)], "t", "x")
    assert "2.00x [1.50, 2.70]" in drawn
    assert "0.50x [0.40, 0.60]" in drawn
    assert charts.BAD in drawn
    assert "a&lt;b" in drawn
    assert "nan" not in drawn.lower()
    assert 'stroke-dasharray="4 3"' in drawn
    curve = charts.lines(
        [charts.Line("m", charts.ARM_B, ((1, 2.0, 1.8, 2.2), (4, 0.8, 0.7, 0.9)))], "t", "x", "y", one=True
    )
    assert curve.count("<circle") == 2
    assert charts.lines([], "t", "x", "y") == ""


def test_markdown_tables_keep_their_columns() -> None:
    """Pipes in cells are escaped, so every row has as many cells as its head."""
    plain = forms(record())[1]
    for table in re.findall(r"(?:^\|.*\n)+", plain, re.MULTILINE):
        counts = {len(re.findall(r"(?<!\\)\|", line)) for line in table.strip().split("\n")}
        assert len(counts) == 1


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_kind_of_note_is_said_in_words(language: str) -> None:
    """What was noted of requests is a sentence with its count; a kind that a newer version wrote is named as it is."""
    say = speaker(language)
    assert all(say(f"remark_{kind}", count=7).startswith("7 ") for kind in get_args(NoteKind))
    summary = replace(record().summary(), notes=(("overloaded", 3), ("of_the_future", 2)))
    texts = [text for block in failures(summary, say).blocks for text in getattr(block, "texts", ())]
    assert texts[-2:] == [say("remark_overloaded", count=3), "of the future: 2"]
