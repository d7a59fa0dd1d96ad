"""A stage is up to date, or it is built and stamped. An interrupted build leaves no stamp: the next run resumes it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tools.bootstrap.machine import GB


class Screen:
    """Lines on stderr. On a terminal a passing line is overwritten; elsewhere one appears every ``every_s`` seconds."""

    def __init__(
        self, out: TextIO | None = None, *, clock: Callable[[], float] = time.monotonic, every_s: float = 10.0
    ) -> None:
        self._out = out or sys.stderr
        self._clock = clock
        self._live = bool(getattr(self._out, "isatty", lambda: False)())
        self._every_s = 0.2 if self._live else every_s
        self._last = self._started = clock()
        self._pending = False

    def line(self, text: str) -> None:
        """A line that stays."""
        self._clear()
        print(text, file=self._out, flush=True)

    def start(self) -> None:
        """Begin counting the seconds of a stage."""
        self._started = self._last = self._clock()

    def passing(self, text: str) -> None:
        """A line about where the work is now."""
        now = self._clock()
        if now - self._last < self._every_s:
            return
        self._last = now
        text = f"      {now - self._started:4.0f} s  {text}"
        if self._live:
            print(f"\r\033[K{text[:110]}", end="", file=self._out, flush=True)
            self._pending = True
        else:
            self.line(text)

    def seconds(self) -> float:
        """Since ``start``."""
        return self._clock() - self._started

    def _clear(self) -> None:
        if self._pending:
            print("\r\033[K", end="", file=self._out)
            self._pending = False


@dataclass(frozen=True)
class Stage:
    """``build`` makes ``folder``; it is up to date while its stamp says the same ``inputs`` and ``alive`` holds.

    ``inputs`` are texts and files: their content decides, not their time.
    """

    title: str
    build: Callable[[Screen], None]
    folder: Path | None = None
    stamp: str = "specdemo-stamp.json"
    inputs: Sequence[str | Path] = ()
    alive: Callable[[], bool] = field(default=lambda: True)
    always: bool = False

    def key(self) -> str:
        """A digest of everything that the result depends on."""
        digest = hashlib.sha256()
        for item in self.inputs:
            content = item.read_bytes() if isinstance(item, Path) else item.encode()
            digest.update(len(content).to_bytes(8, "big") + content)
        return digest.hexdigest()

    def up_to_date(self) -> bool:
        """Whether nothing is to be done."""
        if self.always or self.folder is None:
            return False
        try:
            stamped = json.loads((self.folder / self.stamp).read_text(encoding="utf-8"))["key"]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return bool(stamped == self.key()) and self.alive()

    def remember(self) -> None:
        """Only after a build that worked."""
        if self.folder is not None and self.stamp:
            (self.folder / self.stamp).write_text(json.dumps({"key": self.key()}), encoding="utf-8")


def run_stages(stages: Sequence[Stage], screen: Screen) -> None:
    """One after the other; the first that fails stops the rest."""
    for number, stage in enumerate(stages, 1):
        head = f"[{number}/{len(stages)}] {stage.title}"
        if stage.up_to_date():
            screen.line(f"{head}: up to date")
            continue
        screen.line(head)
        screen.start()
        if stage.folder is not None:
            # While it is being changed, it must not look finished.
            (stage.folder / stage.stamp).unlink(missing_ok=True)
        stage.build(screen)
        stage.remember()
        size = f", {tree_bytes(stage.folder) / GB:.2f} GB on disk" if stage.folder else ""
        screen.line(f"      done in {screen.seconds():.0f} s{size}")


def tree_bytes(folder: Path) -> int:
    """Bytes of all files below ``folder``; links count as nothing."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            total += status.st_size if not path.is_symlink() else 0
    return total


@contextlib.contextmanager
def alone(lock: Path, screen: Screen) -> Iterator[None]:
    """Two setups of one checkout at once would write into each other; the second waits."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            screen.line("another setup of this project is running; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
