"""However the application ends, no engine outlives it; after a SIGKILL the next start finds the orphans."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from specdemo.engines import orphans
from specdemo.engines.ledger import ChildRecord, Ledger
from tests.fakes.supervised import FakeEngines, supervisor

ROOT = Path(__file__).parents[2]


@contextmanager
def application(folder: Path, how: str) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The small application once both its engines are ready, and their pids."""
    program = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.supervising", str(folder), how],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip
    assert program.stdout is not None
    line = program.stdout.readline()
    pids: list[int] = json.loads(line) if line else []
    try:
        yield program, pids
    finally:
        program.kill()
        program.communicate()
        for pid in pids:
            for process in orphans.session_members(pid):
                process.kill()


def gone(pids: list[int]) -> bool:
    """Whether none of them runs (a zombie that nobody reaped does not)."""
    running = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(running, timeout=10)
    return not [process for process in alive if process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing_behind(tmp_path: Path, number: signal.Signals) -> None:
    """Ctrl-C, a plain kill and a closed terminal: both engines are gone when the application is."""
    with application(tmp_path, "wait") as (program, pids):
        assert len(pids) == 2
        program.send_signal(number)
        program.wait(30)
        assert gone(pids)
        assert Ledger(tmp_path / "state").children() == ()


@pytest.mark.parametrize("how", ["raise", "forget"])
def test_a_crash_of_the_application_leaves_nothing_behind(tmp_path: Path, how: str) -> None:
    """An exception, and an interpreter exit without closing (atexit), take the engines down too."""
    with application(tmp_path, how) as (program, pids):
        assert len(pids) == 2
        program.wait(30)
        assert gone(pids)


async def test_orphans_of_a_killed_application_are_found_and_removed(tmp_path: Path) -> None:
    """After SIGKILL both engines run on; the next start finds them by pid, creation time and token, and can end them."""
    with application(tmp_path, "wait") as (program, pids):
        program.send_signal(signal.SIGKILL)
        program.wait(30)
        async with supervisor(tmp_path, FakeEngines()) as control:
            found = control.found_orphans
            assert sorted(pid for orphan in found for pid in orphan.pids) == sorted(pids)
            assert "engine of an earlier run" in str(found[0])
            assert await control.remove_orphans() == 2
            assert gone(pids)
            assert control.found_orphans == ()
    assert orphans.find(tmp_path / "state") == ()


def test_workers_are_found_after_their_server_died(tmp_path: Path) -> None:
    """A worker that outlived its server is known by the session and the program, since vLLM overwrites its environment."""
    script = (
        "import subprocess, sys\n"
        "args = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "worker = subprocess.Popen(args, stdout=subprocess.DEVNULL)\n"
        "print(worker.pid, flush=True)\n"
        "sys.stdin.read()\n"
    )
    leader = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "SPECDEMO_ENGINE_TOKEN": "word"},
    )  # fmt: skip
    assert leader.stdout is not None
    worker = int(leader.stdout.readline())
    created = psutil.Process(leader.pid).create_time()
    Ledger(tmp_path).record(ChildRecord("standard", leader.pid, created, "word", 8000, "demo", sys.executable))
    leader.kill()
    leader.communicate()
    assert [orphan.pids for orphan in orphans.find(tmp_path)] == [(worker,)]
    assert orphans.remove(tmp_path) == 1
    assert gone([worker])


def test_a_stranger_with_a_recorded_pid_is_left_alone(tmp_path: Path) -> None:
    """A number used again, by another program or without our token, is neither listed nor ended."""
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    try:
        created = psutil.Process(stranger.pid).create_time()
        ledger = Ledger(tmp_path)
        ledger.record(ChildRecord("standard", stranger.pid, created, "word", 8000, "demo", sys.executable))
        assert orphans.find(tmp_path) == ()
        ledger.record(ChildRecord("standard", stranger.pid, created - 100, "word", 8000, "demo", sys.executable))
        assert orphans.remove(tmp_path) == 0
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"children": 5}', '{"children": [{"pid": "x"}, {"pid": -1}, 7]}'])
def test_a_damaged_record_counts_as_empty(tmp_path: Path, text: str) -> None:
    """A half-written or hostile state file stops no start and names no process."""
    (tmp_path / "engines.json").write_text(text)
    (tmp_path / "starts.json").write_text(text)
    assert orphans.find(tmp_path) == ()
    ledger = Ledger(tmp_path)
    assert ledger.expected_seconds("key") is None
    ledger.remember_start("key", 12.0)
    assert ledger.expected_seconds("key") == 12.0
