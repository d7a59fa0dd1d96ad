"""What the Benchmark and Validate tabs are made of, without a browser."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import gradio as gr
import httpx
import pytest

from specdemo.bench.estimate import estimate_validation
from specdemo.bench.plan import BenchPlan
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.verdict import POWER, SamplingVerdict
from specdemo.core.prompt import Sampling
from specdemo.errors import PromptError, SpecDemoError, UsageError
from specdemo.runs.bench_job import BenchJob, Point
from specdemo.runs.bench_store import load
from specdemo.runs.jobs import Jobs, Workshop
from specdemo.runs.validation_store import save_validation
from specdemo.ui import bench_view, plots, validate_view
from specdemo.ui.bench_desk import BenchDesk, PaceBook, Seen
from specdemo.ui.bench_form import BenchForm
from specdemo.ui.i18n import LANGS, words
from specdemo.ui.results import Bench, Results
from specdemo.ui.server import build_app
from specdemo.ui.uploads import Uploads, preview
from specdemo.ui.validate_form import ValidateForm
from tests.fakes import virtual_time
from tests.fakes.bench_samples import prompts
from tests.fakes.sim_engine import pair
from tests.unit.ui.pair import World, world

USUAL = BenchForm(
    source="shipped", workloads=["open_chat", "rag_qa"], languages=["en"], prompts=2, accept_refused=False, levels=[1],
    repeats=1, max_tokens=32, minutes=0, null=False, own_length=False, warmup=1, control=1, load_prompts=2, rate=None,
    seed=1, wait_quiet=False,
)  # fmt: skip
SAMPLED = ValidateForm(
    settings="usual", temperature=1.0, top_p=1.0, top_k=20, source="shipped", prompts=8, accept_refused=False, draws=80,
    tokens=16, minutes=0, seed=1, concurrency=4, listed=20, shortest=2, longest=4, anyway=False,
)  # fmt: skip


def measured(folder: Path, name: str = "", **more: Any) -> str:
    """A finished benchmark in a data folder; its name."""
    engines = pair()

    async def body() -> str:
        place = world()
        shop = Workshop(lambda: engines, folder, clock=virtual_time.clock, wall=lambda: 1.8e9)
        jobs = Jobs(place.services.registry, shop)
        job = BenchJob("ann", shop, BenchPlan(prompts(3, name or "work"), sampling=Sampling(max_tokens=21), **more))
        jobs.start(job)
        await jobs.finished()
        assert job.error is None
        return job.name

    return virtual_time.run(body())


def desk(folder: Path, **more: Any) -> tuple[World, BenchDesk]:
    """A page's desk over scripted engines."""
    place = world(**more)
    jobs = Jobs(place.services.registry, Workshop(lambda: place.engines, folder))
    place.services = replace(place.services, jobs=jobs)
    return place, BenchDesk(place.services, jobs, Results(folder), PaceBook(place.services))


def test_the_form_becomes_a_plan() -> None:
    """Two prompts of two workloads; levels in order and once; minutes are seconds; a rate replaces levels."""
    plan = replace(USUAL, levels=[4, 1, 4], minutes=2).plan(None, most_tokens=2048)
    assert (len(plan.prompts), plan.levels, plan.budget_s) == (4, (1, 4), 120)
    assert plan.sampling.ignore_eos
    assert replace(USUAL, rate=3).plan(None, most_tokens=2048).rate == 3
    assert USUAL.points() == ()
    assert replace(USUAL, lengths=[4, 2], methods=["ngram"]).points() == (Point("ngram", 2), Point("ngram", 4))
    assert replace(USUAL, lengths=[2]).points() == (Point(None, 2),)


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"workloads": []}, "at least one workload"),
        ({"levels": []}, "at least one level"),
        ({"levels": [64]}, "between 1 and 32"),
        ({"levels": ["x"]}, "must be a number"),
        ({"prompts": 1.5}, "whole number"),
        ({"max_tokens": 1}, "between 2 and 2048"),
        ({"max_tokens": float("nan")}, "must be a number"),
        ({"minutes": -1}, "between 0 and"),
        ({"workloads": "open_chat"}, "list of choices"),
        ({"workloads": ["nothing"]}, "no workload"),
        ({"source": "own"}, "Choose a file"),
    ],
)
def test_what_a_form_may_not_say(change: dict[str, Any], sentence: str) -> None:
    """A raw request may send anything; each gets one sentence."""
    with pytest.raises(SpecDemoError, match=sentence) as found:
        replace(USUAL, **change).plan(None, most_tokens=2048)
    assert bench_view.told(found.value, "zh") != str(found.value)


