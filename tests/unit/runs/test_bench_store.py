"""Benchmark files: wrong ones are refused with a sentence, existing ones are never overwritten."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.bench.plan import BenchPlan
from specdemo.bench.record import BenchHeader
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
