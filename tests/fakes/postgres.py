"""A real PostgreSQL server of the test's own, from the system's programs, in a folder that goes away."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path


def programs() -> Path | None:
    """The folder with ``initdb`` and ``postgres`` (Debian keeps them out of the PATH); None if there is none."""
    found = [Path("/usr/lib/postgresql") / name / "bin" for name in _versions()]
    on_path = shutil.which("initdb")
    return next((folder for folder in found if (folder / "initdb").exists()), on_path and Path(on_path).parent) or None


def _versions() -> list[str]:
    try:
        return sorted((path.name for path in Path("/usr/lib/postgresql").iterdir()), key=float, reverse=True)
    except (OSError, ValueError):
        return []


def user() -> str | None:
    """Who the server runs as: PostgreSQL refuses root, so root hands over to ``postgres`` or ``nobody``."""
    if os.geteuid() != 0:
        return None
    names = [entry.pw_name for entry in pwd.getpwall()]
    return next((name for name in ("postgres", "nobody") if name in names), None)


@contextlib.contextmanager
def serving(bin_folder: Path) -> Iterator[str]:
    """A server on a free loopback port; yields its address. It trusts whoever comes, and forgets all at the end."""
    who = user()
    with tempfile.TemporaryDirectory(prefix="specdemo-pg-") as folder:
        if who is not None:
            shutil.chown(folder, who)
            Path(folder).chmod(0o700)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]

        def call(*command: str) -> None:
            done = subprocess.run(command, user=who, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr

        data = f"{folder}/data"
        call(str(bin_folder / "initdb"), "-D", data, "-U", "specdemo", "-A", "trust", "-E", "UTF8", "--no-sync")
        options = f"-h 127.0.0.1 -p {port} -k {folder} -c fsync=off -c shared_buffers=16MB"
        call(str(bin_folder / "pg_ctl"), "-D", data, "-w", "-t", "60", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://specdemo@127.0.0.1:{port}/postgres"
        finally:
            call(str(bin_folder / "pg_ctl"), "-D", data, "-w", "-m", "immediate", "stop")