async def test_refused_lines_need_a_go_ahead(tmp_path: Path) -> None:
    """2 of 3 usable: nothing runs before the visitor allows it; the file itself does not stay on disk (E06)."""
    held, file = Uploads(), tmp_path / "own.jsonl"
    file.write_text('{"prompt":"one"}\n{"prompt":\n{"prompt":"<img src=x onerror=alert(1)>"}\n')
    found = await held.read("ann", str(file))
    assert not file.exists()
    with pytest.raises(PromptError, match="line 2"):
        replace(USUAL, source="own").plan(held.get("ann"), most_tokens=2048)
    plan = replace(USUAL, source="own", accept_refused=True).plan(held.get("ann"), most_tokens=2048)
    assert len(plan.prompts) == 2
    shown = preview(found, "en")
    assert "2 of 3 rows" in shown
    assert "line 2" in shown
    assert "<img" not in shown
    with pytest.raises(PromptError, match="no longer kept"):
        held.get("bob")


@pytest.mark.parametrize(
    "name, body, usable",
    [
        ("a.jsonl", '{"conversations":[{"from":"human","value":"hi"},{"from":"gpt","value":"yes"}]}', 1),
        ("b.jsonl", '{"messages":[{"role":"user","content":"hi"}]}\n{"prompt":"two"}', 2),
        ("question.jsonl", '{"question_id":1,"category":"qa","turns":["first","second"]}', 1),
        ("c.csv", "prompt,other\nhello,1\nworld,2\n", 2),
        ("d.txt", "one\n\ntwo\n", 2),
        ("e.json", '[{"prompt":"x"},{"prompt":"y"}]', 2),
    ],
)
async def test_every_form_of_file_can_be_handed_in(tmp_path: Path, name: str, body: str, usable: int) -> None:
    """ShareGPT, messages, Spec-Bench, CSV, plain lines, JSON."""
    (tmp_path / name).write_text(body)
    assert len((await Uploads().read("ann", str(tmp_path / name))).prompts) == usable


@pytest.mark.parametrize(
    "name, body, sentence",
    [("a.jsonl", b"PK\x03\x04rest", "Excel workbook"), ("b.txt", b"caf\xe9", "not UTF-8"), ("c.csv", b"", "empty")],
)
async def test_files_that_are_none(tmp_path: Path, name: str, body: bytes, sentence: str) -> None:
    """One sentence, and the file is gone all the same (E09)."""
    (tmp_path / name).write_bytes(body)
    with pytest.raises(PromptError, match=sentence) as found:
        await Uploads().read("ann", str(tmp_path / name))
    assert bench_view.told(found.value, "zh") != str(found.value)
    assert not (tmp_path / name).exists()


async def test_uploads_are_bounded(tmp_path: Path) -> None:
    """Only the last visitors' files are held."""
    held = Uploads(kept=2)
    for visitor in ("a", "b", "c"):
        (tmp_path / "x.txt").write_text("prompt")
        await held.read(visitor, str(tmp_path / "x.txt"))
    with pytest.raises(PromptError):
        held.get("a")
    assert held.get("c").prompts


async def test_size_then_time(tmp_path: Path) -> None:
    """Before a start the plan's size is told, its time once the pace was measured, and why a plan can't run."""
    place, table = desk(tmp_path, pause=0.001)
    first = await table.line(USUAL, "ann", "en")
    assert "20 requests, at most 640" in first
    assert "not known yet" in first
    assert "of these engines" in await table.timed(USUAL, "ann", "en")
    assert "at least one workload" in await table.line(replace(USUAL, workloads=[]), "ann", "en")
    assert len(place.engines) == 2


