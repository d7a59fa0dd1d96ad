"""Benchmark files: wrong ones are refused with a sentence, existing ones are never overwritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader, Ending
from specdemo.errors import StoreError
from specdemo.runs.bench_store import BenchFile, load
from tests.fakes.bench_samples import prompts


@pytest.mark.parametrize(
    "data, words",
    [
        (b"", "empty"),
        (b'{"type":"run","schema":1}\n', "no benchmark file"),
        (b'{"type":"bench","schema":99}\n', "schema 1"),
        (b'{"type":"bench","schema":1,"id":"x"}\n', "field required"),
        (b"[1]\n", "not a JSON object"),
        (b"[" * 100_000 + b"\n", "not a JSON object"),
        (b'{"type":"bench","sch', "line 1 is not a JSON object"),
    ],
)
def test_files_that_are_no_benchmark_get_one_sentence(tmp_path: Path, data: bytes, words: str) -> None:
    """A wrong file is a StoreError that says what is wrong, never a traceback."""
    path = tmp_path / "x.jsonl"
    path.write_bytes(data)
    with pytest.raises(StoreError, match=words):
        load(path)
    with pytest.raises(StoreError, match="can't be read"):
        load(tmp_path / "absent.jsonl")


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    """Starting anew on a file with results is refused and says how to go on."""
    header = BenchHeader("b", 0.0, BenchPlan(prompts(1)))
    BenchFile.create(tmp_path / "b.jsonl", header).close()
    with pytest.raises(StoreError, match="--resume"):
        BenchFile.create(tmp_path / "b.jsonl", replace(header, id="c"))


@pytest.mark.parametrize(
    "text", ['{"prompt": "a"}\n{"prompt": "b"}', "one line", '{"type":"bench","schema":1}\n{}\n{"x']
)
def test_a_resume_changes_no_file_of_another_kind(tmp_path: Path, text: str) -> None:
    """A prompt file without a last line end, given by mistake, keeps its last line."""
    path = tmp_path / "prompts.jsonl"
    path.write_text(text)
    with pytest.raises(StoreError):
        BenchFile.reopen(path)
    assert path.read_text() == text


def test_a_last_line_that_is_whole_but_for_its_end_is_kept(tmp_path: Path) -> None:
    """What loading counts is still there after a resume, and the next entry has a line of its own."""
    path = tmp_path / "b.jsonl"
    file = BenchFile.create(path, BenchHeader("b", 0.0, BenchPlan(prompts(1))))
    file.append(Ending(0, "stopped", "first"))
    file.close()
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    file = BenchFile.reopen(path)
    file.append(Ending(1, "stopped", "second"))
    file.close()
    assert [ending.reason for ending in load(path).endings] == ["first", "second"]


def test_two_benchmarks_in_one_file_are_not_mixed(tmp_path: Path) -> None:
    """Joined files are refused: their samples would stand for one benchmark."""
    path = tmp_path / "b.jsonl"
    BenchFile.create(path, BenchHeader("b", 0.0, BenchPlan(prompts(1)))).close()
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(StoreError, match="line 2 begins another benchmark"):
        load(path)
