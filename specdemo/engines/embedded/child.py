"""Run one helper program to its end, with its output in hand and no way for it to outlive us."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

Child = Callable[[Sequence[str]], str]
"""Runs argv, returns everything that it printed; raises ChildEnded on a non-zero exit code."""

# A conversion must never turn to a model hub, and no warning may hide the last line.
CHILD_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_VERBOSITY": "error", "TOKENIZERS_PARALLELISM": "false"}


class ChildEnded(Exception):
    """The program failed. ``output`` is what it printed, ``code`` its exit code (None: it could not be started)."""

    def __init__(self, program: str, code: int | None, output: str) -> None:
        super().__init__(f"{Path(program).name} ended with code {code}")
        self.program, self.code, self.output = program, code, output

    @property
    def last_line(self) -> str:
        """The last line with text, shortened."""
        lines = [line.strip() for line in self.output.splitlines() if line.strip()]
        errors = [line for line in lines if line.startswith("ERROR:")]
        return (errors or lines or ["nothing"])[-1][:300]


def run_child(argv: Sequence[str]) -> str:
    """``Child`` by subprocess. An interrupt in this process ends the program too."""
    try:
        # A file would be needed if the output were long; pip and the converter print a few kilobytes.
        child = subprocess.Popen(  # noqa: S603 - argv is built here from a configured interpreter and our own script
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=os.environ | CHILD_ENVIRONMENT,
        )
    except OSError as error:
        raise ChildEnded(argv[0], None, f"{argv[0]} cannot be run: {error.strerror}") from error
    with child:
        try:
            output, _ = child.communicate()
        except BaseException:
            child.terminate()
            raise
    if child.returncode != 0:
        raise ChildEnded(argv[0], child.returncode, output)
    return output
