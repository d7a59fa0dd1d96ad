"""One engine child: start it, read its log, ask whether it lives, take its whole process group down.

Mechanism only; what should be running, and when to try again, is the supervisor's business. Knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import psutil

from specdemo.engines.logview import LogView
from specdemo.errors import EngineExited

LOG_BYTES = 2_000_000
LOG_KEEP = 3
_DRAIN_S = 0.5  # how long the last output of a dead child is waited for, when a grandchild holds the pipe


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: argument list (nothing passes through a shell), whole environment, and the port it will use.

    ``secrets`` are masked in the log; ``token`` is the word in the environment by which orphans are known.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str]
    port: int
    token: str
    secrets: tuple[str, ...] = ()


class RotatingLog:
    """A log file that never grows above ``limit`` bytes: older text moves to ``.1``, ``.2`` …, the last is dropped."""

    def __init__(self, path: Path, *, limit: int = LOG_BYTES, keep: int = LOG_KEEP) -> None:
        self.path, self._limit, self._keep = path, limit, keep
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[bytes] | None = self._opened()

    def write(self, lines: Sequence[str]) -> None:
        """Append lines; a full disk loses log lines, never the engine."""
        if self._file is None or not lines:
            return
        try:
            self._file.write("".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
            self._file.flush()
            if self._file.tell() > self._limit:
                self._rotate()
        except OSError:
            return

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _rotate(self) -> None:
        self.close()
        for number in range(self._keep - 1, 0, -1):
            older = self.path.with_name(f"{self.path.name}.{number}")
            newer = self.path if number == 1 else self.path.with_name(f"{self.path.name}.{number - 1}")
            if newer.exists():
                newer.replace(older)
        self._file = self._opened()

    def _opened(self) -> IO[bytes]:
        """Readable by its owner alone: prompts may appear in an engine's log."""
        return os.fdopen(os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), "ab")


@dataclass(slots=True)
class _Reader(asyncio.Protocol):
    """The child's output on its way to the view and the file."""

    on_bytes: Callable[[bytes], None]
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def data_received(self, data: bytes) -> None:
        self.on_bytes(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio passes it
        self.ended.set()


class EngineProcess:
    """One child in a session of its own, so that a Ctrl-C in the terminal reaches the application alone."""

    def __init__(self, launch: Launch, *, log_path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.launch = launch
        self.view = LogView(secrets=launch.secrets)
        self.create_time: float | None = None
        self.started_at: float | None = None
        self._clock = clock
        self._log_path = log_path
        self._log: RotatingLog | None = None
        self._child: asyncio.subprocess.Process | None = None
        self._reader: _Reader | None = None
        self._transport: asyncio.ReadTransport | None = None

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child is not None else None

    @property
    def alive(self) -> bool:
        """Whether the child itself runs (its group may outlive it)."""
        return self._child is not None and self._child.returncode is None

    @property
    def returncode(self) -> int | None:
        """Exit code, negative for a signal; None while it runs."""
        return self._child.returncode if self._child is not None else None

    async def start(self) -> None:
        """Raises EngineExited when the program cannot be started at all."""
        if self._child is not None:
            raise EngineExited("This engine process was started before.")
        self._log = RotatingLog(self._log_path)
        receive, send = os.pipe()
        try:
            self._child = await asyncio.create_subprocess_exec(
                *self.launch.words,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=send,
                stderr=send,
                env=dict(self.launch.environment),
                start_new_session=True,
            )
        except OSError as error:
            os.close(receive)
            self._log.close()
            raise EngineExited(
                f"The engine program {self.launch.words[0]} cannot be started: {error.strerror}."
            ) from None
        finally:
            os.close(send)
        self.started_at = self._clock()
        with contextlib.suppress(psutil.Error):
            self.create_time = psutil.Process(self._child.pid).create_time()
        self._reader = _Reader(self._take)
        loop = asyncio.get_running_loop()
        reader, pipe = self._reader, os.fdopen(receive, "rb", buffering=0)
        self._transport, _ = await loop.connect_read_pipe(lambda: reader, pipe)

    async def wait(self) -> int:
        """Wait for the exit and for what it said last; returns the exit code."""
        if self._child is None:
            raise EngineExited("This engine process was never started.")
        code = await self._child.wait()
        if self._reader is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._reader.ended.wait(), _DRAIN_S)
        self._write(self.view.finish())
        return code

    def memory_bytes(self) -> int | None:
        """Resident memory of the whole group, in bytes; None once it is gone. Reads /proc: call it in a thread."""
        total = 0
        for process in self.members():
            with contextlib.suppress(psutil.Error):
                total += process.memory_info().rss
        return total or None

    def members(self) -> list[psutil.Process]:
        """The living processes of the child's session, the child among them."""
        return session_members(self.pid) if self.pid is not None else []

    def listens(self) -> bool | None:
        """Whether one of our own processes holds the listening port; None where the system does not tell."""
        found: bool | None = False
        for process in self.members():
            try:
                for connection in process.net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN and connection.laddr.port == self.launch.port:
                        return True
            except psutil.NoSuchProcess:
                continue
            except (psutil.Error, OSError):
                found = None
        return found

    async def stop(self, *, grace_s: float = 10.0) -> None:
        """Ask the child to end (SIGTERM), wait ``grace_s``, then kill whatever is left of its whole session."""
        if self._child is None:
            return
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self._child.send_signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._child.wait(), grace_s)
        for _ in range(100):
            if not await asyncio.to_thread(self.kill_now):
                break
            await asyncio.sleep(0.05)
        await self.wait()
        if self._transport is not None:
            self._transport.close()
        if self._log is not None:
            self._log.close()

    def kill_now(self) -> int:
        """SIGKILL everything in the child's session, at once and without a loop; returns how many were still there."""
        members = self.members()
        for process in members:
            with contextlib.suppress(psutil.Error):
                process.kill()
        return len(members)

    def _take(self, data: bytes) -> None:
        self._write(self.view.feed(data))

    def _write(self, lines: Sequence[str]) -> None:
        if self._log is not None:
            self._log.write(lines)


def session_members(session: int) -> list[psutil.Process]:
    """Living processes of one session (zombies do not count). vLLM's workers stay in the session of the server.

    While any of them lives, the system gives the session's number to no new process, so it cannot mean another one.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, ProcessLookupError, PermissionError):
            continue
    return found
