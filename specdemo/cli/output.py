"""What a command writes: results to stdout, everything else to stderr; strict JSON when asked."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console

from specdemo.errors import SpecDemoError

_UNFOLDED = 10_000


def stdout() -> Console:
    """For results. Lines are folded in a terminal only: elsewhere a line stays a line."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _UNFOLDED)


def stderr() -> Console:
    """For progress and errors."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def print_json(document: Any) -> None:
    """One strict JSON document: no NaN, and ASCII, so that no terminal's encoding can break it."""
    sys.stdout.write(json.dumps(document, allow_nan=False, indent=2) + "\n")
    sys.stdout.flush()


def error_document(error: SpecDemoError) -> dict[str, Any]:
    """What ``--json`` prints when there is no result."""
    return {"schema": 1, "error": {"kind": error.kind, "message": str(error)}}
