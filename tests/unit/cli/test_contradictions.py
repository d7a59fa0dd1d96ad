"""Flags that contradict each other or could never be used: one sentence and its exit code, before any engine is asked."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest

from specdemo.bench.gate import GateRule
from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, BenchRecord, Ending
from specdemo.cli import main
from specdemo.cli.bench_common import write
from specdemo.errors import StoreError
from specdemo.runs.bench_store import BenchFile
from specdemo.settings import load
from tests.fakes.bench_samples import prompts

NOWHERE = ("--standard-url", "http://127.0.0.1:9", "--speculative-url", "http://127.0.0.1:9")
PLAN = BenchPlan(prompts(2))
gate_module = importlib.import_module("specdemo.cli.gate")  # the package has a function of this name


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with prompts, an unfinished and a complete benchmark, and a folder in it."""
    monkeypatch.chdir(tmp_path)
    Path("p.jsonl").write_text('{"prompt":"a"}\n{"prompt":"b"}')
    Path("folder").mkdir()
    for name in ("open", "done"):
        file = BenchFile.create(Path(f"{name}.jsonl"), BenchHeader(name, 0.0, BenchPlan(prompts(2))))
        if name == "done":
            file.append(Ending(0, "complete", "All."))
        file.close()
    return tmp_path


@pytest.mark.parametrize(
    "words, code, said",
    [
        ("bench --resume open.jsonl --levels 1,2", 2, "--levels has no effect with --resume"),
        ("bench --resume open.jsonl --own-length", 2, "--equal-length/--own-length has no effect with --resume"),
        ("bench --resume open.jsonl --out new.jsonl", 2, "--out has no effect with --resume"),
        ("bench --resume done.jsonl", 2, "there is nothing left to measure"),
        ("bench --resume p.jsonl", 1, "no benchmark file"),
        ("bench --resume absent.jsonl", 1, "can't be read"),
        ("bench --dataset p.jsonl --language en", 2, "--language chooses among the shipped prompts"),
        ("bench --dataset p.jsonl --null --sweep-k 4", 2, "can't be swept"),
        ("bench --dataset p.jsonl --budget 99999999999999h", 2, "The time budget must lie between"),
        ("bench --dataset p.jsonl --repeats 99999999", 2, "more than 200,000 requests"),
        ("bench --dataset p.jsonl --out p.jsonl", 1, "p.jsonl exists already"),
        ("bench --dataset p.jsonl --out folder/new.jsonl --report folder", 1, "it is a folder"),
        ("bench --dataset p.jsonl --report p.jsonl/r.html", 1, "is no folder"),
        ("gate --min-speedup nan", 2, "a number above 0"),
        ("gate --min-speedup inf", 2, "a number above 0"),
        ("gate --min-speedup 1.2 --result open.jsonl --dataset p.jsonl", 2, "--dataset has no effect with --result"),
        ("gate --min-speedup 1.2 --result open.jsonl --no-wait", 3, "No decision"),
        ("gate --min-speedup 1.2 --junit folder", 1, "it is a folder"),
        ("validate --top-p 0.5", 2, "give its --temperature too"),
        ("validate --temperature nan --top-k 4", 2, "Temperature must lie between"),
        ("validate --temperature inf --top-k 4", 2, "Temperature must lie between"),
        ("validate --temperature 0 --top-k 4", 2, "Temperature 0 is greedy"),
        ("validate --seed 99999999999", 2, "The seed must lie between"),
        ("validate --lookup-min 5 --lookup-max 2", 2, "at most prompt_lookup_max"),
        ("validate --save folder", 1, "it is a folder"),
        ("race hello --save folder", 1, "it is a folder"),
        ("report folder", 1, "holds no benchmark"),
        ("report open.jsonl --format md --out open.jsonl", 2, "would overwrite"),
        ("report open.jsonl done.jsonl --validation v.json", 2, "of one benchmark"),
        ("report open.jsonl --format csv --validation v.json", 2, "of one benchmark"),
    ],
)
def test_one_sentence_and_nothing_written(
    words: str, code: int, said: str, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code is that of wrong use (2), a file (1) or no data (3); no file is made or changed."""
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    command, *others = words.split()
    assert main([command, *NOWHERE, *others]) == code
    shown = capsys.readouterr()
    assert said in shown.err + shown.out
    assert "Traceback" not in shown.err
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "words, said",
    [
        ("--sweep-k ,", "Draft lengths are whole numbers"),
        ("--sweep-k 4 --out p.jsonl", "a sweep keeps one file a point"),
        ("--sweep-k 4,5 --out .", "set-k5.jsonl exists already"),
    ],
)
def test_sweeps_are_checked_before_engines_restart(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A point that could not be kept is told before the first one is measured."""
    Path("set-k5.jsonl").write_text("")
    assert main(["bench", "--engines", "managed", "--dataset", "p.jsonl", *words.split()]) in (1, 2)
    assert said in capsys.readouterr().err


def test_a_report_replaces_an_older_one_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up in mid-write leaves the old file, and no part of the new one."""
    write(Path("r.html"), "old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", full)
        with pytest.raises(StoreError, match="No space left"):
            write(Path("r.html"), "new")
    assert Path("r.html").read_text() == "old"
    write(Path("r.html"), "new")
    write(Path("/dev/null"), "gone")
    assert Path("r.html").read_text() == "new"
    assert not list(Path().glob(".*"))


async def test_a_stopped_gate_still_prints_its_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who reads the JSON of a gate gets one document in every case."""

    async def stopped(*_: object, **__: object) -> tuple[BenchRecord, Ending, Path]:
        ending = Ending(0, "stopped", "Stopped; 3 of 8 requests are kept.")
        return BenchRecord(BenchHeader("b", 0.0, PLAN)), ending, Path("b.jsonl")

    monkeypatch.setattr(gate_module, "run_session", stopped)
    code = await gate_module._gate(load({}), PLAN, GateRule(1.2), None, None, wait=False, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert (code, document["exit_code"], document["word"]) == (130, 130, "error")
    assert "3 of 8" in document["reason"]
