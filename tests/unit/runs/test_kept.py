"""Kept results by name: newest first, and nothing outside their folder can be named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from specdemo.errors import StoreError
from specdemo.runs.kept import benchmark_path, benchmarks, new_name, validation_path, validations


def put(path: Path, at: float) -> Path:
    """A file that was written at a time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("x")
    os.utime(path, (at, at))
    return path


def test_the_newest_come_first(tmp_path: Path) -> None:
    """Benchmarks and sweeps in one list, validations in another; other files are not shown."""
    put(tmp_path / "benchmarks" / "old.jsonl", 100)
    put(tmp_path / "benchmarks" / "new.jsonl", 300)
    put(tmp_path / "benchmarks" / "notes.txt", 400)
    put(tmp_path / "benchmarks" / "sweep-1" / "set-k2.jsonl", 200)
    os.utime(tmp_path / "benchmarks" / "sweep-1", (200, 200))
    put(tmp_path / "validations" / "v.json", 100)
    assert [(kept.name, kept.is_sweep) for kept in benchmarks(tmp_path)] == [
        ("new", False), ("sweep-1", True), ("old", False)
    ]  # fmt: skip
    assert [kept.name for kept in validations(tmp_path)] == ["v"]
    assert len(benchmarks(tmp_path, most=1)) == 1
    assert benchmarks(tmp_path / "nowhere") == ()
    assert benchmark_path(tmp_path, "sweep-1").is_dir()


@pytest.mark.parametrize(
    "name", ["../secret", "..", "", "a/b", "/etc/passwd", ".hidden", "x\x00y", "unknown", "ä" * 200]
)
def test_names_stay_in_their_folder(tmp_path: Path, name: str) -> None:
    """A name that is none, or of nothing that is there, is one sentence."""
    put(tmp_path / "secret.jsonl", 1)
    (tmp_path / "benchmarks").mkdir()
    with pytest.raises(StoreError, match="no kept benchmark"):
        benchmark_path(tmp_path, name)
    with pytest.raises(StoreError, match="no kept sampling validation"):
        validation_path(tmp_path, name)


def test_new_names_sort_by_time_and_are_free() -> None:
    """Two of the same second differ."""
    first, second = new_name(1.8e9), new_name(1.8e9)
    assert first[:15] == second[:15] == "20270115-080000"
    assert first != second
