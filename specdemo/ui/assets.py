"""The only place of the page that reads ``assets/``: templates, scripts, styles, words, example prompts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from specdemo.errors import SetupError

_HERE = Path(__file__).resolve()
_PLACES = (_HERE.parents[2] / "assets", _HERE.parents[1] / "assets")  # a checkout, an installed wheel

STATIC_FOLDERS = ("js", "css", "i18n")
"""What a browser may fetch; everything else is read by the server only."""

MEDIA_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".json": "application/json; charset=utf-8",
}
"""Spelled out: what a system's own table says about ``.mjs`` differs, and browsers refuse modules of a wrong type."""


@cache
def folder() -> Path:
    """The assets folder. Raises SetupError when the installation is incomplete."""
    for place in _PLACES:
        if (place / "html").is_dir():
            return place
    raise SetupError("The page's files (assets/) are missing; install specdemo again or run it from a full checkout.")


@cache
def text(name: str) -> str:
    """One text file, for example ``html/race.html``. Raises SetupError when it is missing."""
    try:
        return (folder() / name).read_text(encoding="utf-8")
    except OSError as error:
        raise SetupError(f"The page's file assets/{name} is missing; install specdemo again.") from error


def stylesheets() -> list[Path]:
    """All style files in the order in which they apply: ``tokens.css`` (variables) first, then by name."""
    found = sorted((folder() / "css").glob("*.css"))
    return sorted(found, key=lambda path: path.name != "tokens.css")
