"""The state folder: the lock, the record of children, and the times of earlier starts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from specdemo.core.engine import EngineSpec
from specdemo.core.events import Side
from specdemo.engines.ledger import ChildRecord, Ledger, start_key
from specdemo.engines.process import RotatingLog
from specdemo.engines.speculation import parse_speculation
from specdemo.errors import ConfigError

CHILD = ChildRecord("standard", 4711, 12.5, "word", 8001, "demo", "/opt/python")
SPEC = EngineSpec(Side.STANDARD, "owner/model", "demo", "cpu")


def test_children_are_remembered_and_forgotten(tmp_path: Path) -> None:
    """A record survives its writer; a pid has one record; forgetting takes it out."""
    ledger = Ledger(tmp_path)
    ledger.record(CHILD)
    ledger.record(replace(CHILD, pid=4712, side="speculative"))
    ledger.record(replace(CHILD, port=8002))
    assert {child.pid: child.port for child in Ledger(tmp_path).children()} == {4711: 8002, 4712: 8001}
    ledger.forget(4711)
    assert [child.pid for child in ledger.children()] == [4712]


def test_the_lock_has_one_owner(tmp_path: Path) -> None:
    """A second owner is refused with the first one's process; after release it is free."""
    first, second = Ledger(tmp_path), Ledger(tmp_path)
    first.acquire()
    with pytest.raises(ConfigError, match=r"already runs here with its own engines \(process \d+\): stop it first, or"):
        second.acquire()
    first.release()
    second.acquire()
    second.release()
    second.release()


def test_the_estimate_is_the_median_of_the_last_five(tmp_path: Path) -> None:
    """One slow start among several does not spoil the estimate, and old ones are dropped."""
    ledger = Ledger(tmp_path)
    for seconds in (500.0, 500.0, 500.0, 40.0, 41.0, 300.0, 42.0, 43.0):
        ledger.remember_start("key", seconds)
    assert ledger.expected_seconds("key") == 42.0
    assert ledger.expected_seconds("other") is None


def test_a_folder_that_cannot_be_written_stops_no_start(tmp_path: Path) -> None:
    """A vanished state folder (or a full disk) costs the memory of a start, not the start."""
    ledger = Ledger(tmp_path / "gone")
    ledger.remember_start("key", 1.0)
    ledger.record(CHILD)
    assert ledger.children() == ()


def test_keys_of_starts() -> None:
    """What changes the loading time changes the key; the side and the port do not."""
    key = start_key(SPEC, version="0.32.0", parallel=True)
    assert key == start_key(replace(SPEC, side=Side.SPECULATIVE), version="0.32.0", parallel=True)
    for other in (replace(SPEC, dtype="bfloat16"), replace(SPEC, speculation=parse_speculation("ngram"))):
        assert key != start_key(other, version="0.32.0", parallel=True)
    assert key != start_key(SPEC, version="0.33.0", parallel=True)
    assert key != start_key(SPEC, version="0.32.0", parallel=False)


def test_logs_rotate(tmp_path: Path) -> None:
    """A log never grows above its limit by more than one write; older parts are kept up to a number, then dropped."""
    path = tmp_path / "engine.log"
    log = RotatingLog(path, limit=100, keep=3)
    for number in range(12):
        log.write([f"line {number:03d} " + "x" * 40])
    log.close()
    log.write(["after the end"])
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == ["engine.log", "engine.log.1", "engine.log.2"]
    assert all(file.stat().st_size <= 160 for file in files)
    assert "line 011" in "".join(file.read_text() for file in files)
    assert path.stat().st_mode & 0o077 == 0