async def test_a_public_page_has_no_tabs_and_refuses(tmp_path: Path) -> None:
    """Hidden, without routes, and refused by the handlers as well."""
    place, table = desk(tmp_path, public=True)
    with pytest.raises(UsageError, match="open to the public"):
        await table.start(USUAL, "ann")
    app = build_app(place.services)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page") as http:
        assert (await http.get("/benchmarks/x/report.html")).status_code == 404
        config = (await http.get("/config")).json()
    shown = {part["props"].get("elem_id") for part in config["components"]}
    assert "sd-tab-race" in shown
    assert not shown & {"sd-tab-bench", "sd-tab-validate"}


async def test_starts_are_refused_while_something_runs(tmp_path: Path) -> None:
    """One at a time; what is seen says who may stop it."""
    place, table = desk(tmp_path, pause=0.002)
    await table.start(USUAL, "ann")
    with pytest.raises(UsageError, match="has the engines for itself"):
        await table.start(USUAL, "bob")
    mine, theirs = [await table.view(who, "en", Seen()) for who in ("ann", "bob")]
    stop = [view[8]["interactive"] for view in (mine, theirs)]
    assert stop == [True, False]
    assert "Somebody else" in theirs[0]
    table.stop("ann")
    assert place.services.jobs is not None
    await place.services.jobs.finished()


def test_a_result_is_shown_verdict_first(tmp_path: Path) -> None:
    """The same words and numbers as in the report; an unchanged view is not sent again."""
    name = measured(tmp_path)
    _, table = desk(tmp_path)
    view = asyncio.run(table.view("ann", "en", Seen(name)))
    assert "is 1.9" in view[1]
    assert view[1].index('class="lead') < view[1].index("report.html")
    assert view[2]["visible"] is True
    assert "by_workload" not in view[5]
    again = asyncio.run(table.view("ann", "en", Seen(name, "", view[-2])))
    assert again[1] == gr.skip()
    gone = asyncio.run(table.view("ann", "en", Seen("unknown")))
    assert "no kept benchmark" in gone[1]


def test_two_results_are_compared(tmp_path: Path) -> None:
    """The comparison takes the place of the report, with files of its own."""
    first, second = measured(tmp_path), measured(tmp_path)
    _, table = desk(tmp_path)
    view = asyncio.run(table.view("ann", "en", Seen(first, second)))
    assert "the intervals of 0 do not overlap" in view[1]
    assert f"versus/{second}.html" in view[1]


async def test_files_of_a_result(tmp_path: Path) -> None:
    """HTML, Markdown, strict JSON and neutral CSV by address; numbers are those of the JSON; no other file opens."""
    name = await asyncio.to_thread(measured, tmp_path, "=cmd")
    place, _ = desk(tmp_path)
    app = build_app(place.services)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://page") as http:
        stem = f"/benchmarks/{name}/report"
        found = {form: await http.get(f"{stem}.{form}") for form in ("html", "md", "json", "csv", "samples.csv")}
        chinese = await http.get(f"{stem}.md?lang=zh")
        wrong = [
            await http.get(path)
            for path in ("/benchmarks/..%2f..%2fetc/report.html", f"{stem}.exe", "/benchmarks/x/report.md")
        ]
        both = await http.get(f"/benchmarks/{name}/versus/{name}.md")
    assert {answer.status_code for answer in found.values()} == {200}
    assert [answer.status_code for answer in wrong] == [404, 404, 404]
    assert "attachment" in found["html"].headers["content-disposition"]
    document = json.loads(found["json"].text, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))
    speed = document["summary"]["suite"]["speedup"]["estimate"]
    rows = list(csv.reader(io.StringIO(found["csv"].text.lstrip("\ufeff"))))
    assert repr(speed) in [row[4] for row in rows]
    assert any(row[1] == "'=cmd" for row in rows)
    assert not any(cell.startswith("=") for row in csv.reader(io.StringIO(found["samples.csv"].text)) for cell in row)
    assert "结论" in chinese.text
    assert both.status_code == 200


