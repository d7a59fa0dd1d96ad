"""What outlives a crash: who runs engines here, which children it started, and how long earlier starts took.

A folder with three files: ``lock`` (held while a supervisor runs), ``engines.json`` (its children) and ``starts.json``.
Each is written whole to a temporary file and renamed, and a damaged one counts as empty.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import IO, Any

from specdemo.core.engine import EngineSpec
from specdemo.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows: the application runs there (attached engines, replay), vLLM does not
    fcntl = None  # type: ignore[assignment]

_KEPT_STARTS = 5
_FILE_LIMIT = 1_000_000


@dataclass(frozen=True, slots=True)
class ChildRecord:
    """One started child. ``create_time`` (s since 1970) and ``token`` tell it from a later process of the same pid."""

    side: str
    pid: int
    create_time: float
    token: str
    port: int
    served_name: str
    program: str


class Ledger:
    """The folder's files. One instance per supervisor; ``acquire`` before anything is started."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock: IO[str] | None = None

    def acquire(self) -> None:
        """Take the lock, or raise ConfigError naming the process that has it and its engines' addresses."""
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = (self.folder / "lock").open("a+", encoding="utf-8")
        try:
            if fcntl is not None:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.seek(0)
            owner = lock.read(20).strip()
            lock.close()
            raise ConfigError(self._taken(owner)) from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock

    def release(self) -> None:
        """Give the lock back; the file stays, since removing it would let two owners lock two files of one name."""
        if self._lock is not None:
            self._lock.truncate(0)
            self._lock.close()
            self._lock = None

    def children(self) -> tuple[ChildRecord, ...]:
        """The children on record, whoever started them."""
        found = []
        for entry in _entries(_read(self.folder / "engines.json"), "children"):
            with contextlib.suppress(TypeError, ValueError, KeyError):
                found.append(
                    ChildRecord(
                        side=str(entry["side"]),
                        pid=int(entry["pid"]),
                        create_time=float(entry["create_time"]),
                        token=str(entry["token"]),
                        port=int(entry["port"]),
                        served_name=str(entry["served_name"]),
                        program=str(entry["program"]),
                    )
                )
        return tuple(record for record in found if record.pid > 1 and record.token)

    def record(self, child: ChildRecord) -> None:
        """Remember a child, in place of an earlier record of the same pid."""
        self._write([*(old for old in self.children() if old.pid != child.pid), child])

    def forget(self, pid: int) -> None:
        """A child is gone."""
        self._write([old for old in self.children() if old.pid != pid])

    def expected_seconds(self, key: str) -> float | None:
        """Median seconds from launch to ready of the last starts under ``key``; None if never seen."""
        starts = _read(self.folder / "starts.json").get(key)
        kept = starts if isinstance(starts, list) else []
        seconds = [float(item) for item in kept if isinstance(item, int | float)]
        return median(seconds) if seconds else None

    def remember_start(self, key: str, seconds: float) -> None:
        """Add one start; the last five count."""
        path = self.folder / "starts.json"
        starts = _read(path)
        earlier = starts.get(key)
        starts[key] = [*(earlier if isinstance(earlier, list) else []), round(seconds, 2)][-_KEPT_STARTS:]
        _write(path, starts)

    def _write(self, children: list[ChildRecord]) -> None:
        _write(self.folder / "engines.json", {"children": [asdict(child) for child in children]})

    def _taken(self, owner: str) -> str:
        known = {child.side: child.port for child in self.children()}
        attach = " ".join(f"--{side}-url http://127.0.0.1:{port}" for side, port in known.items())
        use = f", use its engines ({attach})" if len(known) == 2 else ""
        return (
            f"specdemo already runs here with its own engines{f' (process {owner})' if owner.isdigit() else ''}: "
            f"stop it first{use}, or set another SPECDEMO_DATA_DIR."
        )


def start_key(spec: EngineSpec, *, version: str | None, parallel: bool) -> str:
    """A name for all that the loading time depends on: equal for equal starts, says nothing about the content."""
    speculation = spec.speculation
    config = speculation.config if speculation else None
    size = (spec.tensor_parallel, spec.max_model_len, spec.cores)
    parts = (spec.model, spec.device, spec.dtype, spec.enforce_eager, size, spec.flags, config, version, parallel)
    return sha256(repr(parts).encode()).hexdigest()[:16]


def _entries(data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = data.get(name)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _read(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _FILE_LIMIT:
            return {}
        data = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _write(path: Path, data: dict[str, Any]) -> None:
    """Atomic; a full disk costs the memory of this start, not the start."""
    with contextlib.suppress(OSError):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(data, file)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
