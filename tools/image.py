"""``python -m tools.image Dockerfile.cpu --root DIR``: a Dockerfile's steps in a clean root, where there is no Docker.

DIR holds what FROM would give: for Dockerfile.cpu a minimal Debian with Python (``debootstrap``), entered with chroot
(as root). Every COPY, ENV, ARG, RUN, USER and WORKDIR is done as written, in order; then the health check is tried
against what ENTRYPOINT and CMD start. ``--skip N`` leaves out the first N RUN steps (such as apt-get in a root that
has the packages). What Docker alone can give (layers, volumes, GPUs) is not tried.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WORDS = ("FROM", "ARG", "ENV", "COPY", "RUN", "USER", "WORKDIR", "VOLUME", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK",
         "ENTRYPOINT", "CMD")  # fmt: skip
KEPT = (
    "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE",
    "HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "NO_PROXY", "no_proxy",
)  # fmt: skip
"""How this machine reaches its package registries; Docker would be told the same by build arguments."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its word, what follows it on one line, and the number of its first line."""

    word: str
    rest: str
    line: int

    def listed(self) -> list[str]:
        """An exec form as its words."""
        found: list[str] = json.loads(self.rest)
        return found


def instructions(text: str) -> Iterator[Instruction]:
    """The instructions of a Dockerfile; continuation lines are joined. Raises ValueError for an unknown word."""
    held, first = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = first or number
        held += line.rstrip("\\").rstrip() + " " if line.endswith("\\") else line
        if line.endswith("\\"):
            continue
        word, _, rest = held.strip().partition(" ")
        if word not in WORDS:
            raise ValueError(f"line {first}: {word} is no instruction")
        yield Instruction(word, rest.strip(), first)
        held, first = "", 0


def variables(text: str) -> dict[str, str]:
    """The pairs of an ENV instruction."""
    return dict(pair.split("=", 1) for pair in shlex.split(text))


class Build:
    """The steps in one root."""

    def __init__(self, root: Path, arguments: dict[str, str], skip: int) -> None:
        self._root = root
        self._arguments = arguments
        self._skip = skip
        self._user = "0:0"
        self._folder = "/"
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}

    def do(self, step: Instruction) -> None:
        """One instruction."""
        match step.word:
            case "ARG":
                name, _, default = step.rest.partition("=")
                self._arguments.setdefault(name, default)
            case "ENV":
                self.environment |= variables(step.rest)
            case "USER":
                self._user = step.rest
                self.environment["HOME"] = "/home/specdemo"
            case "WORKDIR":
                self._folder = step.rest
            case "COPY":
                self._copy(shlex.split(step.rest))
            case "RUN":
                if self._skip > 0:
                    self._skip -= 1
                else:
                    self.run(["/bin/sh", "-e", "-c", step.rest]).check_returncode()
            case _:
                pass

    def run(self, argv: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """A command inside, as the user that is set."""
        return subprocess.run(self.inside(argv), env=self._variables(), stdin=subprocess.DEVNULL, check=False)

    def start(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        """The same, not waited for."""
        return subprocess.Popen(self.inside(argv), env=self._variables(), stdin=subprocess.DEVNULL)

    def inside(self, argv: Sequence[str]) -> list[str]:
        """The command line that enters the root."""
        step = f"cd {shlex.quote(self._folder)} && exec {shlex.join(argv)}"
        return ["chroot", f"--userspec={self._user}", str(self._root), "/bin/sh", "-c", step]

    def _variables(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return kept | self._arguments | self.environment

    def _copy(self, words: list[str]) -> None:
        owner = next((word.partition("=")[2] for word in words if word.startswith("--chown=")), None)
        *sources, target = (word for word in words if not word.startswith("--"))
        place = self._root / target.lstrip("/")
        for name in sources:
            source = ROOT / name
            here = place / source.name if target.endswith("/") else place
            here.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, here, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy2(source, here)
            if owner:
                subprocess.run(["chown", "-R", owner, str(here)], check=True)


def healthy(build: Build, steps: Sequence[Instruction], seconds: float) -> bool:
    """Start what the image would start, and try its health check until it is well."""
    words = {step.word: step for step in steps}
    check = json.loads(re.sub(r"^.*?CMD\s*", "", words["HEALTHCHECK"].rest))
    page = build.start([*words["ENTRYPOINT"].listed(), *words["CMD"].listed()])
    try:
        until = time.monotonic() + seconds
        while time.monotonic() < until and page.poll() is None:
            if build.run(check).returncode == 0:
                return True
            time.sleep(2)
        return False
    finally:
        page.terminate()
        page.wait(60)


@contextmanager
def processes(root: Path) -> Iterator[None]:
    """``/proc`` inside, as a container has it; without the right to mount it, the steps are tried all the same."""
    inside = root / "proc"
    mounted = not (inside / "self").exists() and (
        subprocess.run(["mount", "-t", "proc", "proc", str(inside)], check=False).returncode == 0
    )
    try:
        yield
    finally:
        if mounted:
            subprocess.run(["umount", str(inside)], check=False)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tools.image", description=__doc__.partition("\n")[0])
    parser.add_argument("dockerfile", type=Path)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--skip", type=int, default=0)
    options = parser.parse_args()
    steps = list(instructions((ROOT / options.dockerfile).read_text(encoding="utf-8")))
    build = Build(options.root, dict(pair.split("=", 1) for pair in options.arg), options.skip)
    with processes(options.root):
        for step in steps:
            print(f"{step.line:3} {step.word} {step.rest[:100]}", flush=True)
            build.do(step)
        well = healthy(build, steps, 120)
    print("healthy" if well else "the health check never passed")
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
