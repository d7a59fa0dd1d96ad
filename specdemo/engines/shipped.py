"""The draft model that comes with specdemo: distilled from the embedded target, for it alone (docs/draft-model.md)."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path

from specdemo.engines.embedded.source import SMOLLM2
from specdemo.errors import SetupError

_HERE = Path(__file__).resolve()
_PLACES = (_HERE.parents[2] / "assets", _HERE.parents[1] / "assets")  # a checkout, an installed wheel
DRAFT = "smollm2-135m-instruct-draft"
MANIFEST = "manifest.json"
"""File name → sha256, as the distillation wrote it."""


def shipped_draft(target: str) -> str | None:
    """The folder of the draft model for ``target`` (a model folder or hub id); None where none was made for it.

    Raises SetupError when its files are absent or not what was released.
    """
    if not Path(target).name.lower().startswith(SMOLLM2.name):
        return None
    return str(checked(_folder()))


def _folder() -> Path:
    for place in _PLACES:
        folder = place / "models" / DRAFT
        if folder.is_dir():
            return folder
    raise SetupError("The shipped draft model is missing; install specdemo again or run it from a full checkout.")


@cache
def checked(folder: Path) -> Path:
    """``folder``, once every file of its manifest was found whole. Raises SetupError otherwise."""
    try:
        wanted: dict[str, str] = json.loads((folder / MANIFEST).read_text("utf-8"))["sha256"]
        for name, digest in wanted.items():
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != digest:
                raise SetupError(f"The shipped draft model's file {name} is damaged; install specdemo again.")
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise SetupError("The shipped draft model is incomplete; install specdemo again.") from error
    return folder
