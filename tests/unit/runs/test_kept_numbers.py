"""Kept benchmarks and validations from strangers: whatever stands anywhere, refused in one sentence or reported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from specdemo.bench.gate import GateRule, decide
from specdemo.bench.identity import Split
from specdemo.bench.jsonable import strict_json
from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Ending, Session
from specdemo.bench.report import csv_tables, html
from specdemo.bench.report.content import document
from specdemo.bench.report.contract import contract
from specdemo.bench.sampling.duplicates import Duplicates
from specdemo.bench.sampling.result import ValidationResult
from specdemo.bench.sampling.scoring import ArmScore, Component
from specdemo.bench.sampling.settings import ValidationPlan
from specdemo.bench.sampling.tree import TreeTest
from specdemo.bench.sampling.verdict import Finding, SamplingVerdict
from specdemo.bench.workloads import shipped
from specdemo.core.engine import EngineFacts
from specdemo.core.events import Side
from specdemo.errors import StoreError
from specdemo.runs.bench_store import BenchFile, load
from specdemo.runs.validation_store import load_validation, save_validation
from specdemo.ui.results import validation_document
from tests.fakes.bench_samples import prompts, session

FACTS = tuple(EngineFacts(side, "m", "0.32.0", 2048, k=4) for side in Side)
PAIR = (FACTS[0], FACTS[1])
RAW = ("NaN", "Infinity", "-Infinity", '"nan"', '"inf"', "-5", "0", "5e-324", "1e308", "1e30", "1" + "0" * 400, "true",
       str(2**63), str(2**53 + 1), '"zzz"', '"\\ud800"', "0.5", "null")  # fmt: skip
"""JSON texts, since some are no value that Python would write."""


def benchmark() -> BenchRecord:
    plan = BenchPlan(prompts(2), levels=(1, 2), control_prompts=1, load_prompts=1, per_worker=1, budget_s=60.0)
    samples = session(plan, 1.5)
    samples[0] = replace(samples[0], prompt_ids=(1, 2), cached_tokens=3)
    split = Split(plan.prompts[0].id, 3, 1, 2, "a", "b", 0.1, True, True)
    start = Session(0, 1.8e9, PAIR, (), ("a", "b"), (2**30, 2**31), 2)
    header = BenchHeader("b", 1.8e9, plan, "1.0")
    return BenchRecord(header, (start,), tuple(samples), (split,), (Ending(0, "complete", "Done.", 1, 60.0),))


def lines(record: BenchRecord, path: Path) -> list[dict[str, Any]]:
    file = BenchFile.create(path, record.header)
    for entry in (*record.sessions, *record.samples, *record.splits, *record.endings):
        file.append(entry)
    file.close()
    return [json.loads(line) for line in path.read_text().splitlines()]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where numbers and texts stand; of a list the first entry."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from places(inner, (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value[:1]):
            yield from places(inner, (*path, place))
    elif isinstance(value, (int, float, str)) and not isinstance(value, bool):
        yield path


def written(tree: Any, path: tuple[Any, ...], raw: str) -> str:
    """The document as JSON with ``raw`` in that place."""
    tree = json.loads(json.dumps(tree))
    here = tree
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = "@here@"
    return json.dumps(tree).replace('"@here@"', raw)


def report(found: BenchRecord) -> None:
    """All that ``specdemo report`` and ``gate --result`` do with it."""
    summary = found.summary()
    decide(summary, GateRule(1.0, 0))
    html.render(document(found, summary, language="zh", workloads=shipped())).encode()
    json.loads(strict_json(contract(found, "b.jsonl", None)))
    (csv_tables.results(summary) + csv_tables.samples(found)).encode()


def told(path: Path, text: str, read: Callable[[Path], Any]) -> Any:
    """What was read, None if it was refused in one sentence."""
    path.write_text(text, encoding="utf-8")
    try:
        return read(path)
    except StoreError as refusal:
        said = str(refusal)
    assert len(said.splitlines()) == 1
    assert len(said) < 400
    return None


def test_nothing_in_a_benchmark_file_breaks_its_report(tmp_path: Path) -> None:
    """Each number and text of every kind of line in turn is made impossible: one sentence, or a report."""
    made = lines(benchmark(), tmp_path / "good.jsonl")
    chosen = {0, 1, 2, len(made) - 2, len(made) - 1}
    report(load(tmp_path / "good.jsonl"))
    refused = 0
    for number in chosen:
        for place in places(made[number]):
            for raw in RAW:
                text = [json.dumps(line) for line in made]
                text[number] = written(made[number], place, raw)
                found = told(tmp_path / "bad.jsonl", "\n".join(text) + "\n", load)
                refused += found is None
                if found is not None:
                    report(found)
    assert refused > 300


@pytest.mark.parametrize(
    "number,place,raw,words",
    [
        (2, ("decode_s",), "NaN", "not a JSON object"),
        (2, ("decode_s",), '"nan"', "decode_s is not valid"),
        (2, ("decode_s",), "1e308", "beyond all measure"),
        (2, ("decode_s",), "5e-324", "decode_s is not valid .no time"),
        (2, ("decode_tokens",), "-5", "decode_tokens is not valid .negative"),
        (2, ("decode_tokens",), "1" + "0" * 400, "beyond all measure"),
        (2, ("output_tokens",), "-5", "output_tokens is not valid .negative"),
        (2, ("ended_at",), '"nan"', "ended_at is not valid"),
        (2, ("ended_at",), "0", "ends before it starts"),
        (2, ("place", "prompt_id"), '"zzz"', "line 3 tells of a prompt that is not in the plan"),
        (2, ("place", "level"), "7", "a concurrency that is not in the plan"),
        (2, ("message",), '"\\ud800"', "half a character"),
        (2, ("histogram",), str([0] * 2000), "more than 1024"),
        (0, ("started_at",), "1e30", "beyond all measure"),
        (0, ("started_at",), "1e12", "started_at is not valid"),
        (0, ("started_at",), "-1e10", "date lies outside of time"),
        (1, ("started_at",), "-1e10", "line 2 has a date outside of time"),
        (0, ("plan", "levels"), "[0]", "its plan is impossible: Concurrency"),
        (0, ("plan", "repeats"), "1000000000", "its plan is impossible: The plan has more than"),
    ],
)
def test_a_damaged_benchmark_is_told_in_one_sentence(
    tmp_path: Path, number: int, place: tuple[Any, ...], raw: str, words: str
) -> None:
    """The sentence names line and field."""
    record = benchmark()
    made = lines(replace(record, samples=record.samples[-1:]), tmp_path / "good.jsonl")
    made[2].setdefault("message", "x")
    text = [json.dumps(line) for line in made]
    text[number] = written(made[number], place, raw)
    (tmp_path / "bad.jsonl").write_text("\n".join(text) + "\n")
    with pytest.raises(StoreError, match=words):
        load(tmp_path / "bad.jsonl")


def validation() -> ValidationResult:
    part = Component("temperature", -1.0, 0.3, -0.1, 0.1, 100)
    arm = ArmScore("plain", 100, 1, 0, part, part, part, part, 1.01, (10,) * 10)
    finding = Finding("plain", part, 0.5, decides=False)
    tree = TreeTest(0.5, (("p", 0.5),), 3, 199)
    verdict = SamplingVerdict("consistent", "told", (finding,), (finding,), ("x",), (("y", 0.9),))
    twice = (Duplicates(1, 2, 0.5, 1, 2, 0.5),)
    plan = ValidationPlan(prompts(1), budget_s=9.0)
    return ValidationResult(
        verdict, plan, "scores", 5, (arm,), (arm,), twice, tree, (("plain", 0.5),), "", PAIR, 9.0, 1.8e9
    )


def test_nothing_in_a_validation_breaks_its_report(tmp_path: Path) -> None:
    """Each number and text of a validation in turn is made impossible: one sentence, or a report."""
    path = tmp_path / "v.json"
    save_validation(path, validation())
    assert load_validation(path) == validation()
    document = json.loads(path.read_text())
    for place in places(document):
        for raw in RAW:
            found = told(path, written(document, place, raw), load_validation)
            if found is not None:
                html.render(validation_document(found, "zh")).encode()
                json.loads(strict_json(found))


@pytest.mark.parametrize(
    "place,raw,words",
    [
        (("standard", 0, "tokens"), "-1", "standard.0.tokens|negative"),
        (("standard", 0, "pit", "p"), "1.5", "pit.p is not valid .above 1"),
        (("standard", 0, "pit", "p"), "-0.1", "negative"),
        (("standard", 0, "pit", "z"), '"nan"', "pit.z is not valid"),
        (("duplicates", 0, "arm_a"), "-1", "negative"),
        (("seconds",), "NaN", "not strict JSON"),
        (("started_at",), "1e30", "beyond all measure"),
        (("started_at",), "-1e10", "date lies outside of time"),
        (("plan", "alpha"), "2", "above 1"),
    ],
)
def test_a_damaged_validation_is_told_in_one_sentence(
    tmp_path: Path, place: tuple[Any, ...], raw: str, words: str
) -> None:
    """Counts below 0, probabilities outside 0 to 1, numbers that are none."""
    path = tmp_path / "v.json"
    save_validation(path, validation())
    path.write_text(written(json.loads(path.read_text()), place, raw))
    with pytest.raises(StoreError, match=words):
        load_validation(path)
