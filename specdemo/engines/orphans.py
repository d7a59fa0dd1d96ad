"""Engine processes that a crashed earlier run left behind: found by the record it kept, removed on request.

A pid alone proves nothing, since numbers are used again. A process counts as ours if it is the recorded one (same
creation time and the random token in its environment), or if it belongs to that child's session and runs the same
program: vLLM's workers overwrite their own environment, and a session's number stays taken while any member lives.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import psutil

from specdemo.engines.command import TOKEN_VARIABLE
from specdemo.engines.ledger import ChildRecord, Ledger
from specdemo.engines.process import session_members

_SAME_S = 0.02  # creation times are multiples of 10 ms
_CLOCK_SLACK_S = 2.0


@dataclass(frozen=True, slots=True)
class Orphan:
    """One engine of an earlier run that still has processes. ``pids`` are all of them, ``memory_bytes`` their sum."""

    record: ChildRecord
    pids: tuple[int, ...]
    memory_bytes: int

    def __str__(self) -> str:
        megabytes = round(self.memory_bytes / 1e6)
        return (
            f"{self.record.side} engine of an earlier run (processes {', '.join(map(str, self.pids))}; {megabytes} MB)"
        )


def find(state_dir: Path) -> tuple[Orphan, ...]:
    """Engines on record whose owner is gone. Call it while holding the lock, or when nobody holds it."""
    found = []
    for record in Ledger(state_dir).children():
        processes = _processes(record)
        if processes:
            memory = 0
            for process in processes:
                with contextlib.suppress(psutil.Error):
                    memory += process.memory_info().rss
            found.append(Orphan(record, tuple(process.pid for process in processes), memory))
    return tuple(found)


def remove(state_dir: Path, orphans: tuple[Orphan, ...] | None = None, *, grace_s: float = 5.0) -> int:
    """End these, or all that ``find`` finds: SIGTERM, then SIGKILL after ``grace_s``; returns the number of ended ones.

    Blocking; call it in a thread. Identity is checked again right before each signal.
    """
    ledger = Ledger(state_dir)
    ended = 0
    for orphan in find(state_dir) if orphans is None else orphans:
        processes = _processes(orphan.record)
        for process in processes:
            if process.pid == orphan.record.pid:
                with contextlib.suppress(psutil.Error):
                    process.terminate()
        _, alive = psutil.wait_procs(processes, timeout=grace_s)
        for process in (*alive, *_processes(orphan.record)):
            with contextlib.suppress(psutil.Error):
                process.kill()
        _, left = psutil.wait_procs(processes, timeout=grace_s)
        ended += len(processes) - len(left)
        if not left:
            ledger.forget(orphan.record.pid)
    return ended


def _processes(record: ChildRecord) -> list[psutil.Process]:
    leader = _leader(record)
    members = session_members(record.pid)
    if leader is not None:
        return members or [leader]
    if any(process.pid == record.pid for process in members):
        return []  # the number was given to a stranger's session
    return [process for process in members if _same_program(process, record)]


def _leader(record: ChildRecord) -> psutil.Process | None:
    try:
        process = psutil.Process(record.pid)
        if abs(process.create_time() - record.create_time) > _SAME_S or process.status() == psutil.STATUS_ZOMBIE:
            return None
        return process if process.environ().get(TOKEN_VARIABLE) == record.token else None
    except (psutil.Error, OSError):
        return None


def _same_program(process: psutil.Process, record: ChildRecord) -> bool:
    try:
        started_later = process.create_time() >= record.create_time - _CLOCK_SLACK_S
        return started_later and Path(process.exe()).resolve() == Path(record.program).resolve()
    except (psutil.Error, OSError):
        return False
