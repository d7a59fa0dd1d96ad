"""The stage that brings a PostgreSQL server for the store's tests."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tools.bootstrap import machine, stages
from tools.bootstrap.stage import Screen


def test_postgresql_is_found_where_debian_puts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest server's programs count; without any the PATH decides, and then nothing."""
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert machine.postgresql(tmp_path) is None
    for version in ("15", "17"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "initdb").touch()
    assert machine.postgresql(tmp_path) == str(tmp_path / "17" / "bin" / "initdb")


@pytest.mark.parametrize("root", [False, True])
def test_a_missing_database_stops_nothing(monkeypatch: pytest.MonkeyPatch, root: bool) -> None:
    """Only as root is it installed; without it the tests go on, and say so."""
    asked: list[str] = []
    monkeypatch.setattr(machine, "postgresql", lambda: None)
    monkeypatch.setattr(stages, "may_install", lambda: root)
    monkeypatch.setattr(stages, "apt_install", asked.extend)
    shown = io.StringIO()
    stages.database_stage().build(Screen(shown))
    assert asked == (["postgresql"] if root else [])
    assert "SQLite alone" in shown.getvalue()
