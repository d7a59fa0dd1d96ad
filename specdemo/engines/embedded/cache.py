"""A folder of files that is either whole or treated as absent: manifest, check, atomic replacement."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "specdemo-manifest.json"
PARTIAL = ".partial-"


@dataclass(frozen=True, slots=True)
class CacheState:
    """``state`` is "absent", "damaged" (``detail`` says which file and how) or "whole"."""

    state: str
    detail: str = ""

    @property
    def whole(self) -> bool:
        return self.state == "whole"


def sha256(path: Path) -> str:
    """Hex digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(folder: Path, facts: dict[str, Any]) -> None:
    """Size and digest of every file in ``folder``, written last and flushed to disk, readable by every user."""
    files: dict[str, dict[str, Any]] = {}
    for path in sorted(entry for entry in folder.iterdir() if entry.is_file() and entry.name != MANIFEST):
        path.chmod(0o644)  # safetensors writes 0600, which would lock out a second user of a shared cache
        files[path.name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    with (folder / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump({**facts, "files": files}, file, indent=1, sort_keys=True)
        file.flush()
        os.fsync(file.fileno())


def check(folder: Path, *, deep: bool = True) -> CacheState:
    """Compare ``folder`` with its manifest. ``deep`` reads every byte (0.3 s for 270 MB); otherwise sizes only."""
    if not folder.is_dir():
        return CacheState("absent")
    try:
        files = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))["files"]
        for name, wanted in files.items():
            path = folder / name
            if not path.is_file():
                return CacheState("damaged", f"{name} is missing")
            size = path.stat().st_size
            if size != wanted["bytes"]:
                return CacheState("damaged", f"{name} has {size} bytes instead of {wanted['bytes']}")
            if deep and sha256(path) != wanted["sha256"]:
                return CacheState("damaged", f"{name} has changed")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return CacheState("damaged", f"its {MANIFEST} cannot be read")
    return CacheState("whole") if files else CacheState("damaged", "its manifest lists no file")


def partial(parent: Path, name: str) -> Path:
    """A new folder beside the final one, so that the rename stays on one file system."""
    return Path(tempfile.mkdtemp(prefix=f"{name}{PARTIAL}", dir=parent))


def discard_partials(parent: Path, name: str) -> int:
    """Remove what earlier interrupted attempts left; call it under the lock. Returns how many."""
    leftovers = list(parent.glob(f"{name}{PARTIAL}*"))
    for leftover in leftovers:
        shutil.rmtree(leftover, ignore_errors=True)
    return len(leftovers)


def replace(new: Path, final: Path) -> None:
    """``new`` becomes ``final`` in one rename; a damaged ``final`` is moved aside first and then removed."""
    if final.exists():
        old = partial(final.parent, final.name)
        old.rmdir()
        final.rename(old)
        shutil.rmtree(old, ignore_errors=True)
    new.chmod(0o755)
    new.rename(final)
