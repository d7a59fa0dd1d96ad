"""Kept results by name: benchmarks, sweeps and sampling validations in the data folder, the newest first.

The page and the command line write to the same places, so that either finds what the other has measured.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from specdemo.errors import StoreError

BENCHMARKS, VALIDATIONS = "benchmarks", "validations"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True, slots=True)
class Kept:
    """One result. ``at`` is when it was last written (s since 1970); a sweep is a folder of benchmarks."""

    name: str
    path: Path
    at: float

    @property
    def is_sweep(self) -> bool:
        """Whether it is a folder of benchmarks."""
        return self.path.is_dir()


def new_name(now: float) -> str:
    """A name that sorts by time and is free: ``20260101-120000-a1b2c3``. ``now`` in s since 1970."""
    return f"{datetime.fromtimestamp(now, UTC).strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"


def benchmarks(data: Path, *, most: int = 100) -> tuple[Kept, ...]:
    """Benchmarks and sweeps, the newest first, at most ``most``."""
    return _listed(data / BENCHMARKS, ".jsonl", most)


def validations(data: Path, *, most: int = 100) -> tuple[Kept, ...]:
    """Sampling validations, the newest first, at most ``most``."""
    return _listed(data / VALIDATIONS, ".json", most)


def validations_folder(data: Path) -> Path:
    """Where sampling validations are kept."""
    return data / VALIDATIONS


def benchmarks_folder(data: Path) -> Path:
    """Where benchmarks and sweeps are kept."""
    return data / BENCHMARKS


def benchmark_path(data: Path, name: str) -> Path:
    """The file of a benchmark or the folder of a sweep. Raises StoreError with one sentence."""
    return _found(data / BENCHMARKS, name, ".jsonl", "benchmark")


def validation_path(data: Path, name: str) -> Path:
    """The file of a validation. Raises StoreError with one sentence."""
    return _found(data / VALIDATIONS, name, ".json", "sampling validation")


def _listed(folder: Path, suffix: str, most: int) -> tuple[Kept, ...]:
    try:
        entries = [path for path in folder.iterdir() if path.suffix == suffix or path.is_dir()]
        found = [Kept(path.name.removesuffix(suffix), path, path.stat().st_mtime) for path in entries]
    except OSError:
        return ()
    named = [kept for kept in found if _NAME.fullmatch(kept.name)]
    return tuple(sorted(named, key=lambda kept: (-kept.at, kept.name))[:most])


def _found(folder: Path, name: str, suffix: str, what: str) -> Path:
    # The name may come from a stranger; nothing outside the folder can be named.
    if _NAME.fullmatch(name):
        for path in (folder / f"{name}{suffix}", folder / name):
            if path.is_file() and path.suffix == suffix:
                return path
            if suffix == ".jsonl" and path.is_dir():
                return path
    raise StoreError(f"There is no kept {what} of this name: {name[:100]!r}.")