def test_plots_hold_what_was_measured(tmp_path: Path) -> None:
    """Estimates and bounds of the summary, in the page's own colours, drawn without a request or a menu."""
    name = measured(tmp_path, levels=(1, 2))
    found = asyncio.run(Results(tmp_path).bench(name))
    assert isinstance(found, Bench)
    forest, speed, rates = bench_view.drawings(found.summary, "en")
    assert forest is not None
    assert speed is not None
    assert rates is not None
    suite = found.summary.suite
    assert suite is not None
    assert suite.speedup is not None
    assert forest["data"]["values"][-1]["x"] == suite.speedup.estimate
    assert [row["x"] for row in speed["data"]["values"] if row["series"] == "measured"] == [1, 2]
    for spec in (forest, speed, rates):
        assert spec["usermeta"]["embedOptions"] == {"renderer": "svg", "actions": False}
        assert "http" not in json.dumps(spec)
    assert bench_view.drawings(replace(found.summary, suite=None, workloads=(), levels=()), "en") == (None, None, None)
    assert plots.lines([], "n", "x", "y") is None


def test_power_is_told_before_a_validation() -> None:
    """Every named defect has words in both languages; too few draws are said to be too few."""
    for lang in LANGS:
        assert {validate_view._fault(name) for name in POWER} <= set(words(lang))
    plan = SAMPLED.plan(None)
    assert "enough to certify" in validate_view.plan(estimate_validation(plan, None), plan, "en")
    few = replace(SAMPLED, draws=4).plan(None)
    assert "never certify" in validate_view.plan(estimate_validation(few, None), few, "en")


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"settings": "own", "temperature": 0}, "greedy"),
        ({"settings": "own", "temperature": 0.7, "top_k": 0}, "top_k of"),
        ({"settings": "own", "top_p": 2}, "between 0 and 1"),
        ({"draws": 1}, "between 2 and"),
        ({"source": "own"}, "Choose a file"),
    ],
)
def test_what_a_validation_may_not_ask(change: dict[str, Any], sentence: str) -> None:
    """One sentence each."""
    with pytest.raises(SpecDemoError, match=sentence):
        replace(SAMPLED, **change).plan(None)


def test_lookup_lengths_in_order() -> None:
    """The shortest is not above the longest."""
    assert SAMPLED.lengths == (2, 4)
    with pytest.raises(UsageError, match="at most"):
        _ = replace(SAMPLED, shortest=5).lengths


@pytest.mark.parametrize("seconds, shown", [(5, "5 s"), (65, "1 min 5 s"), (3720, "1 h 2 min")])
def test_times_in_words(seconds: float, shown: str) -> None:
    """Seconds, minutes, hours."""
    assert bench_view.spell(seconds, "en") == shown


def test_a_benchmark_shows_the_validation_of_its_engines(tmp_path: Path) -> None:
    """The newest validation of the same engines is part of the result and its report; of other engines, none is."""
    name = measured(tmp_path)
    results = Results(tmp_path)
    record = load(results.path(name))

    def keep(file: str, word: Literal["consistent", "differs"], *, k: int | None) -> None:
        standard, speculative = record.facts
        assert speculative is not None
        verdict = SamplingVerdict(word, f"told by {file}")
        facts = (standard, replace(speculative, k=k))
        result = ValidationResult(verdict, SAMPLED.plan(None), "scores", 80, facts=facts, started_at=1.8e9)
        save_validation(tmp_path / "validations" / f"{file}.json", result)

    _, table = desk(tmp_path)
    before = asyncio.run(table.view("ann", "en", Seen(name)))
    assert "Not tested here" in before[5]
    keep("other", "differs", k=7)
    assert asyncio.run(table.view("ann", "en", Seen(name, "", before[-2])))[1] == gr.skip()
    keep("same", "consistent", k=record.facts[1].k if record.facts[1] else None)
    after = asyncio.run(table.view("ann", "en", Seen(name, "", before[-2])))
    assert "told by same" in after[5]
    for form in ("md", "json"):
        assert "told by same" in asyncio.run(results.report(name, form, "en"))[0]
