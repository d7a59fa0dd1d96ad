"""What a command writes: results to stdout, everything else to stderr; strict JSON when asked."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

from rich.console import Console

from specdemo.errors import SpecDemoError

_UNFOLDED = 10_000
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def stdout() -> Console:
    """For results. Lines are folded in a terminal only: elsewhere a line stays a line."""
    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _UNFOLDED)


def stderr() -> Console:
    """For progress and errors."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=True)


def calm(text: str) -> str:
    """Text from outside without what steers a terminal: escape sequences, control characters, direction overrides."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n")).encode("utf-8", "replace").decode("utf-8")


def print_json(document: Any) -> None:
    """One strict JSON document: no NaN, and ASCII, so that no terminal's encoding can break it."""
    sys.stdout.write(json.dumps(document, allow_nan=False, indent=2) + "\n")
    sys.stdout.flush()


def error_document(error: SpecDemoError) -> dict[str, Any]:
    """What ``--json`` prints when there is no result."""
    return {"schema": 1, "error": {"kind": error.kind, "message": str(error)}}
